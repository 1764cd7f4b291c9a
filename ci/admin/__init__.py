"""The operator's pages: everything can be looked at, and changed only by the transitions."""

from ci.admin import jobs, kept, records, runner_sets, runners, runs

__all__ = ["jobs", "kept", "records", "runner_sets", "runners", "runs"]

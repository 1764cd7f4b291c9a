"""How do forms, pages and the API save a runner set? As ci.lifecycle does, which asks its launcher for the template."""

from __future__ import annotations

from ci.lifecycle.runner_sets import save_runner_set as save

__all__ = ["save"]

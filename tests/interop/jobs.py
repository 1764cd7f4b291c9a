"""What does an action see of its job? The environment that a runner makes of the payload."""

from __future__ import annotations

from pathlib import Path

from tests.api.server import Server
from tests.playground import Assigned


def environment(server: Server, assigned: Assigned, workspace: Path) -> dict[str, str]:
    """For GitHub's clients. The test's own process does not know the server's port, so addresses are the server's."""
    github = assigned.payload["contexts"]["github"]
    return {
        "ACTIONS_RUNTIME_TOKEN": assigned.payload["runtime"]["token"],
        "ACTIONS_RUNTIME_URL": f"{server.public_url}/api/actions_pipeline/",
        "ACTIONS_RESULTS_URL": f"{server.public_url}/",
        "ACTIONS_CACHE_URL": f"{server.public_url}/api/actions_cache/",
        "GITHUB_SERVER_URL": server.public_url,
        "GITHUB_RUN_ID": github["run_id"],
        "GITHUB_REF": github["ref"],
        "GITHUB_RETENTION_DAYS": github["retention_days"],
        "GITHUB_WORKSPACE": str(workspace),
        "RUNNER_TEMP": str(workspace),
    }

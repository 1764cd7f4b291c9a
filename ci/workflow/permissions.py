"""What may the token of a job do?

GitHub docs, "Controlling permissions for GITHUB_TOKEN"; messages and order as in actions/runner's PermissionsHelper."""

from __future__ import annotations

from collections.abc import Mapping

from ci.workflow.options import Policy

# Those that `read-all` and `write-all` stand for, in the order in which GitHub lists them.
COMMON = (
    *("actions", "checks", "contents", "deployments", "discussions", "issues", "packages", "pages", "pull-requests"),
    *("repository-projects", "statuses", "security-events", "id-token"),
)
NAMES = (
    *("actions", "artifact-metadata", "attestations", "checks", "code-quality", "contents", "copilot-requests"),
    *("deployments", "discussions", "drives", "issues", "packages", "pages", "pull-requests", "repository-projects"),
    *("statuses", "security-events", "id-token", "models", "vulnerability-alerts"),
)
_RANK = {"none": 0, "read": 1, "write": 2}
# These are never written, or never only read.
_HIGHEST = {"models": "read", "vulnerability-alerts": "read"}
Permissions = str | Mapping[str, str] | None


def explicit(permissions: Permissions) -> dict[str, str] | None:
    """A `permissions:` as a mapping of what it grants, None where there is none."""
    if permissions is None:
        return None
    if isinstance(permissions, str):
        level = permissions.removesuffix("-all")
        return dict.fromkeys(COMMON, level)
    return dict(permissions)


def policy(name: Policy) -> dict[str, str]:
    """What every job may do where no `permissions:` says otherwise."""
    if name == "LimitedRead":
        return {"contents": "read", "packages": "read"}
    return _all("write")


def _all(level: str) -> dict[str, str]:
    return {name: level if level == "none" else _HIGHEST.get(name, level) for name in NAMES}


def effective(
    workflow: Permissions,
    job: Permissions,
    default: Permissions = None,
    *,
    ceiling: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The level (read, write or none) of every permission that a job's token has.

    The job's own `permissions` count, else the workflow's, else `default`. As soon as one is named, those not named
    are none. `ceiling`: what the calling job has; a called workflow never gets more.
    """
    chosen = next((one for one in (job, workflow, default) if one is not None), None)
    if isinstance(chosen, str):
        granted: Mapping[str, str] = _all(chosen.removesuffix("-all"))
    else:
        granted = chosen or {}
    levels = {name: granted.get(name, "none") for name in NAMES}
    if ceiling is None:
        return levels
    return {name: min(level, ceiling.get(name, "none"), key=_RANK.__getitem__) for name, level in levels.items()}


def escalation(requested: Permissions, allowed: Permissions, *, default: Policy) -> tuple[str, str] | None:
    """What a called workflow asks for beyond what its caller has, and what that is; None where it asks for nothing
    more. `allowed` None: the caller names no permissions, so that the policy `default` counts."""
    wanted = explicit(requested) or {}
    limit: Mapping[str, str] = _all(allowed.removesuffix("-all")) if isinstance(allowed, str) else (allowed or {})
    if allowed is None:
        limit = policy(default)
    beyond = [
        name
        for name in sorted(wanted, key=lambda name: NAMES.index(name) if name in NAMES else len(NAMES))
        if _RANK.get(wanted[name], 0) > _RANK.get(limit.get(name, "none"), 0)
    ]
    if not beyond:
        return None
    return (
        ", ".join(f"{name}: {wanted[name]}" for name in beyond),
        ", ".join(f"{name}: {limit.get(name, 'none')}" for name in beyond),
    )

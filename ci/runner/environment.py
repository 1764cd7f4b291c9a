"""Which environment variables does a step see before its own are added?

Source of the names: GitHub docs, "Variables reference", default environment variables.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Mapping
from typing import Any

# Of the runner's own environment only this reaches a job: its tokens and settings must not.
PASSED = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TERM", "HOSTNAME",
        "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE",
        "NODE_EXTRA_CA_CERTS",
        "JAVA_HOME", "GOROOT", "XDG_RUNTIME_DIR", "LD_LIBRARY_PATH", "DOCKER_HOST",
    }
)  # fmt: skip

GITHUB_KEYS = (
    "action", "action_path", "action_ref", "action_repository", "actor", "actor_id", "api_url", "base_ref",
    "event_name", "event_path", "graphql_url", "head_ref", "job", "ref", "ref_name", "ref_protected", "ref_type",
    "repository", "repository_id", "repository_owner", "repository_owner_id", "retention_days", "run_attempt", "run_id",
    "run_number", "server_url", "sha", "triggering_actor", "workflow", "workflow_ref", "workflow_sha", "workspace",
)  # fmt: skip

FILE_VARIABLES = ("GITHUB_ENV", "GITHUB_OUTPUT", "GITHUB_STATE", "GITHUB_PATH", "GITHUB_STEP_SUMMARY")
RUNNER_KEYS = ("arch", "debug", "environment", "name", "os", "temp", "tool_cache", "workspace")

RESERVED = frozenset(
    {f"GITHUB_{key.upper()}" for key in GITHUB_KEYS} | {f"RUNNER_{key.upper()}" for key in RUNNER_KEYS}
    | {"GITHUB_ACTIONS", "RUNNER_TRACKING_ID", *FILE_VARIABLES}
)  # fmt: skip


def passed(extra: Collection[str] = ()) -> dict[str, str]:
    """The part of the runner's own environment that jobs may see; `extra` names more of it."""
    kept = {
        name: value for name, value in os.environ.items() if name in PASSED or name in extra or name.startswith("LC_")
    }
    kept.setdefault("PATH", os.defpath)
    kept.setdefault("LANG", "C.UTF-8")
    # Unlike the other variables of the runner a workflow may change this one (GitHub docs, "Variables reference").
    kept.setdefault("CI", "true")
    return kept


def defaults(github: Mapping[str, Any], runner: Mapping[str, Any]) -> dict[str, str]:
    """GITHUB_* and RUNNER_* from the contexts of a step; nothing a workflow says can change them."""
    variables = {"GITHUB_ACTIONS": "true"}
    for key in GITHUB_KEYS:
        value = github.get(key)
        # Only composite actions have a path of their own.
        if value is not None and (value or key != "action_path"):
            variables[f"GITHUB_{key.upper()}"] = str(value).lower() if isinstance(value, bool) else str(value)
    for key in RUNNER_KEYS:
        if runner.get(key):
            variables[f"RUNNER_{key.upper()}"] = str(runner[key])
    return variables


def id_token(url: str, token: str) -> dict[str, str]:
    """How a job asks the forge for id tokens, where it may (GitHub docs, "OpenID Connect reference")."""
    return {"ACTIONS_ID_TOKEN_REQUEST_URL": url, "ACTIONS_ID_TOKEN_REQUEST_TOKEN": token} if url and token else {}


def runtime(*, url: str, token: str, results_url: str, cache_url: str) -> dict[str, str]:
    """Where an action keeps artifacts and caches, where the forge has a place for them. As on GitHub not for `run`
    steps: what stands there may upload and overwrite in the job's name."""
    if not token:
        return {}
    return {
        "ACTIONS_RUNTIME_URL": url,
        "ACTIONS_RUNTIME_TOKEN": token,
        "ACTIONS_RESULTS_URL": results_url,
        "ACTIONS_CACHE_URL": cache_url,
        "ACTIONS_CACHE_SERVICE_V2": "true",
    }


def input_variable(name: str) -> str:
    """GitHub docs, "Metadata syntax": INPUT_<NAME>, upper case, spaces as underscores."""
    return "INPUT_" + name.replace(" ", "_").upper()


def system() -> str:
    """GitHub's word for this operating system: Linux, Windows or macOS."""
    return {"Darwin": "macOS"}.get(platform.system(), platform.system())


def architecture() -> str:
    """GitHub's word for this processor: X64, ARM64, X86, ARM."""
    machine = platform.machine().lower()
    known = {"x86_64": "X64", "amd64": "X64", "aarch64": "ARM64", "arm64": "ARM64", "i686": "X86", "i386": "X86"}
    return known.get(machine, "ARM" if machine.startswith("arm") else machine.upper())

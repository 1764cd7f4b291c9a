"""Which environment do the processes of `manage.py up` get?"""

import os
import socket
import sys
from collections.abc import Mapping
from pathlib import Path

from ci.management.machine import is_loopback, local_url

_LOCAL_HOSTS = "localhost,.localhost,127.0.0.1,[::1]"
_FOR_SERVERS_ONLY = ("FORGE_", "DJANGO_", "DATABASE_URL", "AWS_")


def server_environment(data: Path, host: str, port: int) -> dict[str, str]:
    """What this process itself must have had when it loaded its settings, and all servers get. Given values win."""
    wanted = {"FORGE_DATA": str(data), "DJANGO_SETTINGS_MODULE": "forge.settings", "PYTHONUNBUFFERED": "1"}
    defaults = {"FORGE_URL": local_url(host, port)}
    if not is_loopback(host):
        names = dict.fromkeys([*_LOCAL_HOSTS.split(","), *_names_of(host)])
        defaults["FORGE_ALLOWED_HOSTS"] = ",".join(names)
    return {**defaults, **os.environ, **wanted}


def load_again(environment: Mapping[str, str]) -> None:
    """Replace this process by itself where its settings were loaded from another environment."""
    if any(os.environ.get(name) != value for name, value in environment.items()):
        sys.stdout.flush()
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], dict(environment))  # noqa: S606 - no shell is wanted


def runner_environment() -> dict[str, str]:
    """A runner executes other people's programs: it gets nothing that is meant for the servers."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_FOR_SERVERS_ONLY)}


def _names_of(host: str) -> list[str]:
    return [socket.gethostname(), socket.getfqdn()] if host in {"0.0.0.0", "::"} else [host]  # noqa: S104 - compared

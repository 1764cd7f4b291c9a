"""Does this machine have what Forge CI needs, and how much of it should be used?"""

import contextlib
import errno
import ipaddress
import os
import re
import resource
import socket
import subprocess

from ci.management.control_groups import memory_limit, processor_limit
from ci.management.start_errors import CannotStart

OLDEST_GIT = (2, 30)
_KERNEL_OPEN_FILES = 1024 * 1024


def check_git() -> str:
    """The version of the git program. Raises CannotStart where there is none or it is too old."""
    wanted = ".".join(map(str, OLDEST_GIT))
    try:
        done = subprocess.run(["git", "--version"], capture_output=True, text=True, timeout=20, check=True)
    except FileNotFoundError as error:
        raise CannotStart(f"The program git was not found: install git {wanted} or newer (apt install git).") from error
    except (OSError, subprocess.SubprocessError) as error:
        raise CannotStart(f"The program git does not work ({error}): install git {wanted} or newer.") from error
    found = re.search(r"(\d+)\.(\d+)(?:\.\d+)*", done.stdout)
    if found is None or (int(found[1]), int(found[2])) < OLDEST_GIT:
        raise CannotStart(f"{done.stdout.strip() or 'This git'} is too old: install git {wanted} or newer.")
    return found[0]


def check_address(host: str, port: int) -> None:
    """Raises CannotStart where nothing can listen on host and port, or somebody already does."""
    where = f"{host}:{port}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with contextlib.closing(socket.socket(family, kind, protocol)) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        if isinstance(error, socket.gaierror):
            raise CannotStart(f"{host} is no address of this machine: choose another with --host.") from error
        if isinstance(error, PermissionError):
            raise CannotStart(f"This user may not listen on {where}: choose a port above 1023 with --port.") from error
        reason = (
            "is taken by another program" if error.errno == errno.EADDRINUSE else f"cannot be used ({error.strerror})"
        )
        raise CannotStart(f"The address {where} {reason}: choose another with --port or --host.") from error


def local_url(host: str, port: int) -> str:
    """How processes of this machine reach a server that listens on host and port."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.is_unspecified:
            host = "127.0.0.1" if address.version == 4 else "[::1]"
        elif address.version == 6:
            host = f"[{host}]"
    return f"http://{host}:{port}"


def is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def cores() -> int:
    """The cores this process may use."""
    there = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(there, processor_limit() or there)


def memory() -> int:
    """The bytes of memory this process and its children may use."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(there, memory_limit() or there)


def most_open_files() -> int:
    """How many files and connections a process may be given at most (getrlimit(2): the hard limit)."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    # Beyond it the kernel refuses whatever the limit says (proc(5): nr_open as it is by default).
    return _KERNEL_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, _KERNEL_OPEN_FILES)

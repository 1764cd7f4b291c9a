"""How many processes, threads and connections fit this machine? What an operator gave stands, the rest is chosen.

Web processes: a runner's poll answers best where at least two share the work, while each queued job has every process
wake one of its polls and look: so half of the cores, for the database, tasks and jobs want theirs too, and not many.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ci.management.start_errors import CannotStart

_KIB, _MIB, _GIB = 1024, 1024**2, 1024**3
MOST_WEB_PROCESSES = 8
# Beyond its threads for pages a web process asks the database in others: polls 6, heartbeats 8, logs 4, git 8 and 4,
# artifacts and caches 8, 8 and 2, the hub 1; and one to spare. tests/up/test_choose_sizes.py counts them.
WEB_CONNECTIONS = 50
# qcluster's own three processes beside its workers; watch and scale with their leaders' sessions, and scale's calls.
TASK_CONNECTIONS, WATCH_CONNECTIONS, SCALE_CONNECTIONS = 3, 2, 26
# For commands, backups and whoever looks into the database.
SPARE_CONNECTIONS = 5
# Of each that is in use: the server's process with what it remembers of the tables.
_CONNECTION_BYTES = 2 * _MIB
_WEB_BYTES = 160 * _MIB
# What a process has open beside runners that wait: its database sessions, and the pipes and files of git and blobs.
_OTHER_FILES = 1024
# A runner that waits takes this much of its web process, and of the kernel for its connection.
_RUNNER_BYTES = 64 * _KIB
_THREADS = (16, 12, 8, 4)


@dataclass(frozen=True)
class Machine:
    cores: int
    memory: int  # bytes
    open_files: int  # at most, of one process

    def __str__(self) -> str:
        memory = f"{self.memory / _GIB:.0f} GiB" if self.memory >= 2 * _GIB else f"{self.memory // _MIB} MiB"
        return f"{self.cores} {'core' if self.cores == 1 else 'cores'}, {memory}"


@dataclass(frozen=True)
class Given:
    """What the environment says: FORGE_WEB_PROCESSES, FORGE_WEB_THREADS, FORGE_TASK_WORKERS."""

    web_processes: int | None = None
    web_threads: int | None = None
    task_workers: int | None = None


@dataclass(frozen=True)
class Sizes:
    web_processes: int
    web_threads: int
    task_workers: int
    machine: Machine

    @property
    def connections(self) -> int:
        """Database connections that all parts together may have open at once."""
        web = self.web_processes * (self.web_threads + WEB_CONNECTIONS)
        tasks = self.task_workers + TASK_CONNECTIONS
        return web + tasks + WATCH_CONNECTIONS + SCALE_CONNECTIONS + SPARE_CONNECTIONS

    @property
    def waiting_runners(self) -> int:
        """How many runners may wait for a job at once: each keeps a file of its web process, and some memory."""
        files = max(self.machine.open_files - _OTHER_FILES, self.machine.open_files // 2)
        return min(files * self.web_processes, self.machine.memory // 8 // _RUNNER_BYTES)

    @property
    def environment(self) -> dict[str, str]:
        """For the processes that these sizes are of."""
        return {"FORGE_WEB_THREADS": str(self.web_threads), "FORGE_TASK_WORKERS": str(self.task_workers)}

    def __str__(self) -> str:
        return (
            f"{_count(self.web_processes, 'web process', 'es')} of {_count(self.web_threads, 'thread')}, "
            f"{_count(self.task_workers, 'task worker')}, up to {self.connections} database connections and "
            f"{self.waiting_runners:,} waiting runners ({self.machine})"
        )


def choose(machine: Machine, given: Given) -> Sizes:
    """Raises CannotStart where what was given cannot fit the machine."""
    usual = min(MOST_WEB_PROCESSES, max(2, machine.cores // 2), max(1, machine.memory // 4 // _WEB_BYTES))
    small = machine.memory < _GIB
    sizes = Sizes(
        web_processes=given.web_processes or usual,
        web_threads=given.web_threads or (8 if small else 16),
        task_workers=given.task_workers or (1 if small else 2 if machine.cores < 8 else 4),
        machine=machine,
    )
    if sizes.connections * _CONNECTION_BYTES > machine.memory // 2:
        raise CannotStart(
            f"{_count(sizes.web_processes, 'web process', 'es')} of {_count(sizes.web_threads, 'thread')} and "
            f"{_count(sizes.task_workers, 'task worker')} may open {sizes.connections} database connections, too many "
            f"for the memory of this machine ({machine}): choose less with FORGE_WEB_PROCESSES, FORGE_WEB_THREADS or "
            "FORGE_TASK_WORKERS."
        )
    return sizes


def fitted(wanted: Sizes, given: Given, *, allowed: int) -> tuple[Sizes, str]:
    """What fits a server with `allowed` connections for us, fewer threads before fewer processes; and a sentence where
    that is less than was wanted, or still too much."""
    if wanted.connections <= allowed:
        return wanted, ""
    processes = [given.web_processes] if given.web_processes else range(wanted.web_processes, 0, -1)
    threads = [given.web_threads] if given.web_threads else [few for few in _THREADS if few <= wanted.web_threads]
    tries = [replace(wanted, web_processes=some, web_threads=few) for some in processes for few in threads]
    found = next((sizes for sizes in tries if sizes.connections <= allowed), None)
    server = f"The database server gives us {allowed} connections (max_connections, less those it reserves)"
    if found is not None:
        return found, (
            f"{server}, so these are chosen; {_count(wanted.web_processes, 'web process', 'es')} of "
            f"{_count(wanted.web_threads, 'thread')} need {wanted.connections}."
        )
    least = tries[-1]
    return least, (
        f"{server}, and {least.connections} may be needed: under load some requests will fail. "
        f"Raise max_connections by {least.connections - allowed} or more, or give fewer processes or threads."
    )


def server_settings(sizes: Sizes) -> dict[str, str]:
    """Of the PostgreSQL that comes along: it shares the machine with everything else, jobs too."""
    memory = sizes.machine.memory
    # Places that nobody takes cost nearly nothing; three are for superusers only.
    connections = max(300, sizes.connections + 3)
    return {
        "max_connections": str(connections),
        # Not more: each session that has used all of it has page tables of a 512th for itself.
        "shared_buffers": _mebibytes(memory // 8, least=64, most=2048),
        "effective_cache_size": _mebibytes(memory // 2, least=128, most=1024**2),
        "work_mem": _mebibytes(memory // 8 // connections, least=2, most=16),
        "maintenance_work_mem": _mebibytes(memory // 32, least=16, most=512),
    }


def _mebibytes(size: int, *, least: int, most: int) -> str:
    return f"{min(most, max(least, size // _MIB))}MB"


def _count(number: int, what: str, plural: str = "s") -> str:
    return f"{number} {what}{'' if number == 1 else plural}"

"""Do the sizes that `manage.py up` chooses fit the machine, the database server, and what the operator gave?"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from ci.api import log_route
from ci.interop import threads as interop
from ci.management import sizes as sizes_module
from ci.management.control_groups import memory_limit, processor_limit
from ci.management.sizes import Given, Machine, Sizes, choose, fitted, server_settings
from ci.management.start_errors import CannotStart
from ci.scaling import workers
from ci.waiting import process as waiting
from forge.counts import given_count
from forge.git import database as git

ROOT = Path(__file__).resolve().parents[2]
MIB, GIB = 1024**2, 1024**3
CORES = [1, 2, 4, 16, 64]
MEMORIES = [512 * MIB, GIB, 2 * GIB, 8 * GIB, 64 * GIB, 256 * GIB]
FILES = 20_000


def machine(cores: int = 2, memory: int = 8 * GIB, open_files: int = FILES) -> Machine:
    return Machine(cores, memory, open_files)


def chosen(cores: int = 2, memory: int = 8 * GIB, **given: int) -> Sizes:
    return choose(machine(cores, memory), Given(**given))


@pytest.mark.parametrize(
    ("cores", "memory", "web", "threads", "tasks"),
    [
        (1, 512 * MIB, 1, 8, 1),
        (1, 2 * GIB, 2, 16, 2),
        (2, GIB, 1, 16, 2),
        (2, 8 * GIB, 2, 16, 2),
        (4, 8 * GIB, 2, 16, 2),
        (16, 64 * GIB, 8, 16, 4),
        (64, 512 * MIB, 1, 8, 1),
        (64, 256 * GIB, 8, 16, 4),
    ],
)
def test_cores_and_memory_decide(cores, memory, web, threads, tasks):
    found = chosen(cores, memory)
    assert (found.web_processes, found.web_threads, found.task_workers) == (web, threads, tasks)


@pytest.mark.parametrize("memory", MEMORIES)
@pytest.mark.parametrize("cores", CORES)
def test_what_is_chosen_fits_the_server_that_comes_along_and_the_memory(cores, memory):
    found = chosen(cores, memory)
    settings = server_settings(found)
    amounts = {name: int(value.removesuffix("MB")) for name, value in settings.items()}
    assert amounts["max_connections"] >= found.connections + 3
    assert amounts["shared_buffers"] * MIB <= memory // 4
    assert amounts["shared_buffers"] + amounts["maintenance_work_mem"] * 3 <= memory // MIB // 3
    assert amounts["work_mem"] * found.connections <= memory // MIB // 2
    assert amounts["effective_cache_size"] * MIB < memory
    assert fitted(found, Given(), allowed=amounts["max_connections"] - 3) == (found, "")


@pytest.mark.parametrize("cores", CORES)
def test_more_memory_never_means_less(cores):
    found = [chosen(cores, memory) for memory in MEMORIES]
    for less, more in pairwise(found):
        assert less.web_processes <= more.web_processes
        assert less.web_threads <= more.web_threads
        assert less.waiting_runners <= more.waiting_runners


def test_what_is_given_stands():
    found = chosen(web_processes=3, web_threads=5, task_workers=7)
    assert (found.web_processes, found.web_threads, found.task_workers) == (3, 5, 7)
    assert found.environment == {"FORGE_WEB_THREADS": "5", "FORGE_TASK_WORKERS": "7"}


def test_what_is_given_and_cannot_fit_the_memory_is_refused():
    with pytest.raises(CannotStart, match=r"64 web processes of 256 threads .* \d+ database connections, too many"):
        chosen(web_processes=64, web_threads=256)


def test_a_server_with_few_connections_gets_fewer_processes_and_is_named():
    wanted = chosen()
    found, warning = fitted(wanted, Given(), allowed=97)
    assert found.connections <= 97
    assert (found.web_processes, found.web_threads) == (1, 8)
    assert warning == (
        "The database server gives us 97 connections (max_connections, less those it reserves), so these are chosen; "
        f"2 web processes of 16 threads need {wanted.connections}."
    )


def test_threads_go_before_processes():
    wanted = chosen()
    found, _ = fitted(wanted, Given(), allowed=wanted.connections - 1)
    assert (found.web_processes, found.web_threads) == (2, 12)


def test_what_is_given_is_not_lowered_for_the_server_but_warned_of():
    given = Given(web_processes=2, web_threads=16)
    wanted = choose(machine(), given)
    found, warning = fitted(wanted, given, allowed=97)
    assert found == wanted
    assert f"{wanted.connections} may be needed" in warning
    assert f"Raise max_connections by {wanted.connections - 97} or more" in warning


def test_a_server_too_small_for_everything_gets_the_least():
    found, warning = fitted(chosen(), Given(), allowed=20)
    assert (found.web_processes, found.web_threads) == (1, 4)
    assert "Raise max_connections" in warning


def test_the_line_says_all_of_it():
    assert str(choose(machine(2, 23 * GIB), Given())) == (
        "2 web processes of 16 threads, 2 task workers, up to 170 database connections and "
        "37,952 waiting runners (2 cores, 23 GiB)"
    )
    assert str(choose(machine(1, 512 * MIB), Given())).startswith("1 web process of 8 threads, 1 task worker, ")
    assert str(machine(1, 1536 * MIB)) == "1 core, 1536 MiB"


def test_files_and_memory_bound_the_runners_that_may_wait():
    plenty = choose(machine(2, 64 * GIB, open_files=1_000_000), Given())
    assert plenty.waiting_runners == 64 * GIB // 8 // (64 * 1024)
    few = replace(plenty, machine=machine(2, 64 * GIB, open_files=1024))
    assert few.waiting_runners == 2 * 512


def test_the_connections_of_a_web_process_cover_all_its_threads():
    """Who gives a room more threads is told here to count them."""
    pools = [git._work, git._reports, interop._rows, interop._storing, interop._packing]
    assert all(isinstance(pool, ThreadPoolExecutor) for pool in pools)
    beside = waiting._POLL_THREADS + waiting._HEARTBEAT_THREADS + log_route._threads._max_workers + 1  # the hub
    assert sum(pool._max_workers for pool in pools) + beside <= sizes_module.WEB_CONNECTIONS
    assert workers.AT_ONCE + 2 <= sizes_module.SCALE_CONNECTIONS


@pytest.mark.parametrize("text", ["0", "-1", "65", "two", "1.5", "9999999999999999999999", "٣", "²"])
def test_a_bad_count_is_explained(monkeypatch, text):
    monkeypatch.setenv("FORGE_WEB_PROCESSES", text)
    with pytest.raises(ImproperlyConfigured, match=r"FORGE_WEB_PROCESSES is .*: give a number from 1 to 64"):
        given_count("FORGE_WEB_PROCESSES", most=64)


@pytest.mark.parametrize(("text", "number"), [("", None), (" ", None), ("1", 1), (" 64 ", 64)])
def test_a_good_count_is_read(monkeypatch, text, number):
    monkeypatch.setenv("FORGE_WEB_PROCESSES", text)
    assert given_count("FORGE_WEB_PROCESSES", most=64) == number


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"FORGE_WEB_PROCESSES": "none"}, "FORGE_WEB_PROCESSES is 'none': give a number from 1 to 64"),
        ({"FORGE_WEB_THREADS": "0"}, "FORGE_WEB_THREADS is '0': give a number from 1 to 256"),
        ({"FORGE_TASK_WORKERS": "-2"}, "FORGE_TASK_WORKERS is '-2': give a number from 1 to 64"),
    ],
)
def test_up_refuses_a_bad_count_in_one_sentence(tmp_path, free_port, variables, said):
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--data", tmp_path / "data", "--port", str(free_port)],
        cwd=ROOT,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def group(root: Path, membership: str, **files: str) -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(membership)
    for path, text in files.items():
        file = root / "sys/fs/cgroup" / path.replace("__", "/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_name(file.name.replace("-", ".")).write_text(text)
    return root


def test_a_container_of_control_groups_2_has_its_limits(tmp_path):
    root = group(tmp_path, "0::/\n", **{"cpu-max": "150000 100000\n", "memory-max": "1073741824\n"})
    assert (processor_limit(root), memory_limit(root)) == (2, GIB)


def test_the_narrowest_of_the_groups_around_counts(tmp_path):
    files = {"a__memory-max": "1000\n", "a__b__memory-max": "max\n", "a__cpu-max": "max 100000\n"}
    root = group(tmp_path, "0::/a/b\n", **files)
    assert (processor_limit(root), memory_limit(root)) == (None, 1000)


def test_control_groups_1_are_read_too(tmp_path):
    files = {
        "memory__docker__memory-limit_in_bytes": "9223372036854771712\n",
        "memory__memory-limit_in_bytes": "536870912\n",
        "cpu__cpu-cfs_quota_us": "50000\n",
        "cpu__cpu-cfs_period_us": "100000\n",
    }
    root = group(tmp_path, "4:memory:/docker\n1:cpu,cpuacct:/elsewhere\n0::/\n", **files)
    assert (processor_limit(root), memory_limit(root)) == (1, 536870912)


def test_no_control_group_is_no_limit(tmp_path):
    assert (processor_limit(tmp_path), memory_limit(tmp_path)) == (None, None)
    root = group(tmp_path, "1:cpu:/\n", **{"cpu__cpu-cfs_quota_us": "-1\n", "cpu__cpu-cfs_period_us": "100000\n"})
    assert processor_limit(root) is None

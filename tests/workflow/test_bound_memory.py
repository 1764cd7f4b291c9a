"""How much memory can a text take? A child process with a limit above what it has already tries each one."""

from __future__ import annotations

import os
import resource
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from ci.workflow import WorkflowErrors, load

from .support import PATH
from .test_refuse_files import HOSTILE
from .test_survive_hostile_text import TREES, flow, survive

# A file has at most 1 MiB; every node of it takes a few hundred bytes.
MIB = 512


def within_memory(act: Callable[[], object]) -> bool:
    child = os.fork()
    if child == 0:
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + MIB * 2**20
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def refuse(text: str) -> None:
    try:
        load(PATH, {PATH: text})
    except WorkflowErrors:
        return
    raise AssertionError("it was accepted")


def test_the_limit_is_felt() -> None:
    assert not within_memory(lambda: bytearray(2 * MIB * 2**20))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_stays_within_it(name: str) -> None:
    assert within_memory(lambda: refuse(HOSTILE[name][0]))


def test_any_tree_stays_within_it() -> None:
    @settings(max_examples=200, suppress_health_check=list(HealthCheck))
    @given(TREES)
    def fuzz(tree: object) -> None:
        survive("on: push\njobs: " + flow(tree))

    assert within_memory(fuzz)

"""Are the fields of a message counted as a parser would count them, and is nothing endless?"""

import os
import random

import pytest

from ci.interop.protocol import runner_pb2
from ci.interop.wire import has_more_fields
from tests.interop.foreign import row, step


def log(lines):
    rows = [row("*\x1a" * (number % 9)) for number in range(lines)]
    return runner_pb2.UpdateLogRequest(task_id=2**62, index=3, rows=rows, no_more=True).SerializeToString()


def test_the_lines_of_a_batch_are_its_fields():
    assert has_more_fields(log(100), 102)
    assert not has_more_fields(log(100), 103)


def test_the_steps_of_a_report_count_within_its_state():
    state = runner_pb2.TaskState(id=1, steps=[step(number, first=2, count=3) for number in range(20)])
    raw = runner_pb2.UpdateTaskRequest(state=state, outputs={"a": "*" * 100}).SerializeToString()
    assert not has_more_fields(raw, 2)
    assert not has_more_fields(raw, 2 + 21, within=1)
    assert has_more_fields(raw, 2 + 20, within=1)


@pytest.mark.parametrize("raw", [b"\x1a", b"\x1a\xff" * 9, b"\xff" * 50, b"\x1b\x1c" * 50, b"\x0d", b"\x09\0"])
def test_what_is_no_message_is_left_to_the_parser(raw):
    assert has_more_fields(raw, len(raw)) is False


def test_any_bytes_come_to_an_end():
    chance = random.Random(4)
    for size in range(200):
        has_more_fields(chance.randbytes(size), 1, within=1)
    assert has_more_fields(b"\x1b" + b"\x1a\0" * 100, 90), "a group hides nothing"
    has_more_fields(os.urandom(100), 0, within=3)

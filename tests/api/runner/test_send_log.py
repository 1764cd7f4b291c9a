"""Does the log take every line once, whatever the offsets, and say where it continues?"""

import json

import pytest

from ci.models import LogChunk
from ci.storage import logs
from tests.api.calls import TIME, call, error_of, lines


def send(assigned, offset, *texts):
    return call(
        "POST", f"jobs/{assigned.id}/log", token=assigned.token, body={"offset": offset, "lines": lines(*texts)}
    )


def texts(assigned):
    return [line.text for line in logs.lines(assigned.id, 0, 10_000)]


def test_it_says_where_the_log_continues(running):
    response = send(running, 0, "one", "two")
    assert (response.status_code, response.json()) == (200, {"next_offset": 2})
    assert send(running, 2, "three").json() == {"next_offset": 3}
    assert texts(running) == ["one", "two", "three"]


def test_repeats_and_overlaps_are_stored_once(running):
    send(running, 0, "one", "two")
    assert send(running, 0, "one", "two").json() == {"next_offset": 2}
    assert send(running, 1, "two", "three").json() == {"next_offset": 3}
    assert texts(running) == ["one", "two", "three"]


@pytest.mark.parametrize("offset", [1, 5, 2**31 - 1])
def test_a_hole_is_refused_with_the_offset_to_continue_at(running, offset):
    error = error_of(send(running, offset, "later"), 409, "log_offset")
    assert error["next_offset"] == 0
    assert not LogChunk.objects.exists()


@pytest.mark.parametrize("offset", [-1, -(10**30), 2**31, 10**30, 1.5, "x", None, [], True])
def test_what_is_no_offset_is_refused(running, offset):
    error = error_of(send(running, offset, "x"), 400, "invalid")
    assert list(error["errors"]) == ["offset"]
    assert not LogChunk.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        {},
        "text",
        ["text"],
        [["only text"]],
        [[TIME, "x", "y"]],
        [[TIME, 5]],
        [[5, "x"]],
        [["yesterday", "x"]],
        [["2026-11-30T12:00:00", "no zone"]],
        [[TIME + "\n", "x"]],
        [["２026-11-30T12:00:00Z", "a wide digit"]],
        [[TIME, "x"], [TIME]],
    ],
)
def test_what_are_no_lines_is_refused(running, wrong):
    response = call("POST", f"jobs/{running.id}/log", token=running.token, body={"offset": 0, "lines": wrong})
    error = error_of(response, 400, "invalid")
    assert list(error["errors"]) == ["lines"]
    assert not LogChunk.objects.exists()


def test_too_many_lines_at_once_are_refused(running):
    error_of(send(running, 0, *["x"] * 10_001), 400, "invalid")
    assert send(running, 0, *["x"] * 10_000).json() == {"next_offset": 10_000}


def test_too_much_text_at_once_is_refused(running):
    error_of(send(running, 0, *["x" * 1_000_000] * 9), 400, "invalid")
    assert not LogChunk.objects.exists()


def test_a_line_of_a_million_characters_is_cut_with_a_mark(running):
    assert send(running, 0, "x" * 1_000_000, "next").json() == {"next_offset": 2}
    assert texts(running) == ["x" * 65_536 + " […]", "next"]


def test_garbage_is_kept_as_far_as_it_can_be_stored(running):
    raw = json.dumps({"offset": 0, "lines": lines("a\0b", "\ud800x", "\x1b[31m\x07\x9b", "a\nb\r\n")}).encode()
    assert call("POST", f"jobs/{running.id}/log", token=running.token, raw=raw).json() == {"next_offset": 4}
    assert texts(running) == ["a\N{REPLACEMENT CHARACTER}b", "?x", "\x1b[31m\x07\x9b", "a\N{SYMBOL FOR LINE FEED}b"]


def test_at_the_limit_what_fits_is_kept_and_the_job_is_told_to_stop(running, settings):
    settings.LOG_LIMIT_LINES = 2
    error = error_of(send(running, 0, "one", "two", "three"), 413, "log_limit")
    assert error["next_offset"] == 2
    assert texts(running) == ["one", "two"]
    assert running.job.cancel_reason == "log_limit"
    assert error_of(send(running, 2, "three"), 413, "log_limit")["next_offset"] == 2


def test_an_ended_job_still_delivers_its_last_lines_until_the_log_is_sealed(running):
    send(running, 0, "one")
    running.complete()
    assert send(running, 1, "two").json() == {"next_offset": 2}
    logs.seal(running.id)
    assert error_of(send(running, 2, "three"), 413, "log_limit")["next_offset"] == 2
    assert send(running, 1, "two").json() == {"next_offset": 2}
    assert texts(running) == ["one", "two"]

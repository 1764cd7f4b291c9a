"""Is a secret hidden wherever it shows?"""

from __future__ import annotations

import base64
import json
from html import escape
from itertools import pairwise
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.runner.console import Console
from ci.runner.lines import LINE_LIMIT, LineReader, cut_position
from ci.runner.masks import Masks, storable
from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer


def test_overlapping_and_touching_secrets_leave_nothing_between() -> None:
    masks = Masks(["abcdef", "defghi", "xyz"])
    assert masks.hide("1 abcdefghixyz 2") == "1 *** 2"


def test_a_multi_line_secret_is_hidden_line_by_line() -> None:
    masks = Masks(["-----BEGIN KEY-----\r\n  c29tZXRoaW5n\n}\n-----END KEY-----\n"])
    assert masks.hide("x c29tZXRoaW5n y") == "x *** y"
    assert masks.hide("} else {") == "} else {"


@pytest.mark.parametrize("before", ["", "a", "ab", "x-access-token:", "user:"])
def test_base64_forms_are_hidden_whatever_stands_before(before: str) -> None:
    secret = "correct horse battery"
    encoded = base64.b64encode(f"{before}{secret}/after".encode()).decode()
    hidden = Masks([secret]).hide(encoded)
    assert "***" in hidden
    assert len(hidden.replace("***", "")) < len(encoded) - len(secret)


@pytest.mark.parametrize(
    "shown",
    [
        json.dumps("p\"ä&'s <w> +1")[1:-1],
        json.dumps("p\"ä&'s <w> +1", ensure_ascii=False)[1:-1],
        quote("p\"ä&'s <w> +1", safe=""),
        quote_plus("p\"ä&'s <w> +1"),
        escape("p\"ä&'s <w> +1"),
        "p\"ä&'\\''s <w> +1",
        "p\"ä&''s <w> +1",
    ],
)
def test_the_usual_encodings_of_a_secret_are_hidden(shown: str) -> None:
    assert Masks(["p\"ä&'s <w> +1"]).hide(f"[{shown}]") == "[***]"


def test_blank_masks_hide_nothing() -> None:
    assert Masks(["", "  ", "\n"]).hide("a b") == "a b"


def test_a_secret_over_the_cut_is_hidden_whole() -> None:
    masks = Masks(["0123456789"])
    assert masks.hide("aaaa0123456789bbbb", cut=8) == "aaaa***"
    assert masks.hide("aaaa0123456789bbbb", cut=16) == "aaaa***bb"


@given(st.text(alphabet="ab:\n ", max_size=60), st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=4))
def test_no_secret_survives(text: str, secrets: list[str]) -> None:
    hidden = Masks(secrets).hide(text)
    assert not any(secret in hidden for secret in secrets)


def read(chunks: list[bytes], *, slack: int = 0) -> list[str]:
    lines: list[str] = []
    reader = LineReader(lines.append, slack=lambda: slack)
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    return lines


@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=8))
def test_lines_are_the_same_however_the_bytes_arrive(data: bytes, cuts: list[int]) -> None:
    borders = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    chunks = [data[a:b] for a, b in pairwise(borders)]
    whole = data.split(b"\n")
    expected = [storable(line.decode("utf-8", "replace")) for line in (whole if whole[-1] else whole[:-1])]
    assert read(chunks) == expected


def test_nul_bytes_invalid_utf8_and_carriage_returns_become_storable_text() -> None:
    assert read([b"a\0b\xff\xc3", b"\xa9\r\n\n", b"end"]) == ["a\ufffdb\ufffdé\r", "", "end"]


def test_a_huge_line_is_held_in_bounded_memory() -> None:
    (line,) = read([b"x" * 70_000] * 20)
    assert LINE_LIMIT < len(line) <= LINE_LIMIT + 4
    cut = cut_position(line)
    assert cut is not None and cut < LINE_LIMIT


@given(st.text(max_size=40), st.integers(1, 5000), st.lists(st.text(min_size=1, max_size=3), max_size=3))
def test_no_line_outgrows_the_limit_whatever_is_hidden_in_it(text: str, times: int, secrets: list[str]) -> None:
    sent: list[str] = []

    class Log:
        end = 0
        write = staticmethod(sent.append)

    console = Console(number=1, name="x", log=Log(), masks=Masks(secrets), debug=False)  # type: ignore[arg-type]
    console.print(text * times)
    assert len(sent[0].encode()) <= LINE_LIMIT


@pytest.mark.parametrize("secret", ["w", "error", "e"])
def test_a_secret_that_is_part_of_a_level_does_not_make_a_level_that_the_forge_refuses(secret: str) -> None:
    class Log:
        end = 0

    console = Console(number=1, name="x", log=Log(), masks=Masks([secret]), debug=False)  # type: ignore[arg-type]
    for level in ("error", "warning", "notice"):
        console.annotate({"level": level, "message": f"it is {secret}", "line": 3})
    told = console.report()["annotations"]
    assert [annotation["level"] for annotation in told] == ["error", "warning", "notice"]
    assert all("***" in annotation["message"] for annotation in told)


def test_secrets_are_hidden_in_everything_a_real_job_sends(server: FakeServer, runners: Runners) -> None:
    secret, key, added = "s3cr3t-value-9", "line-one-of-key\nline-two-of-key", "added-by-the-step"
    job = server.add(
        [
            {
                "name": "print ${{ secrets.PASSWORD }}",
                "env": {"P": "${{ secrets.PASSWORD }}", "K": "${{ secrets.KEY }}"},
                "run": "import os, sys, time, base64\n"
                "p, w = os.environ['P'], sys.stdout.buffer\n"
                "w.write(b'split ' + p[:5].encode()); w.flush(); time.sleep(0.3)\n"
                "w.write(p[5:].encode() + b'\\n' + os.environ['K'].encode() + b'\\n')\n"
                "w.write(base64.b64encode(b'ab' + p.encode()) + b'\\n')\n"
                "w.write(b'x' * 65400 + p.encode() * 20 + b'y' * 1000000 + b'\\nafter\\n')\n"
                "a = 'added-by-' + 'the-step'\nprint('::add-mask::' + a)\n"
                "print('::error file=a.py,line=3,title=t-' + p + '::bad ' + p)\n"
                "print(a, '\\x00\\x1b[31mred')\n"
                "open(os.environ['GITHUB_STEP_SUMMARY'], 'w').write('sum ' + p)\n",
                "shell": "python",
            },
            {"name": "later", "run": "echo added-by-'the-step' ${{ secrets.PASSWORD }}"},
        ],
        secrets={"PASSWORD": secret, "KEY": key},
        outputs={"o": "${{ secrets.PASSWORD }}"},
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    everything = job.text + repr(job.steps) + repr(job.outputs)
    for hidden in (
        secret,
        "s3cr3",
        "line-one-of-key",
        "line-two-of-key",
        added,
        base64.b64encode(b"ab" + secret.encode()).decode()[3:-3],
    ):
        assert hidden not in everything, hidden
    assert "split ***" in job.text and "after" in job.text and "\ufffd\x1b[31mred" in job.text
    long = next(line for _, line in job.log if line.startswith("xxxx"))
    assert "cut this line at 64 KiB" in long and len(long.encode()) <= LINE_LIMIT
    step = job.step("print ***")
    assert step["summary"] == "sum ***"
    assert step["annotations"] == [
        {"level": "error", "message": "bad ***", "title": "t-***", "path": "a.py", "line": 3}
    ]
    assert "*** ***" in job.lines_of("later")

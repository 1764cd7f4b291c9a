"""How are states, durations and times written?"""

from datetime import timedelta

import pytest
from django.utils import timezone

from ci.templatetags.ci_tags import WORDS, ago, chip, duration, state_icon, workflow_text


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(None, "–"), (0, "0s"), (0.9, "0s"), (59, "59s"), (60, "1m"), (63, "1m 3s"), (3600, "1h"), (3723, "1h 2m"),
     (90_061, "1d 1h"), (86_401, "1d"), (-5, "0s")],
)  # fmt: skip
def test_a_duration_has_two_units(seconds: float | None, words: str) -> None:
    assert duration(None if seconds is None else timedelta(seconds=seconds)) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "just now"), (30, "30 seconds ago"), (61, "1 minute ago"), (7300, "2 hours ago"), (-7300, "in 2 hours"),
     (86_400 * 40, "1 month ago"), (86_400 * 800, "2 years ago")],
)  # fmt: skip
def test_a_moment_is_told_from_now(monkeypatch: pytest.MonkeyPatch, seconds: int, words: str) -> None:
    now = timezone.now()
    monkeypatch.setattr(timezone, "now", lambda: now)
    assert f">{words}</time>" in str(ago(now - timedelta(seconds=seconds)))


@pytest.mark.parametrize(("value", "words"), [(True, "true"), (False, "false"), (3, "3"), (0.5, "0.5"), ("a<b", "a<b")])
def test_an_input_is_written_as_its_workflow_sees_it(value: object, words: str) -> None:
    assert workflow_text(value) == words


def test_never_is_a_time_too() -> None:
    assert ago(None) == "never"


@pytest.mark.parametrize("outcome", WORDS)
def test_a_state_is_icon_word_and_colour(outcome: str) -> None:
    for html in (chip(outcome), state_icon(outcome)):
        assert "<svg" in html
        assert WORDS[outcome] in html
        assert "chip-" in html


def test_an_unknown_state_is_text() -> None:
    assert "<b>" not in chip("<b>")
    assert "&lt;b&gt;" in chip("<b>")
    assert chip(None) == chip("") == ""

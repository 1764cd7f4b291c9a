"""Does terminal output become the right classes, and never markup?"""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ci.web.ansi import PLAIN, Style, plain, render


def html(line: str, style: Style = PLAIN) -> str:
    return render(line, style)[0]


def test_it_leaves_plain_text_alone() -> None:
    assert html("make: done") == "make: done"


def test_it_escapes_markup() -> None:
    assert html("<script>alert('&\"')</script>") == "&lt;script&gt;alert(&#x27;&amp;&quot;&#x27;)&lt;/script&gt;"


@pytest.mark.parametrize(
    ("sequence", "classes"),
    [
        ("31", "f-1"),
        ("97", "f-15"),
        ("42", "b-2"),
        ("100", "b-8"),
        ("1;4;31", "f-1 bold underline"),
        ("38;5;9", "f-9"),
        ("38;5;196", "fr5 fg0 fb0"),
        ("48;5;21", "br0 bg0 bb5"),
        ("38;5;232", "fr0 fg0 fb0"),
        ("38;5;255", "fr5 fg5 fb5"),
        ("38;2;254;1;130", "fr5 fg0 fb2"),
        ("38:2:254:1:130", "fr5 fg0 fb2"),
        ("31;7", "b-1"),
        ("31;42;7", "f-2 b-1"),
        ("7", "inverse"),
    ],
)
def test_it_turns_colours_into_classes(sequence: str, classes: str) -> None:
    assert html(f"\x1b[{sequence}mx") == f'<span class="{classes}">x</span>'


@pytest.mark.parametrize("reset", ["", "0", "39", "00"])
def test_it_resets(reset: str) -> None:
    assert html(f"\x1b[31ma\x1b[{reset}mb") == '<span class="f-1">a</span>b'


def test_it_ends_bold_and_dim_together() -> None:
    assert html("\x1b[1;2ma\x1b[22mb") == '<span class="bold dim">a</span>b'


def test_it_carries_the_style_into_the_next_line() -> None:
    _, style = render("\x1b[1;32mone")
    assert html("two", style) == '<span class="f-2 bold">two</span>'


@pytest.mark.parametrize(
    "garbage",
    [
        "\x1b[2K", "\x1b[1;1H", "\x1b[?25l", "\x1b]0;title\x07", "\x1b]8;;https://e.example\x1b\\", "\x1bPq#0\x1b\\",
        "\x1b(B", "\x1b7", "\x00", "\x07", "\x7f", "\x9b31", "\x1b[38;5;m", "\x1b[38m", "\x1b[38;2;1m", "\x1b[999999m",
    ],
)  # fmt: skip
def test_it_drops_every_other_escape(garbage: str) -> None:
    assert re.sub("<[^>]*>", "", html(f"a{garbage}b")) == ("ab" if garbage != "\x9b31" else "a")


def test_it_drops_an_escape_that_the_line_cuts_off() -> None:
    assert [html(f"a{rest}") for rest in ("\x1b", "\x1b[", "\x1b]0;ti")] == ["a", "a", "a"]


def test_a_carriage_return_keeps_the_last_rewrite() -> None:
    assert html("10%\r50%\r\x1b[32m100%\r") == '<span class="f-2">100%</span>'


def test_a_colour_set_before_the_rewrite_still_holds() -> None:
    assert html("\x1b[31m10%\r20%") == '<span class="f-1">20%</span>'


def test_windows_line_ends_leave_the_line() -> None:
    assert html("text\r\n") == "text"


def test_a_style_survives_the_cursor() -> None:
    for sequence in ("", "31", "38;5;196;1", "48;2;1;2;3;3;9", "7;97;40"):
        _, style = render(f"\x1b[{sequence}m")
        assert Style.load(style.dump()) == style


@pytest.mark.parametrize("forged", ['f-1" onclick="x', "f-99", "b-1", "~f-1", "~~bold onclick", "x" * 5000, "~~~~"])
def test_a_forged_cursor_is_the_plain_style(forged: str) -> None:
    assert Style.load(forged) == PLAIN


def test_plain_is_what_a_title_needs() -> None:
    assert plain("\x1b[31m10%\r<b>20%\x1b[0m") == "<b>20%"


class Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[tuple[str, tuple[str, ...]]] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add((tag, tuple(name for name, _ in attrs)))


@given(st.text(alphabet=st.sampled_from("\x1b\x9b[];:m0123456789<>&\"'/ab\r\x07\\ ")))
def test_whatever_comes_only_spans_with_a_class_come_out(line: str) -> None:
    parser = Elements()
    parser.feed(html(line))
    assert parser.seen <= {("span", ("class",))}
    assert "\x1b" not in html(line)


def test_a_million_characters_take_no_more_than_linear_time() -> None:
    for line in ("\x1b[" * 500_000, "\x1b]" * 500_000, "\x1b[31m" * 200_000, "\r" * 1_000_000, "a\r" * 500_000):
        render(line)

"""Does a workflow command in a foreign runner's log become a mark that our page knows?"""

import pytest

from ci.interop.runner_service.log_marks import marked

LINES = {
    "::group::Run make": "##[group]Run make",
    "::endgroup::": "##[endgroup]",
    "::error::It broke": "##[error]It broke",
    "::warning file=src/a.c,line=3,col=7,title=Unused::x is unused": "##[warning]src/a.c:3:7: Unused: x is unused",
    "::notice title=Note::two%0Alines, 100%25 sure": "##[notice]Note: two lines, 100% sure",
    "::error file=C%3A/a%2Cb.c::no line::here": "##[error]C:/a,b.c: no line::here",
    "::error line=3::a line of no file": "##[error]a line of no file",
    "::debug::seen": "##[debug]seen",
}


@pytest.mark.parametrize("line", LINES)
def test_a_command_becomes_a_mark(line: str) -> None:
    assert marked(line) == LINES[line]


@pytest.mark.parametrize(
    "line",
    ["", "plain", "##[group]Run make", " ::group::x", "::groups::x", "::remove-matcher owner=git::", "a::error::b"],
)
def test_any_other_line_stays_as_it_is(line: str) -> None:
    assert marked(line) == line


def test_a_long_line_of_colons_takes_no_time() -> None:
    line = "::error " + ":a" * 100_000
    assert marked(line) == line

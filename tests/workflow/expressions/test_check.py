"""Are the mistakes in a text's expressions found before anything runs, and at their place?"""

import pytest

from ci.workflow.expressions import ExpressionError, check, parse

STATUS = {"success": (0, 255), "always": (0, 0)}


def test_it_finds_nothing_in_sound_text() -> None:
    assert check("a ${{ github.ref }} ${{ success('job') }}", contexts=["github"], functions=STATUS) == []
    assert check("matrix.x is only text", contexts=["github"], functions={}) == []


def test_it_points_at_the_symbol_in_the_text() -> None:
    text = "a ${{ github.ref == matrix.x }} and ${{ env.y }}"

    assert check(text, contexts=["github"], functions={}) == [
        (
            "Unrecognized named-value: 'matrix'. Located at position 15 within expression: github.ref == matrix.x",
            text.index("matrix"),
        ),
        ("Unrecognized named-value: 'env'. Located at position 1 within expression: env.y", text.index("env")),
    ]


def test_its_offset_counts_characters_where_githubs_position_counts_utf16_units() -> None:
    text = "${{ '\U0001f600' == x }}"
    [(message, offset)] = check(text, contexts=[], functions={})

    assert "Located at position 9 within" in message
    assert text[offset] == "x"


def test_a_condition_is_an_expression_without_braces() -> None:
    text = "  matrix.os == 'x'"

    assert check(text, contexts=["github"], functions=STATUS, is_condition=True) == [
        ("Unrecognized named-value: 'matrix'. Located at position 1 within expression: matrix.os == 'x'", 2)
    ]
    assert check(" ", contexts=[], functions=STATUS, is_condition=True) == []


def test_it_reports_what_is_not_closed_beside_other_mistakes() -> None:
    text = "${{ nope }} ${{ 'open }}"
    found = check(text, contexts=[], functions={})

    assert [offset for _, offset in found] == [text.index("nope"), text.rindex("${{")]
    assert found[1][0].startswith("The expression is not closed.")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${{ }}", "An expression was expected"),
        ("x ${{ insert }}", "The directive 'insert' is not allowed in this context."),
        ("${{ always(1) }}", "Too many parameters supplied: 'always'. Located at position 1 within"),
        ("${{ join() }}", "Too few parameters supplied: 'join'. Located at position 1 within"),
        ("${{ hashFiles('a') }}", "Unrecognized function: 'hashFiles'. Located at position 1 within"),
    ],
)
def test_it_names_the_mistake(text: str, message: str) -> None:
    [(found, _)] = check(text, contexts=[], functions=STATUS)

    assert found.startswith(message)


def test_parse_allows_any_name_unless_told_which() -> None:
    parse("anything.at[all] && what(ever)")
    with pytest.raises(ExpressionError, match="Unrecognized named-value: 'anything'"):
        parse("anything.at[all] && what(ever)", contexts=["all"], functions={"what": (1, 1)})
    with pytest.raises(ExpressionError, match="Unrecognized function: 'what'"):
        parse("anything.at[all] && what(ever)", contexts=["ANYTHING", "all", "ever"], functions={})

"""What becomes of a text with expressions in it?"""

import pytest

from ci.workflow.expressions import ExpressionError, expression_of, render

CONTEXTS = {"matrix": {"os": "linux", "list": [1, 2], "version": 3.10}, "env": {"X": "a"}}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("", ""),
        ("${{ matrix.list }}", [1, 2]),
        ("${{matrix.version}}", 3.1),
        ("${{ true }}", True),
        ("${{ null }}", None),
        (" ${{ true }}", " true"),
        ("${{ matrix.os }}-${{ matrix.version }}", "linux-3.1"),
        ("a ${{ matrix.list }} b", "a Array b"),
        ("x${{ null }}y", "xy"),
        ("${{ '}}' }}", "}}"),
        ("${{ 'it''s }}' }}!", "it's }}!"),
        ("$ {{ matrix.os }}", "$ {{ matrix.os }}"),
        ("{0} ${{ env.x }} {{", "{0} a {{"),
    ],
)
def test_it_keeps_the_type_of_a_lone_expression_only(text: str, value: object) -> None:
    assert render(text, CONTEXTS) == value


@pytest.mark.parametrize("text", ["${{ matrix.os", "a ${{ 'x }}", "${{ }}", "b ${{}}", "${{ nope }}"])
def test_it_refuses_what_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError):
        render(text, CONTEXTS)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("plain", None),
        ("${{ a.b }}", "a.b"),
        ("echo version=${{ inputs.version }}", "format('echo version={0}', inputs.version)"),
        ("it's {x} ${{ a }}${{ b }}", "format('it''s {{x}} {0}{1}', a, b)"),
    ],
)
def test_a_mixed_text_is_one_format_expression(text: str, expression: str | None) -> None:
    assert expression_of(text) == expression

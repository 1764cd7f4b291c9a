"""What becomes of a text with expressions in it?"""

import pytest

from ci.workflow.expressions import ExpressionError, expression_of, render, renderer

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
    assert renderer(text, CONTEXTS)() == value


@pytest.mark.parametrize("text", ["${{ matrix.os", "a ${{ 'x }}", "${{ }}", "b ${{}}", "${{ nope }}"])
def test_it_refuses_what_is_no_expression(text: str) -> None:
    with pytest.raises(ExpressionError) as once:
        render(text, CONTEXTS)
    again = renderer(text, CONTEXTS)
    with pytest.raises(ExpressionError) as repeated:
        again()
    assert str(repeated.value) == str(once.value)


def test_a_renderer_sees_the_values_that_its_contexts_have_by_then() -> None:
    contexts: dict[str, object] = {"matrix": {"os": "linux"}, "env": {}}
    text = renderer("on ${{ matrix.os }}, ${{ MATRIX.os }} ${{ matrix.v }}", contexts)
    assert text() == "on linux, linux "
    contexts["matrix"] = {"OS": "windows", "v": 2}
    assert text() == "on windows, windows 2"


def test_a_renderer_bounds_each_expression_and_the_whole_text_as_render_does() -> None:
    contexts = {"matrix": {"long": "x" * 3_000_000}}
    for text in ("a ${{ matrix.long }}${{ matrix.long }}", "a ${{ format('{0}{0}', matrix.long) }}"):
        with pytest.raises(ExpressionError, match="maximum allowed memory size"):
            renderer(text, contexts)()
    short = renderer("a ${{ format('{0}', matrix.long) }}", contexts)
    assert short() == short() == "a " + "x" * 3_000_000


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

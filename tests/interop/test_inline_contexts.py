"""Do expressions mean the same once the values of a context are written into them?"""

import pytest

from ci.interop.inlining import as_text, as_tree, inline, inline_condition, inline_tree
from ci.workflow.expressions import evaluate, render

INPUTS = {
    "name": "it's ${{ here }}",
    "flag": False,
    "on": True,
    "count": 3,
    "ratio": -0.5,
    "none": None,
    "two words": "x",
    "tree": {"Key": ["a", {"b": 1}]},
    "line\nbreak": "a\nb",
}
VALUES = {"inputs": INPUTS, "strategy": {"fail-fast": True, "job-index": 2, "max-parallel": None}}
CONTEXTS = {**VALUES, "env": {"inputs": "of env", "X": "3"}, "github": {"ref": "main"}}

SOURCES = [
    "inputs.name",
    "INPUTS.Name",
    "inputs['name']",
    "inputs['two words']",
    "inputs['line\nbreak']",
    "inputs.unknown",
    "inputs . name",
    "inputs.flag == false && 'no' || 'yes'",
    "!inputs.flag",
    "inputs.on == true",
    "inputs.count == '3'",
    "inputs.ratio < 0",
    "inputs.none == ''",
    "inputs.tree.key[1].b",
    "inputs.tree.Key[0]",
    "inputs.tree.*",
    "toJSON(inputs.tree)",
    "toJSON(inputs)",
    "inputs[format('{0}', 'name')]",
    "inputs[env.X]",
    "inputs.*",
    "env.inputs",
    "env['inputs']",
    "contains(inputs.name, 'here')",
    "format('{0} inputs.name {1}', inputs.count, inputs['flag'])",
    "'inputs.name'",
    "'it''s inputs'",
    "strategy.fail-fast && strategy.job-index",
    "strategy.max-parallel",
    "github.ref",
]


@pytest.mark.parametrize("source", SOURCES)
def test_an_expression_has_the_same_value_without_the_context(source):
    text = f"${{{{ {source} }}}}"
    inlined = inline(text, VALUES)
    left = {name: value for name, value in CONTEXTS.items() if name not in VALUES}
    assert render(inlined, left) == render(text, CONTEXTS)


def test_a_text_around_expressions_stays_as_it_is():
    text = "run inputs.name ${{ inputs.count }}, }} ${{ github.ref }}'${{inputs.flag}}'"
    assert inline(text, VALUES) == "run inputs.name ${{ 3 }}, }} ${{ github.ref }}'${{ false }}'"


def test_a_text_that_names_no_such_context_is_untouched():
    text = "${{github.ref}} and ${{  env.inputs  }}"
    assert inline(text, VALUES) == text


@pytest.mark.parametrize(
    "condition", ["inputs.on && github.ref == 'main'", "${{ inputs.on }}", "always() && inputs.on"]
)
def test_a_condition_is_an_expression_without_braces_too(condition):
    inlined = inline_condition(condition, VALUES)
    assert "inputs" not in inlined
    assert "true" in inlined


def test_a_condition_that_is_no_text_stays():
    assert inline_condition(True, VALUES) is True
    assert inline_condition(None, VALUES) is None


def test_a_tree_is_inlined_in_all_its_texts():
    tree = {"a": ["${{ inputs.count }}", 1, None], "b": {"c": "inputs.count"}}
    assert inline_tree(tree, VALUES) == {"a": ["${{ 3 }}", 1, None], "b": {"c": "inputs.count"}}


def test_a_text_that_was_evaluated_is_not_evaluated_again():
    hostile = "title ${{ secrets.KEY }} }} ${{"
    assert render(as_text(hostile), {}) == hostile
    assert render(as_tree({"x": [hostile]})["x"][0], {}) == hostile


def test_an_input_that_holds_an_expression_stays_a_text():
    assert evaluate(inline("${{ inputs.name }}", VALUES)[3:-2].strip(), {}) == INPUTS["name"]

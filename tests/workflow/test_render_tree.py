"""What does a tree with expressions in it evaluate to?"""

import pytest

from ci.workflow.expressions import ExpressionError
from ci.workflow.trees import render_texts, render_tree

CONTEXTS = {"vars": {"name": "N", "list": "[1, 2]", "map": '{"b": 2, "c": true}'}}


def test_texts_keys_and_insertions_are_evaluated() -> None:
    tree = {
        "x-${{ vars.name }}": ["${{ vars.name }}", 1, None],
        "whole": "${{ fromJSON(vars.list) }}",
        "${{ insert }}": "${{ fromJSON(vars.map) }}",
    }
    assert render_tree(tree, CONTEXTS) == {"x-N": ["N", 1, None], "whole": [1, 2], "b": 2, "c": True}


def test_texts_by_name() -> None:
    assert render_texts("${{ fromJSON(vars.map) }}", CONTEXTS) == {"b": "2", "c": "true"}
    assert render_texts(None, CONTEXTS) == {}


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": "${{ fromJSON(vars.list) }}"}, "A sequence was not expected as the value of 'a'"),
        ({"${{ insert }}": "text"}, "A mapping was expected under"),
        ("text", "A mapping was expected"),
    ],
)
def test_what_is_no_mapping_of_texts_is_refused(tree: object, message: str) -> None:
    with pytest.raises(ExpressionError, match=message):
        render_texts(tree, CONTEXTS)

"""What does a tree of values with expressions in it evaluate to?"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from ci.workflow.expressions import ExpressionError, named_contexts, render, to_string

INSERT = re.compile(r"\s*\$\{\{\s*insert\s*\}\}\s*")
_OPEN = "${{"
Contexts = Mapping[str, object]
Functions = Mapping[str, Callable[..., object]]


def render_tree(value: object, contexts: Contexts, functions: Functions | None = None) -> Any:
    """A copy of a tree with every text and key evaluated; what one expression stands for keeps its type. The key
    `${{ insert }}` takes over the pairs of its mapping. Raises ExpressionError."""
    if isinstance(value, str):
        return render(value, contexts, functions) if _OPEN in value else value
    if isinstance(value, list):
        return [render_tree(item, contexts, functions) for item in value]
    if not isinstance(value, dict):
        return value
    result: dict[str, Any] = {}
    for key, item in value.items():
        rendered = render_tree(item, contexts, functions)
        if INSERT.fullmatch(key):
            if not isinstance(rendered, Mapping):
                raise ExpressionError("A mapping was expected under ${{ insert }}", stage="evaluation")
            result.update(rendered)
        else:
            result[to_string(render(key, contexts, functions)) if _OPEN in key else key] = rendered
    return result


def names_any(value: object, contexts: frozenset[str]) -> bool:
    """Whether an expression in a tree, or in one of its keys, names one of the contexts (in lower case). A text that
    cannot be read counts as one that does: whoever renders it will say what is wrong."""
    if isinstance(value, str):
        if _OPEN not in value:
            return False
        try:
            return not named_contexts(value).isdisjoint(contexts)
        except ExpressionError:
            return True
    if isinstance(value, list):
        return any(names_any(item, contexts) for item in value)
    if isinstance(value, dict):
        return any(names_any(key, contexts) or names_any(item, contexts) for key, item in value.items())
    return False


def render_texts(value: object, contexts: Contexts, functions: Functions | None = None) -> dict[str, str]:
    """An `env`, `with` or `outputs`, a mapping or the expression of one, as texts by name. Raises ExpressionError."""
    rendered = render_tree(value, contexts, functions)
    if rendered is None or rendered == "":
        return {}
    if not isinstance(rendered, Mapping):
        raise ExpressionError("A mapping was expected", stage="evaluation")
    for name, item in rendered.items():
        if isinstance(item, (Mapping, list)):
            kind = "mapping" if isinstance(item, Mapping) else "sequence"
            raise ExpressionError(f"A {kind} was not expected as the value of '{name}'", stage="evaluation")
    return {name: to_string(item) for name, item in rendered.items()}

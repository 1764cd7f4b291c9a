"""How do the values of a context come to a runner whose protocol has no field for it? Written into the expressions.

`inputs` of a called workflow, and `strategy` of a leg: the protocol of Forgejo and Gitea knows neither, as its servers
have no jobs of called workflows of their own. A runner sees `${{ 'x' == 'x' }}` where the file says
`${{ inputs.name == 'x' }}`, which any evaluator understands, with the value's own type.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from ci.workflow.expressions.lexer import Kind, Token, tokens
from ci.workflow.expressions.templates import OPEN, segments

Values = Mapping[str, Mapping[str, Any]]
# Text that was evaluated already must not be evaluated once more: what an event brought in could then read secrets.
_OPENED = "${{ '" + OPEN + "' }}"


def as_text(text: str) -> str:
    """A text that a runner will take as it is, though it evaluates what it is given."""
    return text.replace(OPEN, _OPENED)


def as_tree(value: Any) -> Any:
    """`as_text` of every text in a JSON-able value."""
    if isinstance(value, str):
        return as_text(value)
    if isinstance(value, Mapping):
        return {as_text(str(key)): as_tree(item) for key, item in value.items()}
    if isinstance(value, list):
        return [as_tree(item) for item in value]
    return value


def inline_tree(value: Any, values: Values) -> Any:
    """`inline` of every text in a JSON-able value."""
    if isinstance(value, str):
        return inline(value, values)
    if isinstance(value, Mapping):
        return {inline(str(key), values): inline_tree(item, values) for key, item in value.items()}
    if isinstance(value, list):
        return [inline_tree(item, values) for item in value]
    return value


def inline(text: str, values: Values) -> str:
    """A text whose `${{ }}` name none of the contexts in `values` (by their names in lower case) any more.

    Raises ExpressionError.
    """
    if OPEN not in text:
        return text
    parts = [
        part if isinstance(part, str) else (part.source, inline_source(part.source, values)) for part in segments(text)
    ]
    if all(isinstance(part, str) or part[0] == part[1] for part in parts):
        return text
    return "".join(part if isinstance(part, str) else "${{ " + part[1] + " }}" for part in parts)


def inline_condition(text: Any, values: Values) -> Any:
    """The same of an `if`, which is an expression without `${{ }}` too. Raises ExpressionError."""
    if not isinstance(text, str):
        return text
    return inline(text, values) if OPEN in text else inline_source(text, values)


def inline_source(source: str, values: Values) -> str:
    """The same of one expression. Raises ExpressionError."""
    found = list(tokens(source))
    result: list[str] = []
    end = index = 0
    while index < len(found):
        token = found[index]
        context = values.get(token.text.lower()) if token.kind is Kind.NAME else None
        if context is None:
            index += 1
            continue
        result.append(source[end : token.start])
        name, taken = _property(found, index + 1)
        result.append(_literal(context) if name is None else _literal(_get(context, name)))
        index += 1 + taken
        last = found[index - 1]
        end = last.start + len(last.text)
    return "".join([*result, source[end:]]) if result else source


def _property(found: list[Token], index: int) -> tuple[str | None, int]:
    """The name in a `.name` or `['name']` at `index`, and how many symbols that is."""
    after = found[index : index + 3]
    kinds = [token.kind for token in after]
    if kinds[:2] == [Kind.DOT, Kind.PROPERTY]:
        return after[1].text, 2
    if kinds == [Kind.BRACKET, Kind.LITERAL, Kind.CLOSE_BRACKET] and isinstance(after[1].value, str):
        return after[1].value, 3
    return None, 0


def _get(context: Mapping[str, Any], name: str) -> Any:
    """As expressions look up: whatever the case, and null where there is nothing."""
    return next((value for key, value in context.items() if key.casefold() == name.casefold()), None)


def _literal(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, int | float):
        return json.dumps(value) if math.isfinite(value) else "null"
    return f"fromJSON({_literal(json.dumps(value, ensure_ascii=False))})"

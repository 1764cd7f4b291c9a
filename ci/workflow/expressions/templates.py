"""What does a text with ``${{ }}`` in it stand for, and when is an ``if:`` true?

GitHub docs, "Evaluate expressions in workflows and actions"; reading of the text as in actions/runner's
TemplateReader, of conditions as in its WorkflowTemplateConverter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial

from ci.workflow.expressions.coercion import to_string, trim, truthy
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.memory import RESULT_LIMIT, TEXT_OVERHEAD, exceeded, text_bytes
from ci.workflow.expressions.nodes import Literal
from ci.workflow.expressions.program import TOO_DEEP, evaluate, load, load_for, parse, scope_for
from ci.workflow.expressions.scope import Function, Run, Scope

OPEN = "${{"
SUCCESS = "success()"
NOT_CLOSED = (
    "The expression is not closed. An unescaped ${{ sequence was found, but the closing }} sequence was not found."
)
EXPECTED = "An expression was expected"
DIRECTIVE = (
    "The directive 'insert' is not allowed in this context. Directives are not supported for expressions that are "
    "embedded within a string. Directives are only supported when the entire value is an expression."
)
# Only single characters are repeated possessively: Python before 3.11.5 mismatches groups repeated so.
_REST = re.compile(r"[^'}]*+(?:(?:'[^']*+'|\}(?!\}))[^'}]*+)*\}\}")
_SHORT = 2_000


@dataclass(frozen=True, slots=True)
class Embedded:
    """An expression inside a text: its source without ``${{ }}`` and blanks, and where that begins in the text."""

    source: str
    offset: int


Segment = str | Embedded


def segments(text: str) -> tuple[Segment, ...]:
    """The literal and the embedded parts of a text. Raises ExpressionError (parsing) for an unclosed ``${{``."""
    parts, unclosed = _short_split(text) if len(text) <= _SHORT else _split(text)
    if unclosed is not None:
        raise ExpressionError(NOT_CLOSED, stage="parsing", index=unclosed)
    return parts


def _split(text: str) -> tuple[tuple[Segment, ...], int | None]:
    """The parts of a text up to an unclosed ``${{``, and the offset of that."""
    parts: list[Segment] = []
    index = 0
    while True:
        start = text.find(OPEN, index)
        if start < 0:
            break
        if start > index:
            parts.append(text[index:start])
        inner = start + len(OPEN)
        rest = _REST.match(text, inner)
        if rest is None:
            return tuple(parts), start
        raw = text[inner : rest.end() - 2]
        source = trim(raw)
        parts.append(Embedded(source, inner + raw.index(source)))
        index = rest.end()
    if index < len(text):
        parts.append(text[index:])
    return tuple(parts), None


_short_split: Callable[[str], tuple[tuple[Segment, ...], int | None]] = lru_cache(maxsize=512)(_split)


def render(text: str, contexts: Mapping[str, object], functions: Mapping[str, Function] | None = None) -> object:
    """A text with its ``${{ }}`` evaluated: a single expression keeps its type, anything else becomes text.

    The result is at most 10 MiB. Raises ExpressionError.
    """
    if OPEN not in text:
        return text
    parts = segments(text)
    if len(parts) == 1 and isinstance(parts[0], Embedded):
        return _value(parts[0], contexts, functions)
    size = 0
    texts: list[str] = []
    for part in parts:
        piece = part if isinstance(part, str) else to_string(_value(part, contexts, functions))
        size += text_bytes(piece)
        if size > RESULT_LIMIT:
            raise exceeded()
        texts.append(piece)
    return "".join(texts)


def renderer(text: str, contexts: Mapping[str, object]) -> Callable[[], object]:
    """``render`` of one text again and again, as for the legs of a matrix: the text is read only once. The values of
    ``contexts`` may be exchanged between two calls, its keys may not. Raises nothing; the answer does as render."""
    try:
        parts = segments(text)
        programs = [part if isinstance(part, str) else load_for(part.source, contexts, {}) for part in parts]
        known = [isinstance(one, str) or scope_for(one, contexts, {}, limit=0).values is contexts for one in programs]
    except ExpressionError:
        return partial(render, text, contexts)
    if len(parts) < 2 or not all(known) or not all(isinstance(part, str) or part.source for part in parts):
        return partial(render, text, contexts)
    pieces = [one if isinstance(one, str) else one.run for one in programs]
    scope = Scope(contexts, {}, RESULT_LIMIT)
    return lambda: _join(pieces, scope)


def _join(pieces: list[str | Run], scope: Scope) -> str:
    memory = scope.memory
    size = 0
    texts: list[str] = []
    try:
        for piece in pieces:
            if not isinstance(piece, str):
                memory.held = memory.work = 0
                piece = to_string(piece(scope))
            size += TEXT_OVERHEAD + 2 * len(piece)
            if size > RESULT_LIMIT:
                raise exceeded()
            texts.append(piece)
    except RecursionError:
        raise ExpressionError(TOO_DEEP, stage="evaluation") from None
    return "".join(texts)


def named_contexts(text: str) -> frozenset[str]:
    """The contexts that the expressions in a text name, in lower case. Raises ExpressionError (lexing or parsing)."""
    sources = [part.source for part in segments(text) if isinstance(part, Embedded)]
    return frozenset(name.lower() for source in sources for name in load(source).names)


def _value(part: Embedded, contexts: Mapping[str, object], functions: Mapping[str, Function] | None) -> object:
    if not part.source:
        raise ExpressionError(EXPECTED, stage="parsing", index=part.offset)
    return evaluate(part.source, contexts, functions, limit=RESULT_LIMIT)


def expression_of(text: str) -> str | None:
    """The one expression a text amounts to, None for plain text: ``v${{ a }}`` is ``format('v{0}', a)``.

    Raises ExpressionError (parsing) for an unclosed or empty ``${{ }}``.
    """
    if OPEN not in text:
        return None
    parts = segments(text)
    sources = [part.source for part in parts if isinstance(part, Embedded)]
    if not all(sources):
        raise ExpressionError(EXPECTED, stage="parsing")
    if len(parts) == 1:
        return sources[0]
    template = ""
    number = 0
    for part in parts:
        if isinstance(part, str):
            template += part.replace("'", "''").replace("{", "{{").replace("}", "}}")
        else:
            template += f"{{{number}}}"
            number += 1
    return "format(" + ", ".join([f"'{template}'", *sources]) + ")"


def condition_text(text: str | bool | int | float | None) -> str:
    """The expression of an ``if:`` before the implicit success() is added; empty where nothing is asked.

    Raises ExpressionError (parsing) for an unclosed or empty ``${{ }}``.
    """
    if text is None or not isinstance(text, str):
        return to_string(text)
    source = expression_of(text)
    if source is None:
        return trim(text)
    literal = _lone_text(source)
    return source if literal is None else trim(literal)


def _lone_text(source: str) -> str | None:
    """GitHub reads a lone literal text in ``${{ }}`` as the text itself, so that it becomes the condition."""
    if not source.startswith("'"):
        return None
    try:
        root = load(source).tree.root
    except ExpressionError:
        return None
    return root.value if isinstance(root, Literal) and isinstance(root.value, str) else None


def condition_source(text: str | bool | int | float | None) -> str:
    """The whole expression of an ``if:``, with ``success() && (...)`` unless it calls a status function.

    Raises ExpressionError (lexing or parsing).
    """
    source = condition_text(text)
    if not source:
        return SUCCESS
    return source if load(source).calls_status_function() else f"{SUCCESS} && ({source})"


def asks_status(text: str | bool | int | float | None) -> bool:
    """Does an ``if:`` call a status function itself? Otherwise success() is implied.

    Raises ExpressionError (lexing or parsing).
    """
    source = condition_text(text)
    return bool(source) and load(source).calls_status_function()


def condition(
    text: str | bool | int | float | None,
    contexts: Mapping[str, object],
    functions: Mapping[str, Function] | None = None,
) -> bool:
    """Is an ``if:`` true? ``functions`` gives success, failure, always and cancelled.

    Without a call of one of these, success() must hold too; whether there is one is decided on the parsed tree.
    Text around ``${{ }}`` makes a text, which is true when it is not empty. Raises ExpressionError.
    """
    extra = functions or {}
    source = condition_text(text)
    if not source:
        return truthy(evaluate(SUCCESS, contexts, extra))
    program = load_for(source, contexts, extra)
    scope = scope_for(program, contexts, extra, limit=RESULT_LIMIT)
    if not program.calls_status_function() and not truthy(evaluate(SUCCESS, contexts, extra)):
        return False
    return truthy(program.evaluate(scope))


def check(
    text: str,
    *,
    contexts: Collection[str] | None,
    functions: Mapping[str, tuple[int, int]] | None,
    is_condition: bool = False,
) -> list[tuple[str, int]]:
    """What is wrong with the expressions of a text: message, and offset in the text (characters from 0).

    ``contexts`` and ``functions`` as in parse(). An ``is_condition`` text is an expression even without ``${{ }}``.
    """
    if OPEN not in text:
        source = trim(text)
        if not is_condition or not source:
            return []
        return _check_one(source, text.index(source), contexts, functions)
    parts, unclosed = _split(text)
    problems: list[tuple[str, int]] = []
    for part in parts:
        if isinstance(part, Embedded):
            problems.extend(_check_embedded(part, len(parts) > 1, contexts, functions))
    if unclosed is not None:
        problems.append((NOT_CLOSED, unclosed))
    if is_condition and not problems and len(parts) == 1:
        source = condition_text(text)
        if source and source != expression_of(text):
            return _check_one(source, text.index("'") + 1, contexts, functions)
    return problems


def _check_embedded(
    part: Embedded,
    mixed: bool,
    contexts: Collection[str] | None,
    functions: Mapping[str, tuple[int, int]] | None,
) -> list[tuple[str, int]]:
    if not part.source:
        return [(EXPECTED, part.offset)]
    if mixed and part.source == "insert":
        return [(DIRECTIVE, part.offset)]
    return _check_one(part.source, part.offset, contexts, functions)


def _check_one(
    source: str,
    offset: int,
    contexts: Collection[str] | None,
    functions: Mapping[str, tuple[int, int]] | None,
) -> list[tuple[str, int]]:
    try:
        parse(source, contexts=contexts, functions=functions)
    except ExpressionError as error:
        return [(error.message, offset + (error.index or 0))]
    return []

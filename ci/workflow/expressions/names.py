"""May an expression use these names here, and with so many arguments?"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ci.workflow.expressions.coercion import fold
from ci.workflow.expressions.errors import ExpressionError, located
from ci.workflow.expressions.nodes import Reference

MAX_ARGUMENTS = 255
UNFINISHED_CALL = -1

# Name in upper case -> fewest and most arguments.
BUILT_INS: Mapping[str, tuple[int, int]] = {
    "CASE": (3, MAX_ARGUMENTS),
    "CONTAINS": (2, 2),
    "ENDSWITH": (2, 2),
    "FORMAT": (1, MAX_ARGUMENTS),
    "FROMJSON": (1, 1),
    "JOIN": (1, 2),
    "STARTSWITH": (2, 2),
    "TOJSON": (1, 1),
}


def check_arity(source: str, reference: Reference, limits: tuple[int, int]) -> None:
    """Raises ExpressionError (parsing) where a call has too few or too many arguments."""
    count = reference.arguments
    if count is None or count == UNFINISHED_CALL:
        return
    if count < limits[0]:
        description = "Too few parameters supplied"
    elif count > limits[1]:
        description = "Too many parameters supplied"
    elif count % 2 == 0 and fold(reference.name) == "CASE":
        description = "Even number of parameters supplied, requires an odd number of parameters"
    else:
        return
    raise located(description, symbol=reference.name, source=source, index=reference.start, stage="parsing")


def check_references(
    source: str,
    references: Collection[Reference],
    *,
    contexts: Collection[str] | None,
    functions: Mapping[str, tuple[int, int]] | None,
) -> None:
    """Raises ExpressionError (parsing) for the first name that is no context or function of this place.

    None allows any; names compare without case. ``functions`` are those beside the built-in ones.
    """
    known = None if contexts is None else {fold(name) for name in contexts}
    callable_here = None if functions is None else {fold(name): limits for name, limits in functions.items()}
    for reference in references:
        name = fold(reference.name)
        if reference.arguments is None:
            if known is not None and name not in known:
                raise _unrecognized("named-value", reference, source)
        elif name not in BUILT_INS and callable_here is not None:
            if name not in callable_here:
                raise _unrecognized("function", reference, source)
            check_arity(source, reference, callable_here[name])


def _unrecognized(what: str, reference: Reference, source: str) -> ExpressionError:
    return located(f"Unrecognized {what}", symbol=reference.name, source=source, index=reference.start, stage="parsing")

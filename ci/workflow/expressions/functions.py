"""What do the built-in functions compute from values they already have?

GitHub docs, "Evaluate expressions in workflows and actions" (functions); details as in actions/runner's functions.
Which arguments are evaluated at all, and when, is the evaluator's part.
"""

from __future__ import annotations

from collections.abc import Callable

from ci.workflow.expressions.coercion import equal, fold, is_array, is_primitive, to_number, to_string
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.memory import exceeded, text_bytes

_HIGHEST_ARGUMENT = 255


def contains_item(items: list[object] | tuple[object, ...], wanted: object) -> bool:
    if not isinstance(wanted, str):
        return any(equal(wanted, item) for item in items)
    # The same rule as equal(), with what it needs of the one text computed once.
    folded = fold(wanted)
    number = to_number(wanted)
    for item in items:
        if isinstance(item, str):
            if len(item) == len(folded) and fold(item) == folded:
                return True
        elif is_primitive(item) and to_number(item) == number:
            return True
    return False


def contains_text(text: object, wanted: object) -> bool:
    return is_primitive(wanted) and fold(to_string(wanted)) in fold(to_string(text))


def starts_with(text: object, start: object) -> bool:
    if not (is_primitive(text) and is_primitive(start)):
        return False
    wanted = to_string(start)
    return fold(to_string(text)[: len(wanted)]) == fold(wanted)


def ends_with(text: object, end: object) -> bool:
    if not (is_primitive(text) and is_primitive(end)):
        return False
    wanted = to_string(end)
    whole = to_string(text)
    return len(whole) >= len(wanted) and fold(whole[len(whole) - len(wanted) :]) == fold(wanted)


def join(items: object, separator: Callable[[], object], limit: int) -> str:
    """``separator`` is only asked for where two items meet. Raises ExpressionError beyond ``limit`` bytes."""
    if is_primitive(items):
        return to_string(items)
    if not is_array(items):
        return ""
    assert isinstance(items, (list, tuple))
    texts = [to_string(item) for item in items]
    between = ","
    if len(texts) > 1:
        given = separator()
        between = to_string(given) if is_primitive(given) else ","
    size = sum(map(text_bytes, texts)) + text_bytes(between) * max(0, len(texts) - 1)
    if size > limit:
        raise exceeded()
    return between.join(texts)


def format_text(template: str, count: int, argument: Callable[[int], str], limit: int) -> str:
    """``template`` with ``{0}`` and so on replaced; ``argument`` gives the text of one of ``count`` arguments.

    Raises ExpressionError (evaluation) for a malformed template or beyond ``limit`` bytes.
    """
    size = 0
    result: list[str] = []
    for segment in _segments(template, count):
        text = segment if isinstance(segment, str) else argument(segment)
        if text:
            size += text_bytes(text)
            result.append(text)
        if size > limit:
            raise exceeded()
    return "".join(result)


def _segments(template: str, count: int) -> list[str | int]:
    """Literal text and numbers of arguments, in order."""
    segments: list[str | int] = []
    index = 0
    left = template.find("{")
    right = template.find("}")
    while True:
        if 0 <= left < index:
            left = template.find("{", index)
        if 0 <= right < index:
            right = template.find("}", index)
        if left >= 0 and (right < 0 or right > left):
            if template.startswith("{", left + 1):
                segments.append(template[index : left + 1])
                index = left + 2
                continue
            number, end = _placeholder(template, left, count)
            segments.extend((template[index:left], number))
            index = end
        elif right >= 0:
            if not template.startswith("}", right + 1):
                raise _invalid(template)
            segments.append(template[index : right + 1])
            index = right + 2
        else:
            segments.append(template[index:])
            return segments


def _placeholder(template: str, left: int, count: int) -> tuple[int, int]:
    """The argument's number and the index after its closing brace."""
    end = left + 1
    while end < len(template) and template[end] in "0123456789":
        end += 1
    digits = template[left + 1 : end].lstrip("0") or template[left + 1 : end][:1]
    if not digits or len(digits) > 3 or int(digits) > _HIGHEST_ARGUMENT:
        raise _invalid(template)
    if template.startswith("}", end):
        specifiers = ""
    elif template.startswith(":", end):
        specifiers, end = _specifiers(template, end + 1)
    else:
        raise _invalid(template)
    if int(digits) >= count:
        message = f"The following format string references more arguments than were supplied: {template}"
        raise ExpressionError(message, stage="evaluation")
    if specifiers:
        raise ExpressionError(f"The format specifiers '{specifiers}' are not valid", stage="evaluation")
    return int(digits), end + 1


def _specifiers(template: str, start: int) -> tuple[str, int]:
    """The text between the colon and the closing brace, and where that brace is; ``}}`` is a brace in the text."""
    end = template.find("}", start)
    while end >= 0 and template.startswith("}", end + 1):
        end = template.find("}", end + 2)
    if end < 0:
        raise _invalid(template)
    return template[start:end].replace("}}", "}"), end


def _invalid(template: str) -> ExpressionError:
    return ExpressionError(f"The following format string is invalid: {template}", stage="evaluation")

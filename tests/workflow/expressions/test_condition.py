"""When is an ``if:`` true?"""

from collections.abc import Callable

import pytest

from ci.workflow.expressions import ExpressionError, condition, condition_source


def status(success: bool) -> dict[str, Callable[..., object]]:
    return {
        "success": lambda *jobs: success,
        "failure": lambda *jobs: not success,
        "always": lambda: True,
        "cancelled": lambda: False,
    }


@pytest.mark.parametrize(
    ("text", "after_success", "after_failure"),
    [
        (None, True, False),
        ("", True, False),
        ("  ", True, False),
        (True, True, False),
        (False, False, False),
        (0, False, False),
        (123, True, False),
        ("github.x == 'A'", True, False),
        ("${{ github.x == 'b' }}", False, False),
        ("always()", True, True),
        ("ALWAYS() && github.x", True, True),
        ("!cancelled()", True, True),
        ("failure()", False, True),
        ("contains(github.x, failure())", False, False),
        ("true || 'success()'", True, False),
        ("github.success", False, False),
        ("github['always()']", False, False),
        ("${{ failure() }} text", True, True),
        ("${{ false }} ", True, False),
        ("false && ${{ github.x }}", True, False),
        ("${{ 'false' }}", False, False),
        ("'false'", True, False),
    ],
)
def test_it_needs_success_unless_a_status_function_is_called(
    text: str | bool | int | None, after_success: bool, after_failure: bool
) -> None:
    contexts = {"github": {"x": "a"}}

    assert condition(text, contexts, status(True)) is after_success
    assert condition(text, contexts, status(False)) is after_failure


def test_an_unknown_name_is_an_error_even_when_success_is_false() -> None:
    with pytest.raises(ExpressionError, match="Unrecognized named-value: 'matrix'") as caught:
        condition("1 ||matrix.a", {"github": {}}, status(False))
    assert caught.value.position == 5


@pytest.mark.parametrize(
    ("text", "source"),
    [
        (None, "success()"),
        (" ", "success()"),
        (123, "success() && (123)"),
        ("github.foo == 'bar'", "success() && (github.foo == 'bar')"),
        ("${{ a }}", "success() && (a)"),
        ("always() || a", "always() || a"),
        ("true || 'success()'", "success() && (true || 'success()')"),
        ("x ${{ a }}", "success() && (format('x {0}', a))"),
    ],
)
def test_the_whole_condition_can_be_shown(text: str | int | None, source: str) -> None:
    assert condition_source(text) == source

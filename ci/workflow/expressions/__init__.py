"""What do GitHub's expressions, ``${{ }}`` and ``if:`` mean?"""

from ci.workflow.expressions.coercion import equal, to_string, truthy
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.lookup import ExactNames
from ci.workflow.expressions.nodes import Node, walk
from ci.workflow.expressions.program import evaluate, parse
from ci.workflow.expressions.templates import (
    asks_status,
    check,
    condition,
    condition_source,
    expression_of,
    named_contexts,
    render,
    renderer,
)

__all__ = [
    "ExactNames",
    "ExpressionError",
    "Node",
    "asks_status",
    "check",
    "condition",
    "condition_source",
    "equal",
    "evaluate",
    "expression_of",
    "named_contexts",
    "parse",
    "render",
    "renderer",
    "to_string",
    "truthy",
    "walk",
]

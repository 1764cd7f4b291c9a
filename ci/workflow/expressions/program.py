"""How is the text of an expression evaluated or checked?"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from threading import Lock
from typing import TypeVar

from ci.workflow.expressions.coercion import FilteredArray, fold
from ci.workflow.expressions.errors import ExpressionError
from ci.workflow.expressions.evaluator import compile_tree
from ci.workflow.expressions.lookup import MISSING, find
from ci.workflow.expressions.memory import EXPRESSION_LIMIT
from ci.workflow.expressions.names import BUILT_INS, MAX_ARGUMENTS, check_references
from ci.workflow.expressions.nodes import Literal, Node
from ci.workflow.expressions.parser import SyntaxFailure, Tree, parse_tree
from ci.workflow.expressions.scope import Function, Run, Scope

STATUS_FUNCTIONS = frozenset(("SUCCESS", "FAILURE", "ALWAYS", "CANCELLED"))
TOO_DEEP = "The expression's values are nested too deeply"

Anything = TypeVar("Anything")


class Program:
    """An expression ready to be evaluated any number of times."""

    __slots__ = ("_run", "functions", "names", "tree")

    def __init__(self, source: str) -> None:
        self.tree: Tree = parse_tree(source)
        self._run: Run | None = None
        names = [each.name for each in self.tree.references if each.arguments is None]
        called = [each.name for each in self.tree.references if each.arguments is not None]
        self.names = tuple(dict.fromkeys(names))
        self.functions = tuple(dict.fromkeys(name for name in called if fold(name) not in BUILT_INS))

    @property
    def run(self) -> Run:
        """The tree as closures, made when it is first evaluated: most expressions of a file are only checked."""
        if self._run is None:
            self._run = compile_tree(self.tree.root)
        return self._run

    def calls_status_function(self) -> bool:
        """Does it call success, failure, always or cancelled anywhere?"""
        return any(fold(name) in STATUS_FUNCTIONS for name in self.functions)

    def evaluate(self, scope: Scope) -> object:
        """The value. Raises ExpressionError (evaluation)."""
        try:
            value = self.run(scope)
        except RecursionError:
            raise ExpressionError(TOO_DEEP, stage="evaluation") from None
        return list(value) if type(value) is FilteredArray else value


class _Cache:
    """Programs by their text. What is bounded is the length of all texts, so that nobody can fill the memory."""

    def __init__(self, most_characters: int) -> None:
        self.most_characters = most_characters
        self._programs: dict[str, Program] = {}
        self._characters = 0
        self._lock = Lock()

    def get(self, source: str) -> Program:
        """Raises SyntaxFailure; what cannot be read is not kept."""
        program = self._programs.get(source)
        if program is None:
            program = Program(source)
            self._keep(source, program)
        return program

    def clear(self) -> None:
        """Forget all programs, as a measurement of the first reading needs it."""
        with self._lock:
            self._programs.clear()
            self._characters = 0

    def _keep(self, source: str, program: Program) -> None:
        with self._lock:
            if source not in self._programs:
                self._programs[source] = program
                self._characters += len(source)
            while self._characters > self.most_characters:
                oldest = next(iter(self._programs))
                del self._programs[oldest]
                self._characters -= len(oldest)


_CACHE = _Cache(most_characters=400_000)
load = _CACHE.get
forget = _CACHE.clear


def evaluate(
    source: str,
    contexts: Mapping[str, object],
    functions: Mapping[str, Function] | None = None,
    *,
    limit: int = EXPRESSION_LIMIT,
) -> object:
    """The value of an expression without ``${{ }}``: None, bool, int, float, str, list or dict; None for a blank one.

    ``contexts`` are the only named-values. ``functions`` (success, hashFiles, ...) are called with evaluated
    positional arguments; the built-in ones need not be given. ``limit`` is what the evaluation may hold, in bytes.
    Raises ExpressionError: lexing or parsing for what is wrong in the text, evaluation for what is wrong with values.
    """
    extra = functions or {}
    program = load_for(source, contexts, extra)
    scope = scope_for(program, contexts, extra, limit=limit)
    return program.evaluate(scope)


def load_for(source: str, contexts: Mapping[str, object], functions: Mapping[str, Function]) -> Program:
    """The program; an unknown name before a syntax error is the error to report. Raises ExpressionError."""
    try:
        return load(source)
    except SyntaxFailure as failure:
        if failure.stage == "parsing":
            check_references(source, failure.references, contexts=contexts, functions=_any_arity(functions))
        raise


def scope_for(
    program: Program, contexts: Mapping[str, object], functions: Mapping[str, Function], *, limit: int
) -> Scope:
    """Raises ExpressionError (parsing) for a name that is no context or function here."""
    values = _resolve(program.names, contexts)
    called = _resolve(program.functions, functions)
    if values is None or called is None:
        tree = program.tree
        check_references(tree.source, tree.references, contexts=contexts, functions=_any_arity(functions))
        raise AssertionError("a name could be checked but not found")
    return Scope(values, called, limit)


def _resolve(names: tuple[str, ...], given: Mapping[str, Anything]) -> Mapping[str, Anything] | None:
    """Everything ``names`` mentions by that spelling; None where something is missing."""
    for name in names:
        if name not in given:
            break
    else:
        return given
    found: dict[str, Anything] = {}
    for name in names:
        value = find(given, name, fold(name))
        if value is MISSING:
            return None
        found[name] = value  # type: ignore[assignment]  # find() answers from the same mapping
    return found


def _any_arity(functions: Mapping[str, Function]) -> dict[str, tuple[int, int]]:
    return dict.fromkeys(functions, (0, MAX_ARGUMENTS))


def parse(
    source: str,
    *,
    contexts: Collection[str] | None = None,
    functions: Mapping[str, tuple[int, int]] | None = None,
) -> Node:
    """The tree of an expression without ``${{ }}``; a blank one is a null literal.

    ``contexts`` and ``functions`` (name -> fewest and most arguments, beside the built-in ones) are what the place
    allows; None allows any. Raises ExpressionError (lexing or parsing).
    """
    try:
        tree = load(source).tree
    except SyntaxFailure as failure:
        if failure.stage == "parsing":
            check_references(source, failure.references, contexts=contexts, functions=functions)
        raise
    check_references(source, tree.references, contexts=contexts, functions=functions)
    return tree.root or Literal(None)

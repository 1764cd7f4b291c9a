"""Does a node fit its rule, and what is its plain value?"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import replace

from ci.workflow import expressions
from ci.workflow.document.nodes import Mapping, Node, Scalar, ScalarValue, Sequence
from ci.workflow.document.rules import (
    Anything,
    Either,
    Flag,
    List,
    Nothing,
    Number,
    Place,
    Rule,
    Table,
    Text,
)
from ci.workflow.problems import Problems
from ci.workflow.trees import INSERT

_OPEN = "${{"
_LONE_TEXT = re.compile(r"\$\{\{\s*+'((?:[^']++|'')*)'\s*+\}\}")
_WHOLE = re.compile(r"\s*\$\{\{(?:(?!\}\}|\$\{\{|').|'[^']*')*\}\}\s*", re.DOTALL)


class Conversion:
    """Turns nodes into JSON-able values by the schema; whatever does not fit becomes a problem at its place."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._own = False
        # Checked texts: a text that aliases repeat, or many steps share, is parsed once a place.
        self._checked: dict[tuple[str, int], list[str]] = {}
        self._late: list[tuple[Node, str]] = []

    def convert(self, node: Node, rule: Rule, place: Place | None = None) -> object:
        """The plain value of `node`; None where it does not fit (a problem is recorded then)."""
        place = rule.place or place
        if isinstance(node, Scalar):
            return self._scalar(node, rule, place)
        options = rule.rules if isinstance(rule, Either) else (rule,)
        if isinstance(options[0], Anything):
            return self._anything(node, place)
        if isinstance(node, Sequence):
            return self._sequence(node, options, place)
        assert isinstance(node, Mapping)
        tables = [option for option in options if isinstance(option, Table)]
        if not tables:
            self._problem(node, "A mapping was not expected")
            return None
        return self._mapping(node, tables, place)

    def finish(self) -> None:
        """Record what is wrong with conditions written without `${{ }}`. GitHub reads those only after all values
        were accepted, together with the checks that follow."""
        for node, message in self._late:
            self._problems.add(node.line, node.column, message)

    # --- scalars ------------------------------------------------------------------------------------------------------
    def _scalar(self, node: Scalar, rule: Rule, place: Place | None) -> object:
        options = rule.rules if isinstance(rule, Either) else (rule,)
        condition = place is not None and place.condition
        if isinstance(node.value, str) and _OPEN in node.value and not condition:
            # GitHub reads a lone text in ${{ }} as that text, also where no expression may be.
            lone = _LONE_TEXT.fullmatch(node.value)
            if lone is not None:
                text = lone[1].replace("''", "'")
                return self._literal(replace(node, value=text, text=text), options)
        if isinstance(node.value, str) and (_OPEN in node.value or condition):
            return self._expression(node, options, place)
        if place is not None and place.condition and node.value is not None:
            self._check(node, node.text, place)
        return self._literal(node, options)

    def _expression(self, node: Scalar, options: tuple[Rule, ...], place: Place | None) -> object:
        text = str(node.value)
        if place is None:
            self._problem(node, f"A template expression is not allowed in this context: '{_short(text)}'")
            return None
        if place.condition and not text.strip():
            return text
        if self._check(node, text, place) and not place.condition and not _WHOLE.fullmatch(text):
            # A text with an expression in it stays a text; GitHub's parser leaves it to the run to find out.
            before, self._own = self._own, True
            literal = self._literal(node, options)
            self._own = before
            return text if literal is None else literal
        return text

    def _check(self, node: Scalar, text: str, place: Place) -> bool:
        known = self._checked.get((text, id(place)))
        if known is None:
            found = expressions.check(
                text, contexts=place.contexts, functions=place.functions, is_condition=place.condition
            )
            known = self._checked[text, id(place)] = [message for message, _ in found]
        for message in known:
            if place.condition and (_OPEN not in text or _LONE_TEXT.fullmatch(text)):
                self._late.append((node, message))
            else:
                self._problem(node, message)
        return not known

    def _literal(self, node: Scalar, options: tuple[Rule, ...]) -> object:
        for option in options:
            if _accepts(option, node.value):
                self._bounds(node, option)
                return node.text if isinstance(node.value, float) and not math.isfinite(node.value) else node.value
        texts = [option for option in options if isinstance(option, Text)]
        for option in texts:
            if not (option.filled and not node.text) and (not option.values or node.text in option.values):
                return node.text
        self._problem(node, f"Unexpected value '{_short(node.text)}'{_advice(node, options, texts)}")
        return None

    def _bounds(self, node: Scalar, rule: Rule) -> None:
        if isinstance(rule, Number) and not -1e15 < float(node.value or 0) < 1e15:
            self._problems.add(node.line, node.column, f"The number {_short(node.text)} is too large", own=True)
        elif isinstance(rule, Number) and rule.least is not None and float(node.value or 0) < rule.least:
            message = f"The number {_short(node.text)} is too small. Write at least {rule.least:g}"
            self._problems.add(node.line, node.column, message, own=True)

    # --- collections --------------------------------------------------------------------------------------------------
    def _anything(self, node: Node, place: Place | None) -> object:
        if isinstance(node, Scalar):
            return self._scalar(node, Anything(), place)
        if isinstance(node, Sequence):
            return [self._anything(item, place) for item in node.items]
        assert isinstance(node, Mapping)
        return {self._loose_key(key, place): self._anything(value, place) for key, value in node.pairs}

    def _sequence(self, node: Sequence, options: tuple[Rule, ...], place: Place | None) -> object:
        rule = next((option for option in options if isinstance(option, List)), None)
        if rule is None:
            self._problem(node, "A sequence was not expected")
            return None
        return [self.convert(item, rule.item, place=rule.place or place) for item in node.items]

    def _mapping(self, node: Mapping, tables: list[Table], place: Place | None) -> dict[str, object]:
        result: dict[str, object] = {}
        unplaced: list[tuple[str, Node]] = []
        full = self._problems.full
        for key, value in node.pairs:
            if full:
                break
            if len(tables) == 1:
                name = tables[0].find(key.text)
            else:
                known = [(name, table) for table in tables if (name := table.find(key.text))]
                name = known[0][0] if known else None
                tables = [table for _, table in known] or tables
            if name is not None:
                unplaced.append((name, value))
            elif any(table.loose for table in tables):
                unplaced.append((self._loose_key(key, place), value))
            else:
                self._problem(key, f"Unexpected value '{_short(key.text)}'{_closest(key.text, tables)}")
                full = self._problems.full
        for name, value in unplaced:
            result[name] = self._value(name, value, tables[0], place)
        self._missing(node, tables, {name for name, _ in unplaced})
        return result

    def _value(self, name: str, value: Node, table: Table, place: Place | None) -> object:
        place = table.place or place
        key = table.keys.get(name)
        if key is None:
            return self.convert(value, table.loose or Anything(), place)
        if not key.honoured:
            message = f"Unexpected value '{name}'. GitHub knows this key; this server cannot honour it yet. Remove it"
            self._problems.add(value.line, value.column, message, own=True)
        before = self._own
        self._own = before if key.own is None else key.own
        result = self.convert(value, key.rule, place)
        self._own = before
        return result

    def _missing(self, node: Mapping, tables: list[Table], given: set[str]) -> None:
        if len(tables) > 1:
            counts: dict[str, int] = {}
            for table in tables:
                for name in (name for name, key in table.keys.items() if key.honoured):
                    counts[name] = counts.get(name, 0) + 1
            single = ", ".join(sorted(name for name, count in counts.items() if count == 1))
            message = f"There's not enough info to determine what you meant. Add one of these properties: {single}"
            self._problem(node, message)
            return
        for name, key in tables[0].keys.items():
            if key.required and name not in given:
                self._problem(node, f"Required property is missing: {name}")

    def _loose_key(self, key: Scalar, place: Place | None) -> str:
        if not key.text:
            self._problem(key, "Unexpected value ''. Write a name before the colon")
        elif _OPEN in key.text:
            if place is None:
                self._problem(key, "A template expression is not allowed in this context")
            elif INSERT.fullmatch(key.text) is None:
                self._check(key, key.text, place)
        return key.text

    def _problem(self, node: Node, message: str) -> None:
        self._problems.add(node.line, node.column, message, own=self._own)


def _accepts(rule: Rule, value: ScalarValue) -> bool:
    """Whether a scalar fits as it is, its type kept."""
    match rule:
        case Anything():
            return True
        case Nothing():
            return value is None
        case Flag():
            return isinstance(value, bool)
        case Number():
            return isinstance(value, (int, float)) and not isinstance(value, bool)
    return False


def _short(text: str) -> str:
    return text if len(text) <= 200 else text[:200] + "[...]"


def _closest(text: str, tables: list[Table]) -> str:
    names = sorted({name for table in tables for name, key in table.keys.items() if key.honoured})
    if not names:
        return ". No key is allowed here"
    near = difflib.get_close_matches(text, names, 1) if len(text) <= 40 else []
    return f". Did you mean '{near[0]}'?" if near else f". Known keys: {', '.join(names)}" if len(names) <= 20 else ""


def _advice(node: Scalar, options: tuple[Rule, ...], texts: list[Text]) -> str:
    """What to write instead, appended to GitHub's text."""
    values = [value for option in texts for value in option.values]
    if values:
        near = difflib.get_close_matches(node.text, values, 1) if len(node.text) <= 40 else []
        return (
            f". Did you mean '{near[0]}'?" if near else f". Use one of: {', '.join(values)}" if len(values) < 10 else ""
        )
    if any(isinstance(option, Number) for option in options):
        return ". Write a number, without quotes"
    if any(isinstance(option, Flag) for option in options):
        return ". Write true or false, without quotes"
    if any(isinstance(option, Table) for option in options) and not texts:
        return ". A mapping is needed here"
    if any(isinstance(option, List) for option in options) and not texts:
        return ". A list is needed here"
    return ". It must not be empty" if texts and not node.text else ""

"""How does the text of a workflow file become nodes with positions?"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import yaml

from ci.workflow.document.nodes import Mapping, Node, Scalar, Sequence
from ci.workflow.document.scalars import ScalarError, resolve, resolve_tagged
from ci.workflow.expressions import to_string
from ci.workflow.options import DEFAULTS, Options
from ci.workflow.problems import Problems

# GitHub's ParseOptions.
MAX_NODES = 1_000_000


def path_size(path: str) -> int:
    """What GitHub's estimate of a result counts for a file itself."""
    return 26 + 2 * len(path)


class _Refused(Exception):
    """The file cannot be read any further; the problem is recorded already."""


@dataclass(slots=True)
class _Open:
    """A collection that still waits for its end."""

    node: Mapping | Sequence
    anchor: str | None
    flow: bool
    key: Scalar | None = None
    refused: bool = False
    keys: set[str] = field(default_factory=set)


def read(text: str | bytes, problems: Problems, options: Options = DEFAULTS) -> Node | None:
    """The root node of a file of one YAML document; None when it is refused, then `problems` says why.

    Bounds: those of `options`, and 1,000,000 nodes with every alias expanded (an alias costs what it stands for, but
    is shared, so that a bomb is refused before it grows).
    """
    decoded = _decode(text, problems, options.max_file_size)
    if decoded is None:
        return None
    try:
        return _Reader(decoded, problems, options).document()
    except _Refused:
        return None


def _decode(text: str | bytes, problems: Problems, most: int) -> str | None:
    if isinstance(text, str):
        try:
            raw = text.encode()
        except UnicodeEncodeError as error:
            line, column = _place(text, error.start)
            problems.add(line, column, "The file is not valid Unicode: it holds half of a surrogate pair. Remove it")
            return None
    else:
        raw = bytes(text)
    if len(raw) > most:
        problems.add(0, 0, f"The maximum file size of {most} characters has been exceeded. Split the workflow up")
        return None
    try:
        decoded = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place(raw[: error.start].decode("utf-8", "replace"), error.start)
        problems.add(line, column, f"The file is not UTF-8 (byte 0x{raw[error.start]:02x}). Save it with that encoding")
        return None
    if (at := decoded.find("\0")) >= 0:
        problems.add(*_place(decoded, at), "The file holds a NUL character. Remove it, or save the file as UTF-8 text")
        return None
    return decoded


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class _Reader:
    def __init__(self, text: str, problems: Problems, options: Options) -> None:
        self._text = text
        self._options = options
        self._problems = problems
        self._anchors: dict[str, Node] = {}
        self._stack: list[_Open] = []
        self._root: Node | None = None
        self._total = 0
        self._size = path_size(problems.path)

    def document(self) -> Node:
        try:
            loader = yaml.CLoader(self._text)
            self._consume(loader)
            self._hold(0, 0)
        except yaml.YAMLError as error:
            self._syntax_error(error)
        if self._root is None:
            self._refuse(1, 1, "The file is empty. Write at least `on:` and `jobs:`")
        return self._root

    def _consume(self, loader: yaml.CLoader) -> None:
        documents = 0
        while loader.check_event():
            event: Any = loader.get_event()
            mark = event.start_mark
            line, column = mark.line + 1, mark.column + 1
            if isinstance(event, yaml.ScalarEvent):
                scalar = self._scalar(event, line, column)
                # Held against the bounds with the next collection or alias: scalars alone are bounded by the file.
                self._total += 1
                self._size += scalar.size
                self._place_node(scalar, event.anchor)
            elif isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
                self._open(event, line, column)
            elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                self._close()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event, line, column)
            elif isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self._refuse(line, column, "The file holds a second YAML document. Keep one workflow per file")

    def _scalar(self, event: yaml.ScalarEvent, line: int, column: int) -> Scalar:
        text = event.value
        try:
            if event.tag is not None:
                value = resolve_tagged(text, event.tag)
            else:
                value = resolve(text) if event.implicit[0] else text
        except ScalarError as error:
            self._note(line, column, str(error))
            value = text
        if isinstance(value, str):
            # GitHub's estimate of a text; anything else counts 24.
            return Scalar(line, column, value, text, size=50 + 2 * len(text))
        return Scalar(line, column, value, to_string(value))

    def _open(self, event: yaml.CollectionStartEvent, line: int, column: int) -> None:
        mapping = isinstance(event, yaml.MappingStartEvent)
        expected = "tag:yaml.org,2002:map" if mapping else "tag:yaml.org,2002:seq"
        if event.tag not in (None, "!", expected):
            self._note(line, column, f"Unexpected tag '{event.tag}'")
        if len(self._stack) >= self._options.max_depth:
            self._refuse(line, column, self._too_deep())
        node = Mapping(line, column) if mapping else Sequence(line, column)
        self._count(node, line, column)
        if self._awaits_key():
            self._refuse(line, column, f"A {'mapping' if mapping else 'sequence'} was not expected as a key")
        self._stack.append(_Open(node, event.anchor, flow=bool(event.flow_style)))
        if event.anchor is not None:
            # An alias inside its own anchor would never end.
            self._anchors.pop(event.anchor, None)

    def _close(self) -> None:
        closed = self._stack.pop()
        node = closed.node
        if isinstance(node, Mapping) and node.pairs and not closed.flow:
            # Where an anchor stands in front, libyaml would give its place.
            node.line, node.column = node.pairs[0][0].line, node.pairs[0][0].column
        self._place_node(node, closed.anchor)

    def _alias(self, event: yaml.AliasEvent, line: int, column: int) -> None:
        name = str(event.anchor)
        node = self._anchors.get(name)
        if node is None:
            self._refuse(line, column, f"The alias '*{name}' has no finished anchor '&{name}' above it")
        self._count(node, line, column)
        if len(self._stack) + node.height > self._options.max_depth:
            self._refuse(line, column, self._too_deep())
        if self._awaits_key() and not isinstance(node, Scalar):
            self._refuse(line, column, "A mapping key must be a text")
        self._place_node(node, None)

    def _count(self, node: Node, line: int, column: int) -> None:
        """Bound what the file stands for with every alias expanded, while it is read."""
        self._total += node.weight
        self._size += node.size
        self._hold(line, column)

    def _hold(self, line: int, column: int) -> None:
        if self._total > MAX_NODES or self._size > self._options.max_result_size:
            self._refuse(line, column, "Maximum object size exceeded: with aliases expanded it holds too many values")

    def _too_deep(self) -> str:
        return f"Maximum object depth exceeded. Nest at most {self._options.max_depth} values"

    def _awaits_key(self) -> bool:
        return bool(self._stack) and isinstance(self._stack[-1].node, Mapping) and self._stack[-1].key is None

    def _place_node(self, node: Node, anchor: str | None) -> None:
        if anchor is not None:
            if not self._options.anchors:
                self._refuse(0, 0, f"Anchors are not currently supported. Remove the anchor '{anchor}'")
            self._anchors[anchor] = node
        if not self._stack:
            self._root = node
            return
        parent = self._stack[-1]
        into = parent.node
        if isinstance(into, Sequence):
            into.items.append(node)
        elif parent.key is None:
            assert isinstance(node, Scalar)
            self._key(parent, node)
        else:
            if not parent.refused:
                into.pairs.append((parent.key, node))
            parent.key = None
        into.weight += node.weight
        into.size += node.size
        if node.height >= into.height:
            into.height = node.height + 1

    def _key(self, parent: _Open, key: Scalar) -> None:
        """Take a key, or record that its pair is left out."""
        parent.key = key
        folded = key.text.casefold()
        parent.refused = key.text == "<<" or folded in parent.keys
        if key.text == "<<":
            message = "Unexpected value '<<'. Merge keys are not supported: write the keys out, or alias whole values"
            self._note(key.line, key.column, message)
        elif folded in parent.keys:
            self._note(key.line, key.column, f"'{key.text}' is already defined")
        parent.keys.add(folded)

    def _syntax_error(self, error: yaml.YAMLError) -> None:
        mark = getattr(error, "problem_mark", None)
        if mark is None:
            position = getattr(error, "position", None)
            line, column = _place(self._text, position) if isinstance(position, int) else (1, 1)
            reason = getattr(error, "reason", None) or "it cannot be read"
            self._refuse(line, column, f"The file is not valid YAML: {reason}. Remove the character")
            return
        line, column = mark.line + 1, mark.column + 1
        if "nesting depth" in str(getattr(error, "problem", "")):
            self._refuse(line, column, self._too_deep())
        lines = self._text.split("\n")
        source = lines[mark.line] if mark.line < len(lines) else ""
        if "\t" in source[: len(source) - len(source.lstrip())]:
            self._refuse(line, source.index("\t") + 1, "A tab cannot indent YAML. Use spaces instead")
        details = ", ".join(part for part in (getattr(error, "context", None), getattr(error, "problem", None)) if part)
        self._refuse(line, column, f"The file is not valid YAML: {details}. Check indentation, quotes and brackets")

    def _note(self, line: int, column: int, message: str) -> None:
        self._problems.add(line, column, message)
        if self._problems.full:
            raise _Refused

    def _refuse(self, line: int, column: int, message: str) -> NoReturn:
        self._problems.add(line, column, message)
        raise _Refused

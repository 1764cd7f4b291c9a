"""How does the text of a workflow file become nodes with positions?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import yaml

from ci.workflow.document.nodes import Mapping, Node, Scalar, Sequence
from ci.workflow.document.scalars import ScalarError, resolve, resolve_tagged
from ci.workflow.expressions import to_string
from ci.workflow.options import DEFAULTS, Options
from ci.workflow.problems import Problems
from ci.workflow.storable import UNSTORABLE

# GitHub's ParseOptions.
MAX_NODES = 1_000_000


def path_size(path: str) -> int:
    """What GitHub's estimate of a result counts for a file itself."""
    return 26 + 2 * len(path)


class _Refused(Exception):
    """The file cannot be read any further; the problem is recorded already."""


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


def _start(event: Any) -> tuple[int, int]:
    mark = event.start_mark
    return mark.line + 1, mark.column + 1


def _nothing() -> None:
    """Stands for the events before there are any."""


class _Reader:
    """Reads event by event and down into collections; `depth` says how many of them are open."""

    def __init__(self, text: str, problems: Problems, options: Options) -> None:
        self._text = text
        self._options = options
        self._problems = problems
        self._anchors: dict[str, Node] = {}
        self._total = 0
        self._size = path_size(problems.path)
        self._next: Callable[[], Any] = _nothing

    def document(self) -> Node:
        root: Node | None = None
        try:
            loader = yaml.CLoader(self._text)
            self._next = loader.get_event
            root = self._only_document()
            self._hold(0, 0)
        except yaml.YAMLError as error:
            self._syntax_error(error)
        if root is None:
            self._refuse(1, 1, "The file is empty. Write at least `on:` and `jobs:`")
        return root

    def _only_document(self) -> Node | None:
        """The root node of the one document; None where there is none."""
        root: Node | None = None
        documents = 0
        while True:
            event = self._next()
            if isinstance(event, yaml.StreamEndEvent):
                return root
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    line, column = _start(event)
                    self._refuse(line, column, "The file holds a second YAML document. Keep one workflow per file")
                root = self._node(self._next(), 0)

    def _node(self, event: Any, depth: int) -> Node:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(event, depth)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(event, depth)
        return self._alias(event, depth)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        text = event.value
        mark: Any = event.start_mark
        line, column = mark.line + 1, mark.column + 1
        try:
            if event.tag is not None:
                value = resolve_tagged(text, event.tag)
            else:
                value = resolve(text) if event.implicit[0] else text
        except ScalarError as error:
            self._note(line, column, str(error))
            value = text
        if (found := UNSTORABLE.search(text)) is not None and not self._problems.github_only:
            self._note(line, column, f"The text holds \\u{ord(found[0]):04x}, which cannot be kept. Remove it")
        if isinstance(value, str):
            # GitHub's estimate of a text; anything else counts 24.
            size = 50 + 2 * len(text)
            node = Scalar(line, column, value, text, size=size)
        else:
            size = 24
            node = Scalar(line, column, value, to_string(value))
        # Held against the bounds with the next collection or alias: scalars alone are bounded by the file.
        self._total += 1
        self._size += size
        if event.anchor is not None:
            self._remember(event.anchor, node)
        return node

    def _mapping(self, start: yaml.MappingStartEvent, depth: int) -> Mapping:
        node = Mapping(*_start(start))
        self._enter(start, node, depth, "tag:yaml.org,2002:map")
        keys: set[str] = set()
        height = -1
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            key = self._scalar(event) if isinstance(event, yaml.ScalarEvent) else self._odd_key(event, depth)
            refused = self._refused(key, keys)
            value = self._node(self._next(), depth + 1)
            if not refused:
                node.pairs.append((key, value))
            node.weight += key.weight + value.weight
            node.size += key.size + value.size
            if value.height > height:
                height = value.height
        if keys:
            node.height = max(height, 0) + 1
        if node.pairs and not start.flow_style:
            # Where an anchor stands in front, libyaml would give its place.
            first = node.pairs[0][0]
            node.line, node.column = first.line, first.column
        if start.anchor is not None:
            self._remember(start.anchor, node)
        return node

    def _sequence(self, start: yaml.SequenceStartEvent, depth: int) -> Sequence:
        node = Sequence(*_start(start))
        self._enter(start, node, depth, "tag:yaml.org,2002:seq")
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            item = self._node(event, depth + 1)
            node.items.append(item)
            node.weight += item.weight
            node.size += item.size
            if item.height >= node.height:
                node.height = item.height + 1
        if start.anchor is not None:
            self._remember(start.anchor, node)
        return node

    def _enter(self, event: yaml.CollectionStartEvent, node: Node, depth: int, tag: str) -> None:
        """Check a collection that begins."""
        if event.tag not in (None, "!", tag):
            self._note(node.line, node.column, f"Unexpected tag '{event.tag}'")
        if depth >= self._options.max_depth:
            self._refuse(node.line, node.column, self._too_deep())
        self._count(node, node.line, node.column)
        if event.anchor is not None:
            # An alias inside its own anchor would never end.
            self._anchors.pop(event.anchor, None)

    def _odd_key(self, event: Any, depth: int) -> Scalar:
        """The text that an alias as a key stands for; a collection is none."""
        line, column = _start(event)
        if not isinstance(event, yaml.AliasEvent):
            kind = "mapping" if isinstance(event, yaml.MappingStartEvent) else "sequence"
            self._refuse(line, column, f"A {kind} was not expected as a key")
        key = self._alias(event, depth + 1)
        if not isinstance(key, Scalar):
            self._refuse(line, column, "A mapping key must be a text")
        return key

    def _refused(self, key: Scalar, keys: set[str]) -> bool:
        """Whether the pair of a key is left out; a problem is recorded then."""
        text = key.text
        folded = text.casefold()
        if text == "<<":
            message = "Unexpected value '<<'. Merge keys are not supported: write the keys out, or alias whole values"
            self._note(key.line, key.column, message)
        elif folded in keys:
            self._note(key.line, key.column, f"'{text}' is already defined")
        else:
            keys.add(folded)
            return False
        keys.add(folded)
        return True

    def _alias(self, event: yaml.AliasEvent, depth: int) -> Node:
        line, column = _start(event)
        name = str(event.anchor)
        node = self._anchors.get(name)
        if node is None:
            self._refuse(line, column, f"The alias '*{name}' has no finished anchor '&{name}' above it")
        self._count(node, line, column)
        if depth + node.height > self._options.max_depth:
            self._refuse(line, column, self._too_deep())
        return node

    def _remember(self, anchor: str, node: Node) -> None:
        if not self._options.anchors:
            self._refuse(0, 0, f"Anchors are not currently supported. Remove the anchor '{anchor}'")
        self._anchors[anchor] = node

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

"""Does the schema table know every key of GitHub's published schema, and what each place may name?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from ci.workflow.document.rules import Either, List, Place, Rule, Table
from ci.workflow.document.schema import ROOT

from .oracle_process import FOLDER, Absent, install

SCHEMA = FOLDER / "node_modules/@actions/workflow-parser/dist/workflow-v1.0.min.json"
# What stands below is refused as a whole, and not read any further.
REFUSED_WHOLE = (".parallel[]",)
CONTEXTS = frozenset(
    {"github", "inputs", "vars", "needs", "strategy", "matrix", "secrets", "steps", "job", "runner", "env", "jobs"}
)
MANY = 255


@pytest.fixture(scope="module")
def definitions() -> dict[str, Any]:
    try:
        install()
    except Absent as absent:
        pytest.skip(f"GitHub's npm packages are not here: {absent}")
    found: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))["definitions"]
    return found


class Comparison:
    """Walks GitHub's definitions and our rules side by side; a context given above counts below too."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self.definitions = definitions
        self.differences: list[str] = []
        self.places = 0
        self._seen: set[tuple[str, int, frozenset[str], int]] = set()

    def walk(self, name: str, given: frozenset[str], rule: Rule, place: Place | None, path: str) -> None:
        place = rule.place or place
        key = (name, id(rule), given, id(place))
        if key in self._seen or path.endswith(REFUSED_WHOLE):
            return
        self._seen.add(key)
        rules = rule.rules if isinstance(rule, Either) else (rule,)
        for kind, definition, contexts in self._alternatives(name, given):
            if "mapping" in definition:
                tables = [one for one in rules if isinstance(one, Table)]
                self._mapping(definition["mapping"] or {}, contexts, tables, place, path)
            elif "sequence" in definition:
                lists = [one for one in rules if isinstance(one, List)]
                if not lists:
                    self.differences.append(f"{path}: no list")
                for one in lists[:1]:
                    item = definition["sequence"]["item-type"]
                    self.walk(item, contexts, one.item, one.place or place, f"{path}[]")
            else:
                self._scalar(kind, contexts, place, path)

    def _alternatives(self, name: str, given: frozenset[str]) -> Iterator[tuple[str, dict[str, Any], frozenset[str]]]:
        definition = self.definitions.get(name, {})
        contexts = given | frozenset(definition.get("context", []))
        if "one-of" not in definition:
            yield name, definition, contexts
        for one in definition.get("one-of", []):
            yield from self._alternatives(one, contexts)

    def _mapping(
        self, mapping: dict[str, Any], contexts: frozenset[str], tables: list[Table], place: Place | None, path: str
    ) -> None:
        for name, value in (mapping.get("properties") or {}).items():
            kind, required = (value, False) if isinstance(value, str) else (value["type"], value.get("required", False))
            knowing = [table for table in tables if name in table.keys]
            if not knowing:
                self.differences.append(f"{path}: the key {name} is not known")
                continue
            if not any(table.keys[name].required == required for table in knowing):
                self.differences.append(f"{path}.{name}: required is {required} on GitHub")
            self.walk(kind, contexts, knowing[0].keys[name].rule, knowing[0].place or place, f"{path}.{name}")
        loose = [table for table in tables if table.loose]
        if "loose-value-type" in mapping and not loose:
            self.differences.append(f"{path}: takes any key on GitHub")
        elif "loose-value-type" in mapping and loose[0].loose:
            self.walk(mapping["loose-value-type"], contexts, loose[0].loose, loose[0].place or place, f"{path}.*")

    def _scalar(self, kind: str, contexts: frozenset[str], place: Place | None, path: str) -> None:
        self.places += 1
        wanted = {name for name in contexts if name in CONTEXTS} | {name for name in contexts if "(" in name}
        found: set[str] = set(place.contexts) if place else set()
        for name, (fewest, most) in (place.functions if place else {}).items():
            unbounded = most == MANY and name != "hashFiles"
            found.add(f"{name}({fewest},{'MAX' if unbounded else most})")
        if wanted != found:
            self.differences.append(f"{path} ({kind}): GitHub knows {sorted(wanted)}, we {sorted(found)}")


def test_every_key_and_place_of_githubs_schema_is_known(definitions: dict[str, Any]) -> None:
    comparison = Comparison(definitions)
    comparison.walk("workflow-root-strict", frozenset(), ROOT, None, "")
    assert comparison.places > 100
    assert comparison.differences == []

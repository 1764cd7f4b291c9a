"""Is a text a workflow, and which one?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.workflow.document.build import build
from ci.workflow.document.checks import check
from ci.workflow.document.conversion import Conversion
from ci.workflow.document.nodes import Mapping as MappingNode
from ci.workflow.document.reader import read
from ci.workflow.document.schema import ROOT
from ci.workflow.problems import Problems
from ci.workflow.workflow import Workflow

__all__ = ["accept", "load"]


def load(path: str, files: Mapping[str, str | bytes]) -> Workflow:
    """The workflow in `files[path]`; the other files are there for reusable workflows that it may name.

    Raises WorkflowErrors with up to 10 problems, and nothing else, whatever the text is.
    """
    problems = Problems(path)
    text = files.get(path)
    if text is None:
        problems.add(0, 0, "The file does not exist")
        problems.raise_if_any()
    accepted = accept(text or "", problems)
    problems.raise_if_any()
    assert accepted is not None
    return build(path, *accepted)


def accept(text: str | bytes, problems: Problems) -> tuple[MappingNode, dict[str, Any]] | None:
    """The nodes of a file and their plain values. Whatever is wrong is in `problems` afterwards; only without any is
    the value whole. None where there is nothing to look at."""
    root = read(text, problems)
    if root is None:
        return None
    if not isinstance(root, MappingNode):
        problems.add(root.line, root.column, "A mapping was expected. Write a workflow: `on:`, `jobs:` and so on")
        return None
    value = Conversion(problems).convert(root, ROOT)
    assert isinstance(value, dict)
    if not (problems.github_only and problems):
        # GitHub stops here when a value was refused; people are better served with everything at once.
        check(root, value, problems)
    return root, value

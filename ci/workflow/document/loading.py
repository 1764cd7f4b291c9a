"""Is a text a workflow, and which one?"""

from __future__ import annotations

from typing import Any

from ci.workflow.document.checks import check
from ci.workflow.document.conversion import Conversion
from ci.workflow.document.nodes import Mapping
from ci.workflow.document.reader import read
from ci.workflow.document.schema import ROOT
from ci.workflow.options import DEFAULTS, Options
from ci.workflow.problems import Problems


def accept(text: str | bytes, problems: Problems, options: Options = DEFAULTS) -> tuple[Mapping, dict[str, Any]] | None:
    """The nodes of a file and their plain values. Whatever is wrong is in `problems` afterwards; only without any is
    the value whole. None where there is nothing to look at."""
    root = read(text, problems, options)
    if root is None:
        return None
    if not isinstance(root, Mapping):
        problems.add(root.line, root.column, "A mapping was expected. Write a workflow: `on:`, `jobs:` and so on")
        return None
    conversion = Conversion(problems)
    value = conversion.convert(root, ROOT)
    assert isinstance(value, dict)
    if not (problems.github_only and problems):
        # GitHub stops here when a value was refused; people are better served with everything at once.
        conversion.finish()
        check(root, value, problems, options)
    return root, value

"""Which workflow is in a file, with everything it calls?"""

from __future__ import annotations

from collections.abc import Mapping

from ci.workflow.document.build import build, jobs_of
from ci.workflow.document.linking import Linker
from ci.workflow.document.loading import accept
from ci.workflow.options import DEFAULTS, Options
from ci.workflow.problems import Problems, WorkflowErrors
from ci.workflow.workflow import Workflow

__all__ = ["judge", "load"]


def load(path: str, files: Mapping[str, str | bytes | None], *, options: Options = DEFAULTS) -> Workflow:
    """The workflow in `files[path]`; every workflow that it calls, directly or through others, comes from `files` too.

    The key of a called file is its path for a file of the same repository (`./x.yml` is `x.yml`), else
    `owner/repo/path@ref`, as `ci.workflow.uses.resolve` says. None stands for a file that was looked for in vain.

    Raises WorkflowErrors with up to 10 problems, and nothing else, whatever the text is.
    """
    problems = Problems(path)
    workflow = judge(path, files, problems, options)
    problems.raise_if_any()
    if workflow is None:
        raise WorkflowErrors(problems)
    return workflow


def judge(
    path: str, files: Mapping[str, str | bytes | None], problems: Problems, options: Options = DEFAULTS
) -> Workflow | None:
    """As `load`, but whatever is wrong is put into `problems`, and the answer is None then."""
    text = files.get(path)
    if text is None:
        problems.add(0, 0, "The file does not exist")
        return None
    accepted = accept(text, problems, options)
    if accepted is None or problems:
        return None
    root, value = accepted
    jobs = jobs_of(value)
    sources = {path: root}
    if options.follow_calls:
        linker = Linker(path, files, problems, options)
        jobs = linker.link(root, jobs, value.get("permissions"))
        sources = linker.sources
    return None if problems else build(path, sources, value, jobs)

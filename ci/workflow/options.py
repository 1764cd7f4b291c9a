"""How strictly, and within which bounds, is a workflow file loaded?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Policy = Literal["Write", "LimitedRead"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Bounds and choices of `load`; the defaults are those of GitHub's ParseOptions.

    `permissions_policy`: what a token may do where nobody names permissions, "Write" or "LimitedRead" (contents and
    packages, read only). `max_file_size` in bytes, `max_result_size` in estimated bytes over all files with every call
    and alias expanded. `max_jobs` counts over all calls. `max_files`: called files. `anchors`: YAML anchors are
    allowed. `require_called`: a called workflow that is not among the files is a problem; False leaves such a call
    open, None does so only where the calling file stands all alone. `follow_calls` False: called files are not read.
    """

    permissions_policy: Policy = "Write"
    max_depth: int = 50
    max_file_size: int = 1024 * 1024
    max_result_size: int = 10 * 1024 * 1024
    max_jobs: int = 1000
    max_nested_calls: int = 10
    max_files: int = 50
    anchors: bool = True
    require_called: bool | None = None
    follow_calls: bool = True


DEFAULTS = Options()

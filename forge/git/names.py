"""Which text may name a ref, and which an object?"""

from __future__ import annotations

import re

MAX_REF = 512  # characters of a full ref

_SHA = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})\Z")
# git-check-ref-format(1): no control character, space or any of ~^:?*[\ ; no "..", "@{", "//", leading or trailing "/".
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//|\A/|/\Z|\.\Z")


def is_sha(text: str) -> bool:
    """Whether `text` is a full object id, lower case."""
    return _SHA.match(text) is not None


def is_ref_name(text: str) -> bool:
    """Whether `text` is a full ref ("refs/heads/main") by the rules of git-check-ref-format(1), and not too long."""
    return text.startswith("refs/") and text.count("/") >= 2 and _is_well_formed(text)


def is_branch_name(text: str) -> bool:
    """Whether `text` can name a branch: as git-check-ref-format(1) with --branch, not HEAD, not like an option."""
    return text != "HEAD" and not text.startswith("-") and _is_well_formed(f"refs/heads/{text}")


def _is_well_formed(ref: str) -> bool:
    if len(ref) > MAX_REF or _FORBIDDEN.search(ref):
        return False
    try:
        ref.encode()
    except UnicodeEncodeError:
        return False
    return not any(part.startswith(".") or part.endswith(".lock") for part in ref.split("/"))

"""Which runs are of a branch, or in a state? In the words of the indexes, so that lists find them at once."""

from __future__ import annotations

import hashlib

from django.db.models import Q, QuerySet
from django.db.models.functions import MD5

from ci.models import Run, RunConclusion, RunState


def of_branch(runs: QuerySet[Run], branch: str) -> QuerySet[Run]:
    """Those of the branch, the tag or the whole ref of that name."""
    refs = [branch, f"refs/heads/{branch}", f"refs/tags/{branch}"]
    # The index has the digests of refs: a long ref is more than it can hold.
    digests = [hashlib.md5(ref.encode(errors="replace"), usedforsecurity=False).hexdigest() for ref in refs]
    return runs.alias(ref_digest=MD5("ref")).filter(ref_digest__in=digests, ref__in=refs)


def of_state(runs: QuerySet[Run], state: str) -> QuerySet[Run]:
    """Those in a state or with a conclusion; `active`: all that have not ended."""
    # A run has a conclusion if and only if it has ended.
    if state in RunConclusion.values:
        return runs.filter(conclusion=state)
    if state == RunState.ENDED:
        return runs.filter(conclusion__isnull=False)
    return runs.filter(Q(conclusion=None) if state == "active" else Q(conclusion=None, state=state))

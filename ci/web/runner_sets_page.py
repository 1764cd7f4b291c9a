"""What does the page of one runner set show, and which of it changes by itself?"""

from __future__ import annotations

import zlib
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.http import urlencode

from ci.lifecycle import demand
from ci.lifecycle.set_waiting import Counts, counts, for_owner
from ci.models import TERMINAL_PHASES, Runner, RunnerSet
from ci.web.pages import number, paged
from ci.web.runner_sets_chart import SPANS, chart
from ci.web.runner_sets_timeline import Lived, lives

PAGE = 25
BUSY_SECONDS, QUIET_SECONDS = 3, 10
_LOOKS = {
    "running": ("success", "Running"),
    "outdated": ("waiting", "Parked"),
    "deleting": ("cancelling", "Deleting"),
}


def whole(request: HttpRequest, runner_set: RunnerSet) -> dict[str, Any]:
    only = runner_set.repositories.select_related("owner").order_by("owner__username", "name")
    return fragment(request, runner_set) | {"only": list(only[:50])}


def fragment(request: HttpRequest, runner_set: RunnerSet) -> dict[str, Any]:
    has = counts(demand.look(runner_set))
    page = paged(request, Runner.objects.filter(runner_set=runner_set).order_by("-pk"), size=PAGE)
    lived = lives(list(page))
    shown = _chart(request, runner_set)
    state = _state(runner_set, has)
    revisions = _revisions(runner_set)
    live = bool(has.alive or has.queued or runner_set.phase == RunnerSet.Phase.DELETING)
    told = (has, state["why"], revisions, shown["chart"]["rows"][:1], page.paginator.count)
    return (
        state
        | shown
        | {
            "runner_set": runner_set,
            "has": has,
            "page_obj": page,
            "lived": lived,
            "revisions": revisions,
            "live": live,
            "delay": BUSY_SECONDS if live else QUIET_SECONDS,
            "query": _query(request, page.number),
            "seen": _fingerprint(runner_set, lived, told),
        }
    )


def _chart(request: HttpRequest, runner_set: RunnerSet) -> dict[str, Any]:
    hours = number(request.GET.get("hours"))
    shown = chart(runner_set, hours=hours if hours in SPANS else SPANS[0])
    return {"chart": shown, "spans": SPANS, "as_table": request.GET.get("view") == "table"}


def _state(runner_set: RunnerSet, has: Counts) -> dict[str, Any]:
    """The set in one word and one sentence; `said` tells two of these apart."""
    troubled = runner_set.is_troubled
    look, word = ("startup_failure", "Troubled") if troubled else _LOOKS[runner_set.phase]
    why = for_owner(runner_set, has)
    return {
        "look": look,
        "word": word,
        "troubled": troubled,
        "why": why,
        "said": f"{zlib.crc32((word + why).encode()):08x}",
    }


def _revisions(runner_set: RunnerSet) -> dict[str, int]:
    """How many of the runners that may still work are as the set now says."""
    useful = Runner.objects.filter(runner_set=runner_set, stopped_at=None).exclude(phase__in=TERMINAL_PHASES)
    found = list(useful.order_by().values_list("spec_revision", flat=True))
    return {"new": found.count(runner_set.spec_revision), "all": len(found)}


def _query(request: HttpRequest, page: int) -> str:
    """Of the page's address, for what is loaded later: only what we know."""
    kept = {name: request.GET[name] for name in ("hours", "view") if request.GET.get(name) in ("1", "6", "24", "table")}
    return urlencode(kept | ({"page": page} if page > 1 else {}))


def _fingerprint(runner_set: RunnerSet, lived: list[Lived], told: Any) -> str:
    """Changes whenever something on the page does, and once a minute, since the chart moves."""
    rows = [(one.word, one.runner.version, one.runner.reason, one.moments) for one in lived]
    tries = [(attempt.pk, attempt.ended_at, attempt.reason) for one in lived for attempt in one.attempts]
    minute = timezone.now().replace(second=0, microsecond=0)
    state = (runner_set.version, runner_set.phase, runner_set.desired, runner_set.trouble, runner_set.troubled_until)
    return f"{zlib.crc32(repr((state, told, rows, tries, minute)).encode()):08x}"

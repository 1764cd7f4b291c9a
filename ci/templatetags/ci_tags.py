"""How do pages show states, durations and times?"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime, timedelta

from django import template
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from ci.web import icons
from ci.web.addresses import Addresses
from ci.web.job_tree import Listed
from ci.workflow.expressions import to_string

register = template.Library()

WORDS = {
    "success": "Success",
    "failure": "Failure",
    "cancelled": "Cancelled",
    "skipped": "Skipped",
    "startup_failure": "Startup failure",
    "queued": "Queued",
    "running": "Running",
    "waiting": "Waiting",
    "blocked": "Blocked",
    "assigned": "Assigned",
    "cancelling": "Cancelling",
    "pending": "Pending",
    "in_progress": "In progress",
    "inactive": "Inactive",
}
_LOOKS = {"pending": "blocked", "in_progress": "running", "inactive": "skipped"}


@register.simple_tag
@functools.lru_cache(maxsize=256)
def chip(outcome: str | None, words: str = "") -> SafeString:
    """A state as icon, word and colour; `words` replaces the state's own word."""
    if not outcome:
        return SafeString("")
    look = _LOOKS.get(outcome, outcome if outcome in WORDS else "blocked")
    word = words or WORDS.get(outcome, outcome)
    return format_html('<span class="chip chip-{}">{}{}</span>', look, icons.icon(look), word)


@register.simple_tag
@functools.lru_cache(maxsize=256)
def state_icon(outcome: str | None) -> SafeString:
    """A state as coloured icon alone, its word for screen readers and as a tooltip: for dense lists."""
    if not outcome:
        return SafeString("")
    look = _LOOKS.get(outcome, outcome if outcome in WORDS else "blocked")
    word = WORDS.get(outcome, outcome)
    return format_html(
        '<span class="state chip-{}" title="{}">{}<span class="visually-hidden">{}</span></span>',
        look,
        word,
        icons.icon(look),
        word,
    )


@register.filter
def at(addresses: Addresses, number: int) -> SafeString:
    return addresses[number]


@register.simple_tag
def job_links(
    listed: Sequence[Listed], owner: str, name: str, run_id: int, chosen_id: int | str | None = None
) -> SafeString:
    """The jobs of a level as items of a list. A run may have hundreds: a template would take ten times as long."""
    address = Addresses("job", owner, name, run_id)
    return format_html_join("", _JOB_LINK, (_about_link(one, address, chosen_id) for one in listed))


_JOB_LINK = (
    '<li class="indent-{}"><a id="job-link-{}" href="{}"{} title="{}">{}<span class="ellipsis">{}{}</span>'
    '<span class="number">{}</span></a></li>\n'
)


def _about_link(one: Listed, address: Addresses, chosen_id: int | str | None) -> tuple[object, ...]:
    job = one.job
    chosen = SafeString(' aria-current="page"') if job.pk == chosen_id else ""
    prefix = format_html('<span class="visually-hidden">{}</span>', one.prefix) if one.prefix else ""
    shown = (job.name, state_icon(job.outcome), prefix, one.short, duration(job.duration))
    return (one.indent, job.pk, address[job.pk], chosen, *shown)


@register.simple_tag
def icon(name: str) -> SafeString:
    return icons.icon(name)


@register.filter
def duration(value: timedelta | None) -> str:
    """`1m 3s`, at most two units; a dash where there is none yet."""
    if value is None:
        return "–"
    seconds = max(0, int(value.total_seconds()))
    parts = (
        (seconds // 86400, "d"),
        (seconds % 86400 // 3600, "h"),
        (seconds % 3600 // 60, "m"),
        (seconds % 60, "s"),
    )
    first = next((index for index, (count, _) in enumerate(parts) if count), 3)
    return " ".join(f"{count}{unit}" for count, unit in parts[first : first + 2] if count or first == 3)


@register.filter
def ago(value: datetime | None) -> SafeString | str:
    """How long ago, or in how long, as a `<time>` whose tooltip has the moment itself."""
    if value is None:
        return "never"
    delta = timezone.now() - value
    distance = _distance(abs(delta))
    words = "just now" if not distance else f"{distance} ago" if delta >= timedelta(0) else f"in {distance}"
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        value.isoformat(),
        timezone.localtime(value).strftime("%Y-%m-%d %H:%M:%S %Z"),
        words,
    )


def _distance(delta: timedelta) -> str:
    seconds = int(delta.total_seconds())
    for size, unit in ((31_536_000, "year"), (2_592_000, "month"), (86_400, "day"), (3600, "hour"), (60, "minute")):
        count = seconds // size
        if count:
            return f"{count} {unit}{'' if count == 1 else 's'}"
    return f"{seconds} seconds" if seconds >= 5 else ""


@register.filter
def file_name(path: str) -> str:
    """The last segment of a path: how a workflow is addressed."""
    return path.rpartition("/")[2]


@register.filter
def workflow_text(value: object) -> str:
    """The value of an input as its workflow sees it: `true`, not Python's `True`."""
    return to_string(value)


@register.filter
def words(kind: str) -> str:
    """`cancel_requested` as people say it."""
    return kind.replace("_", " ").capitalize()


@register.filter
def runner_look(phase: str) -> str:
    """How the end of a single-use runner looks as a chip."""
    return {"succeeded": "success", "failed": "failure"}.get(phase, "skipped")

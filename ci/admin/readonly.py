"""How does the admin show what only the lifecycle may write?"""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

# Each state has a sign of its own beside its word: colour alone says nothing to many.
_SIGNS = {
    "success": "✓",
    "succeeded": "✓",
    "failure": "✗",
    "failed": "✗",
    "startup_failure": "✗",
    "cancelled": "⊘",
    "cancelling": "⊘",
    "skipped": "↷",
    "running": "▶",
    "assigned": "▷",
    "queued": "…",
    "waiting": "…",
    "blocked": "…",
    "pending": "…",
    "outdated": "!",
}


class ReadOnly:
    """A mixin for ModelAdmin and inlines: nothing is added, changed or deleted by form."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class Styled(admin.ModelAdmin):
    """The colours of states, in a file: the Content-Security-Policy has no place for inline styles."""

    class Media:
        css = {"all": ["ci/admin.css"]}

    @admin.display(description="state", ordering="state")
    def state_now(self, row: Any) -> SafeString:
        """For whatever has an `outcome`: run, job, step."""
        return state_chip(row.outcome)


class Records(ReadOnly, Styled):
    """Rows to be looked at. Counting a million of them for the page's head would cost more than the page."""

    show_full_result_count = False
    list_per_page = 50


def state_chip(outcome: str | None) -> SafeString:
    if not outcome:
        return SafeString("–")
    word = outcome.replace("_", " ").capitalize()
    return format_html('<span class="state state-{}">{}&nbsp;{}</span>', outcome, _SIGNS.get(outcome, "•"), word)


def link(row: Model | None, text: str = "") -> SafeString:
    """To the row's own page in the admin."""
    if row is None:
        return SafeString("–")
    meta = row._meta
    address = reverse(f"admin:{meta.app_label}_{meta.model_name}_change", args=[row.pk])
    return format_html('<a href="{}">{}</a>', address, text or str(row))


def operates(request: HttpRequest, model: type[Model]) -> bool:
    """Who could change such a row, may use the actions on it."""
    meta = model._meta
    return bool(request.user.has_perm(f"{meta.app_label}.change_{meta.model_name}"))

"""Is the row still what the operator saw? Every form and action carries the version it was rendered with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.html import format_html
from django.utils.safestring import SafeString

from ci.admin.readonly import Styled, operates
from ci.lifecycle.errors import LifecycleError

# One message a row: of more nobody would read them, and one request would take too long.
MAX_ROWS = 200
_VERSION = "version-{}"
_FROM_PAGE = "from_change_form"

Verb = Callable[[Any, int | None], str]


class VersionedForm(forms.ModelForm):
    """Carries the version that its other fields were read at."""

    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # A ModelForm writes what was sent into the instance: what was stored is noted before.
        self.fields["version"].initial = self.instance.version


class VersionedActions(Styled):
    """
    A list whose actions call one transition a row, each with the version that the list showed.

    Actions are declared with `permissions=["operate"]`, call `each`, and are buttons on the row's own page too.
    """

    list_per_page = 50
    list_max_show_all = MAX_ROWS
    show_full_result_count = False
    change_form_template = "admin/ci/versioned_change_form.html"

    def has_operate_permission(self, request: HttpRequest) -> bool:
        return operates(request, self.model)

    def action_checkbox(self, obj: Any) -> SafeString:
        box = super().action_checkbox(obj)
        if not hasattr(obj, "version"):
            return box
        return format_html('{}<input type="hidden" name="{}" value="{}">', box, _VERSION.format(obj.pk), obj.version)

    def response_action(self, request: HttpRequest, queryset: QuerySet[Any], *args: Any) -> HttpResponse | None:
        # The list's filters chose by what the rows were: one that has left them since must be told of, not left out.
        if request.POST.get("select_across") != "1":
            queryset = self.get_queryset(request)
        try:
            return super().response_action(request, queryset, *args)
        except ValueError:
            self.message_user(
                request, "The chosen rows are not ones of this list. Nothing was changed.", messages.ERROR
            )
            return None

    def each(self, request: HttpRequest, queryset: QuerySet[Any], verb: Verb) -> HttpResponse | None:
        """Call `verb(row, version)` for every chosen row and tell what became of each."""
        rows = list(queryset[: MAX_ROWS + 1])
        if len(rows) > MAX_ROWS:
            self.message_user(request, f"Choose at most {MAX_ROWS} rows. Nothing was changed.", messages.ERROR)
            return None
        for row in rows:
            try:
                self.message_user(request, f"{row}: {verb(row, self._version(request, row))}", messages.SUCCESS)
            except LifecycleError as error:
                self.message_user(request, f"{row}: {error.detail.removeprefix(f'{row} ')}", messages.ERROR)
        if request.POST.get("select_across") != "1":
            found = {str(row.pk) for row in rows}
            for key in request.POST.getlist(ACTION_CHECKBOX_NAME):
                if key not in found:
                    self.message_user(request, f"{self.opts.verbose_name} {key}: is gone.", messages.ERROR)
        if _FROM_PAGE in request.POST and len(rows) == 1:
            return redirect(f"{request.path}{rows[0].pk}/change/")
        return None

    def _version(self, request: HttpRequest, row: Any) -> int | None:
        """None for a row of another page of the list, chosen by "select all": nobody has seen its version."""
        given = request.POST.get(_VERSION.format(row.pk), "")
        if not given and request.POST.get("select_across") == "1":
            return None
        # A missing or garbled version fits no row, so that nothing is done on the strength of it.
        return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else -1

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """A form whose row has changed meanwhile changes nothing, says so, and shows the row as it is now."""
        buttons = {"row_actions": list(self._row_actions(request)), "checkbox_name": ACTION_CHECKBOX_NAME}
        try:
            return super().changeform_view(request, object_id, form_url, {**buttons, **(extra_context or {})})
        except LifecycleError as error:
            self.message_user(request, f"Nothing was changed. {error.detail}", messages.ERROR)
        return redirect(request.get_full_path())

    def _row_actions(self, request: HttpRequest) -> Iterator[tuple[str, str]]:
        for action in self.get_actions(request).values():
            if action and action[1] != "delete_selected":
                yield action[1], action[2]

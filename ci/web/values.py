"""How are secrets and variables alike? A list of names, a form that sets one, a button that deletes one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from ci.lifecycle.errors import InvalidInput
from ci.models import Secret
from ci.web.pages import paged, tell
from ci.web.scopes import Place


@dataclass(frozen=True)
class Verbs:
    """What is done to one kind of row, by ci.lifecycle."""

    model: type[Any]
    set: Callable[..., Any]
    delete: Callable[..., None]
    noun: str
    section: str


class ValueForm(forms.Form):
    """ci.lifecycle checks name and value; the form draws them and shows what it says."""

    name = forms.CharField(
        max_length=255, help_text="Letters, digits and _; kept in capitals. An existing name gets the new value."
    )
    value = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={"rows": 4, "spellcheck": "false"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}
        self.fields["value"].widget.attrs |= {"autocomplete": "off", "spellcheck": "false", "rows": 4}


def page(request: HttpRequest, place: Place, verbs: Verbs) -> HttpResponse:
    if request.method != "POST":
        return _show(request, place, verbs, ValueForm())
    action = request.POST.get("action")
    if action == "delete":
        tell(request, lambda: _delete(request, place, verbs))
    elif action == "set":
        refused = _set(request, place, verbs)
        if refused is not None:
            return _show(request, place, verbs, refused, status=422)
    else:
        raise SuspiciousOperation("The form asked for an action that this page does not have.")
    return redirect(request.path)


def _set(request: HttpRequest, place: Place, verbs: Verbs) -> ValueForm | None:
    """The form with its errors, or None when the value is set. A refused secret is not sent back."""
    form = ValueForm(request.POST)
    if form.is_valid():
        name, value = form.cleaned_data["name"], form.cleaned_data["value"].replace("\r\n", "\n")
        try:
            row = verbs.set(scope=place.scope, name=name, value=value, actor=request.user)
        except InvalidInput as error:
            for field, text in error.errors.items():
                form.add_error(field if field in form.fields else None, text)
        else:
            tell(request, lambda: f"The {verbs.noun} {row.name} is set.")
            return None
    if verbs.model is Secret:
        form.data = {**request.POST.dict(), "value": ""}
    return form


def _delete(request: HttpRequest, place: Place, verbs: Verbs) -> str:
    name = request.POST.get("name", "").replace("\0", "")
    verbs.delete(scope=place.scope, name=name, actor=request.user)
    return f"The {verbs.noun} {name} is deleted."


def _show(request: HttpRequest, place: Place, verbs: Verbs, form: ValueForm, *, status: int = 200) -> HttpResponse:
    rows = verbs.model.objects.filter(**place.value_rows).order_by("name")
    if verbs.model is Secret:
        rows = rows.defer("encrypted")
    context = {
        "place": place,
        "verbs": verbs,
        "section": verbs.section,
        "form": form,
        "page_obj": paged(request, rows, size=100),
    }
    return render(request, "ci/values.html", place.context | context, status=status)

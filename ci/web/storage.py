"""How long and how much may this repository keep? Retention of artifacts and the quota of caches."""

from __future__ import annotations

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from ci.lifecycle.caches import usage
from ci.lifecycle.errors import InvalidInput
from ci.lifecycle.storage_policies import MAX_ARTIFACT_DAYS, MAX_CACHE_BYTES, policy, set_policy
from ci.web.pages import around, tell
from forge.access import can_administer
from forge.models import Repository
from forge.web.loading import get_repository

MIB = 1024 * 1024


class StorageForm(forms.Form):
    """ci.lifecycle checks what is asked; the form draws it and shows what it says."""

    artifact_days = forms.IntegerField(label="Keep artifacts for (days)", required=False, min_value=1)
    cache_mib = forms.IntegerField(label="Room for caches (MiB)", required=False, min_value=0)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        days, mib = self.fields["artifact_days"], self.fields["cache_mib"]
        days.help_text = f"1 to {MAX_ARTIFACT_DAYS}. Left empty: {settings.ARTIFACT_DAYS}, as this instance keeps them."
        mib.help_text = f"Left empty: {settings.CACHE_BYTES // MIB}, as every repository of this instance has."
        days.widget.attrs |= {"max": MAX_ARTIFACT_DAYS, "placeholder": settings.ARTIFACT_DAYS}
        mib.widget.attrs |= {"max": MAX_CACHE_BYTES // MIB, "placeholder": settings.CACHE_BYTES // MIB}


@require_http_methods(["GET", "HEAD", "POST"])
def storage(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    repository = get_repository(request, owner, name, need=can_administer)
    if request.method != "POST":
        own = policy(repository)
        mib = None if own.cache_bytes is None else own.cache_bytes // MIB
        return _show(request, repository, StorageForm(initial={"artifact_days": own.artifact_days, "cache_mib": mib}))
    form = StorageForm(request.POST)
    if form.is_valid() and _save(request, repository, form):
        return redirect("storage", repository.owner.username, repository.name)
    return _show(request, repository, form, status=422)


def _save(request: HttpRequest, repository: Repository, form: StorageForm) -> bool:
    mib = form.cleaned_data["cache_mib"]
    try:
        set_policy(
            repository=repository,
            artifact_days=form.cleaned_data["artifact_days"],
            cache_bytes=None if mib is None else mib * MIB,
            actor=request.user,
        )
    except InvalidInput as error:
        for field, text in error.errors.items():
            form.add_error({"cache_bytes": "cache_mib"}.get(field, field), text)
        return False
    return tell(request, lambda: "Saved. Artifacts that are there keep the date on which they expire.")


def _show(request: HttpRequest, repository: Repository, form: StorageForm, *, status: int = 200) -> HttpResponse:
    context = around(repository, form=form, used=usage(repository), section="storage")
    return render(request, "ci/storage.html", context, status=status)

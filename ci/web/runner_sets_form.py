"""What may a person write down about a runner set? The form draws it; ci.lifecycle says what is wrong with it."""

from __future__ import annotations

import json
import re
from typing import Any

from django import forms

from ci.lifecycle.runner_sets import MAX_RUNNERS
from ci.lifecycle.set_templates import LOCAL_IS_FOR_OPERATORS, MAX_TEMPLATE, is_trusted, launchers_for
from ci.models import RunnerSet
from ci.web.scopes import Place
from forge.models import Repository

MOST_REPOSITORIES = 200
_EXACT = {"autocomplete": "off", "spellcheck": "false"}
_LAUNCHER = "What starts the runners. A container or a Pod holds one job each."


class LauncherSelect(forms.Select):
    """Shows all launchers, those that are not for this person as not available."""

    available: frozenset[str] = frozenset(RunnerSet.Launcher.values)

    def create_option(self, name: str, value: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *args, **kwargs)
        if value and str(value) not in self.available:
            option["attrs"]["disabled"] = True
            option["label"] = f"{option['label']} (not available)"
        return option


class RunnerSetForm(forms.Form):
    name = forms.CharField(max_length=100, widget=forms.TextInput(attrs=_EXACT))
    labels = forms.CharField(
        max_length=6000,
        help_text="Separated by commas. A job fits where the set has all of the labels that its runs-on names.",
        widget=forms.TextInput(attrs=_EXACT),
    )
    minimum = forms.IntegerField(
        min_value=0, max_value=MAX_RUNNERS, initial=0, help_text="Idle runners to keep ready beside the busy ones."
    )
    maximum = forms.IntegerField(
        min_value=0, max_value=MAX_RUNNERS, initial=1, help_text="Runners that may exist at once."
    )
    maximum_per_repository = forms.IntegerField(
        min_value=1,
        max_value=MAX_RUNNERS,
        required=False,
        help_text="Jobs of one repository that may run here at once; empty for no limit.",
    )
    launcher = forms.ChoiceField(
        choices=RunnerSet.Launcher.choices, initial=RunnerSet.Launcher.DOCKER, widget=LauncherSelect
    )
    template = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_TEMPLATE,
        help_text='What the launcher starts, as a JSON object, such as {"image": "debian:12"}.',
        widget=forms.Textarea(attrs={"rows": 10, **_EXACT}),
    )
    repositories = forms.CharField(
        required=False,
        max_length=MOST_REPOSITORIES * 300,
        help_text="The only ones whose jobs may run here, a line each; empty for all.",
        widget=forms.Textarea(attrs={"rows": 3, **_EXACT}),
    )

    def __init__(self, data: Any = None, *, place: Place, actor: Any, runner_set: RunnerSet | None = None) -> None:
        """`refusal` is set where the form as a whole came to nothing, though no field of it is wrong."""
        super().__init__(data, initial=_initial(runner_set) if runner_set else None)
        self.place, self.runner_set, self.refusal = place, runner_set, ""
        if place.kind == "repository":
            del self.fields["repositories"]
        available = {*launchers_for(actor)} | ({runner_set.launcher} if runner_set else set())
        launcher = self.fields["launcher"]
        launcher.widget.available = frozenset(available)
        launcher.help_text = _LAUNCHER if is_trusted(actor) else f"{_LAUNCHER} {LOCAL_IS_FOR_OPERATORS}"
        if runner_set is None and is_trusted(actor):
            launcher.initial = RunnerSet.Launcher.LOCAL

    def clean_labels(self) -> list[str]:
        return [label for label in re.split(r"[,\n]", self.cleaned_data["labels"]) if label.strip()]

    def clean_template(self) -> Any:
        text = self.cleaned_data["template"]
        if not text.strip():
            return {}
        try:
            return json.loads(text, parse_constant=_refuse)
        except json.JSONDecodeError as error:
            raise forms.ValidationError(
                f"This is not JSON: {error.msg}, line {error.lineno}, column {error.colno}."
            ) from None
        except RecursionError:
            raise forms.ValidationError("This is nested too deep.") from None
        except ValueError as error:
            raise forms.ValidationError(f"This is not JSON: {error}.") from None

    def clean_repositories(self) -> list[Repository]:
        names = list(dict.fromkeys(self.cleaned_data["repositories"].replace(",", "\n").split()))
        if len(names) > MOST_REPOSITORIES:
            raise forms.ValidationError(f"At most {MOST_REPOSITORIES} repositories.")
        found = {name: self._repository(name) for name in names}
        unknown = [name for name, repository in found.items() if repository is None]
        if unknown:
            raise forms.ValidationError([f"There is no repository {name} here." for name in unknown[:10]])
        return list({one.pk: one for one in found.values() if one is not None}.values())

    def fields_to_save(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in self.fields}

    def _repository(self, name: str) -> Repository | None:
        """`owner/name`; of a person's own set also the bare name. Others' repositories are none there."""
        owner, slash, bare = name.rpartition("/")
        among = Repository.objects.filter(name__iexact=bare)
        if self.place.kind == "owner":
            among = among.filter(owner=self.place.scope.owner)
        return (
            among.filter(owner__username__iexact=owner).first()
            if slash
            else (among.first() if self.place.kind == "owner" else None)
        )


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number of JSON")


def _initial(runner_set: RunnerSet) -> dict[str, Any]:
    names = ("name", "minimum", "maximum", "maximum_per_repository", "launcher")
    only = runner_set.repositories.select_related("owner").order_by("owner__username", "name")
    return {name: getattr(runner_set, name) for name in names} | {
        "labels": ", ".join(runner_set.labels),
        "template": json.dumps(runner_set.template, indent=2, ensure_ascii=False),
        "repositories": "\n".join(str(repository) for repository in only),
    }

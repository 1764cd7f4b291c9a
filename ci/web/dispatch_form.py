"""Which fields does a workflow's `workflow_dispatch` ask for? One for each input, by its type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

_PREFIX = "input_"


class DispatchForm(forms.Form):
    """Only draws and reads the fields: ci.lifecycle.dispatch is who decides whether the values will do."""

    use_required_attribute = False

    def __init__(self, data: Any = None, *, inputs: Mapping[str, Mapping[str, Any]]) -> None:
        super().__init__(data)
        self.names = list(inputs)
        for index, (name, definition) in enumerate(inputs.items()):
            self.fields[f"{_PREFIX}{index}"] = _field(name, definition)

    def given(self) -> dict[str, str]:
        """The inputs as typed; those left empty are left out, so that their defaults hold."""
        values = {}
        for index, name in enumerate(self.names):
            key = f"{_PREFIX}{index}"
            if isinstance(self.fields[key], forms.BooleanField):
                values[name] = "true" if self.data.get(key) else "false"
            elif self.data.get(key):
                values[name] = self.data[key]
        return values

    def refuse(self, errors: Mapping[str, str]) -> None:
        """Show what was wrong beside the field that it is about."""
        self.errors.clear()
        for name, text in errors.items():
            self.add_error(f"{_PREFIX}{self.names.index(name)}" if name in self.names else None, str(text))


def _field(name: str, definition: Mapping[str, Any]) -> forms.Field:
    kind = definition.get("type") or "string"
    default = definition.get("default")
    about: dict[str, Any] = {
        "label": definition.get("description") or name,
        "help_text": name if definition.get("description") else "",
        "required": bool(definition.get("required")) and default in (None, ""),
        "initial": default,
    }
    if kind == "boolean":
        initial = default is True or str(default).lower() == "true"
        return forms.BooleanField(**{**about, "required": False, "initial": initial})
    if kind == "choice":
        options = [str(option) for option in definition.get("options") or []]
        return forms.ChoiceField(**about, choices=[(option, option) for option in options])
    if kind == "number":
        return forms.CharField(**about, widget=forms.NumberInput(attrs={"step": "any"}))
    return forms.CharField(**about)

"""What may a person type into the forge's forms?"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib.auth import get_user_model
from django.utils import timezone

from forge.models import Member, Repository, repository_name


class NewRepositoryForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        validators=[repository_name],
        help_text="Letters, digits, '-', '_' and '.'.",
        widget=forms.TextInput(attrs={"autofocus": True, "autocomplete": "off", "autocapitalize": "none"}),
    )
    description = forms.CharField(max_length=350, required=False, help_text="One line that says what it is for.")
    private = forms.BooleanField(
        required=False, initial=True, help_text="Only you and the members you add see a private repository."
    )


class RepositoryForm(forms.Form):
    description = forms.CharField(max_length=350, required=False, help_text="One line that says what it is for.")
    private = forms.BooleanField(required=False, help_text="Only the owner and the members see a private repository.")
    default_branch = forms.CharField(max_length=255, disabled=True, help_text="Can be changed once a branch is pushed.")

    def __init__(self, data: Any = None, *, repository: Repository, branches: list[str]) -> None:
        super().__init__(data, initial={name: getattr(repository, name) for name in self.base_fields})
        if branches:
            current = repository.default_branch
            names = branches if current in branches else [current, *branches]
            self.fields["default_branch"] = forms.ChoiceField(
                choices=[(name, name) for name in names],
                help_text="What a clone checks out, and where schedules and manual runs are read from.",
                error_messages={"invalid_choice": "There is no branch %(value)s. Push it first, then choose it."},
            )


class DeleteRepositoryForm(forms.Form):
    confirm = forms.CharField(
        label="Type the full name to confirm",
        max_length=300,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )

    def __init__(self, *args: Any, repository: Repository, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.repository = repository
        self.fields["confirm"].help_text = f"{repository}"

    def clean_confirm(self) -> str:
        if self.cleaned_data["confirm"] != str(self.repository):
            raise forms.ValidationError(f"This is not the name. Type {self.repository} to delete it.")
        return str(self.cleaned_data["confirm"])


class NewMemberForm(forms.Form):
    username = forms.CharField(
        max_length=150,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autocapitalize": "none", "spellcheck": "false"}),
    )
    role = forms.ChoiceField(
        choices=Member.Role.choices,
        help_text="Read: see and clone. Write: also push, start and cancel runs. Admin: also settings and members.",
    )

    def __init__(self, *args: Any, repository: Repository, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.repository = repository

    def clean_username(self) -> str:
        username = self.cleaned_data["username"]
        self.member = get_user_model().objects.filter(username__iexact=username, is_active=True).first()
        if self.member is None:
            raise forms.ValidationError(f"There is no active account named {username}.")
        if self.member.pk == self.repository.owner_id:
            raise forms.ValidationError(f"{self.member} owns this repository and may do everything already.")
        if self.repository.members.filter(user=self.member).exists():
            raise forms.ValidationError(f"{self.member} is a member already. Change the role in the list.")
        return str(username)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Member.Role.choices)


class AccessTokenForm(forms.Form):
    name = forms.CharField(
        max_length=100,
        help_text="What it is for, for example the machine that will use it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    days = forms.TypedChoiceField(
        label="Expires",
        choices=[("7", "in 7 days"), ("30", "in 30 days"), ("90", "in 90 days"), ("365", "in a year"), ("0", "never")],
        initial="30",
        coerce=int,
    )

    @property
    def expires_at(self) -> datetime | None:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=days) if days else None

"""What does the operator do in the admin? Signed in, posting what the admin's own pages would."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.db.models import Model
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse


class Operator(Client):
    """A browser that fills in the admin's forms with what the pages hold, hidden fields and all."""

    def listed(self, model: type[Model], **parameters: str) -> HttpResponse:
        page = self.get(_address(model, "changelist"), parameters)
        assert page.status_code == 200
        return page

    def opened(self, row: Model) -> HttpResponse:
        page = self.get(_address(type(row), "change", row.pk))
        assert page.status_code == 200
        return page

    def act(self, action: str, *rows: Model, page: HttpResponse | None = None, **extra: str) -> list[str]:
        """Choose rows of a list page and an action; returns the messages."""
        model = type(rows[0])
        page = page or self.listed(model)
        fields = {**hidden(page, "version-"), "action": action, "index": "0", "select_across": "0", **extra}
        answer = self.post(
            page.request["PATH_INFO"] + "?" + page.request["QUERY_STRING"],
            {**fields, "_selected_action": [str(row.pk) for row in rows]},
            follow=True,
        )
        assert answer.status_code == 200
        return told(answer)


def hidden(page: HttpResponse, start: str = "") -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.content.decode())
    return {name: value for name, value in found if name.startswith(start)}


def told(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def _address(model: type[Model], view: str, *arguments: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{view}", args=arguments)


@pytest.fixture
def operator(playground) -> Operator:
    browser = Operator()
    browser.force_login(playground.operator, "django.contrib.auth.backends.ModelBackend")
    return browser

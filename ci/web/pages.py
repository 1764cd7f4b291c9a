"""What do all CI pages share? The repository around them, and forms that turn one verb into one message."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.exceptions import SuspiciousOperation
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import HttpRequest

from ci.lifecycle.errors import InvalidInput, LifecycleError
from forge.models import Repository

MAX_ID = 2**63 - 1


def around(repository: Repository, **more: Any) -> dict[str, Any]:
    """The context of a page of `repository`."""
    return {"repository": repository, "owner": repository.owner.username, "name": repository.name, **more}


def paged(request: HttpRequest, rows: QuerySet[Any], *, size: int = 30) -> Page[Any]:
    """The page that `?page=` asks for; the first or last where that makes no sense."""
    return Paginator(rows, size).get_page(request.GET.get("page"))


def number(text: str | None, *, most: int = MAX_ID) -> int | None:
    """A number from a page's address, or None where it is none or out of bounds."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most else None


def posted_number(request: HttpRequest, field: str) -> int:
    """A number that one of our own forms sends. Raises SuspiciousOperation, so answers 400, for anything else."""
    found = number(request.POST.get(field))
    if found is None:
        raise SuspiciousOperation(f"The form sent no number as {field}.")
    return found


def posted_version(request: HttpRequest) -> int | None:
    """The version the person saw when they decided; None where the form has none."""
    return posted_number(request, "version") if "version" in request.POST else None


def tell(request: HttpRequest, verb: Callable[[], str]) -> bool:
    """Do it and say what it returns, or say why not. Whether it was done."""
    try:
        said = verb()
    except InvalidInput as error:
        for name, text in error.errors.items():
            messages.error(request, f"{name}: {text}")
    except LifecycleError as error:
        messages.error(request, error.detail)
    else:
        messages.success(request, said)
        return True
    return False

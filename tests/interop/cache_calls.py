"""How do the tests call the services of caches, as a job that has a runtime token?"""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpResponse
from django.test import Client

from ci.models import Blob, CacheEntry
from tests.playground import Assigned

SERVICE = "/twirp/github.actions.results.api.v1.CacheService/"
BASE = "/api/actions_cache/_apis/artifactcache/"


def token_of(assigned: Assigned) -> str:
    token: str = assigned.payload["runtime"]["token"]
    return token


def v2(assigned: Assigned, method: str, **given: Any) -> HttpResponse:
    return _call("POST", SERVICE + method, token_of(assigned), given)


def v1(assigned: Assigned, method: str, path: str, given: dict[str, Any] | None = None) -> HttpResponse:
    return _call(method, BASE + path, token_of(assigned), given)


def _call(method: str, address: str, token: str, given: dict[str, Any] | None) -> HttpResponse:
    content = b"" if given is None else json.dumps(given).encode()
    headers = {"Authorization": f"Bearer {token}"}
    answer: HttpResponse = Client().generic(method, address, content, content_type="application/json", headers=headers)
    return answer


def stored() -> list[Any]:
    """All there is of caches: what a refused call must leave as it was."""
    return [*CacheEntry.objects.order_by("pk").values(), *Blob.objects.order_by("pk").values()]

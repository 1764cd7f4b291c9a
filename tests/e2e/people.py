"""The people who use the product: with a browser's pages, with the REST API, and with git."""

from __future__ import annotations

import re
import time
from typing import Any
from urllib.parse import quote

import httpx

from tests.e2e.product import Product

RESTART_SECONDS = 120.0
_CSRF = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


class Person:
    """Somebody with an account, a signed-in session and a personal access token."""

    def __init__(self, product: Product, name: str, password: str) -> None:
        self.product, self.name, self.password = product, name, password
        self.pages = httpx.Client(base_url=product.url, timeout=60, follow_redirects=True, trust_env=False)
        self.submit("/login/", username=name, password=password)
        assert "sessionid" in self.pages.cookies, f"{name} could not sign in"
        made = self.submit("/settings/tokens/", name="tests", days="30")
        found = re.search(r"frp_[\w-]+", made.text)
        assert found is not None, made.text
        self.token = found[0]
        self._calls = httpx.Client(base_url=f"{product.url}/api/v1/", timeout=60, trust_env=False)
        self._calls.headers["Authorization"] = f"Bearer {self.token}"

    def submit(self, path: str, **fields: str) -> httpx.Response:
        """Fill in the form of a page and send it, as a browser without JavaScript does."""
        token = _CSRF.search(self.pages.get(path).text)
        assert token is not None, f"{path} has no form"
        form = {"csrfmiddlewaretoken": token[1], **fields}
        answer = self.pages.post(path, data=form, headers={"Referer": self.product.url + path})
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text[:2000]}"
        return answer

    def create_person(self, name: str) -> Person:
        """For the administrator: a new account, made in the admin."""
        password = f"quite-a-long-one-of-{name}"
        self.submit(
            "/admin/auth/user/add/", username=name, password1=password, password2=password, usable_password="true"
        )
        return type(self)(self.product, name, password)

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        """One call of the REST API; its JSON. Any error is the test's failure, but a read outlasts a restart of web."""
        answer = self._ask(method, path, json=body, params=query or None)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text[:2000]}"
        return answer.json() if answer.content else None

    def bytes_of(self, path: str) -> bytes:
        answer = self._ask("GET", path)
        assert answer.is_success, f"{path}: {answer.status_code} {answer.text[:500]}"
        return answer.content

    def _ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        deadline = time.monotonic() + RESTART_SECONDS
        while True:
            try:
                answer = self._calls.request(method, path, **options)
                if method != "GET" or answer.status_code < 500 or time.monotonic() > deadline:
                    return answer
            except httpx.TransportError:
                if method != "GET" or time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    def remote(self, repository: str, secret: str | None = None) -> str:
        """The address for git, with this person's token (or another secret) as the password."""
        credentials = f"{quote(self.name, safe='')}:{quote(secret or self.token, safe='')}"
        return f"http://{credentials}@127.0.0.1:{self.product.port}/{repository}.git"

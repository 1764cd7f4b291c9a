"""How does an action ask the forge's results service for artifacts and caches?

Source of the protocol: GitHub's toolkit: twirp with JSON bodies under the origin of ACTIONS_RESULTS_URL."""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from ci.runner.builtin import step
from ci.runner.builtin.transfers import Passing, Refused, Transfers, reason
from ci.runner.payload import mapping

PREFIX = "/twirp/github.actions.results.api.v1."
MOST_SHOWN = 2000  # characters of what the forge said


class Results:
    """The service, for the job that ACTIONS_RUNTIME_TOKEN is of."""

    def __init__(self, transfers: Transfers) -> None:
        """Raises Failure where the forge offers none."""
        self.token = step.variable("ACTIONS_RUNTIME_TOKEN")
        parts = urlsplit(step.variable("ACTIONS_RESULTS_URL"))
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._transfers = transfers

    def call(self, service: str, method: str, body: dict[str, Any]) -> dict[str, Any]:
        """The answer, its keys in snake_case. Raises Refused, Exhausted."""
        url = f"{self._origin}{PREFIX}{service}/{method}"
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        content = json.dumps(body).encode()

        def attempt() -> dict[str, Any]:
            answer = self._transfers.send("POST", url, content=content, headers=headers)
            try:
                said: dict[str, Any] = _snake(mapping(json.loads(answer.content)))
            except ValueError:
                raise Passing(f"{reason(answer.status)} without JSON") from None
            if 200 <= answer.status < 300:
                return said
            words = f": {str(said['msg'])[:MOST_SHOWN]}" if said.get("msg") else ""
            shown = f"Failed request: ({answer.status}) {reason(answer.status).partition(' ')[2]}{words}"
            raise Refused(f"Failed to {method}: Received non-retryable error: {shown}", status=answer.status)

        said = self._transfers.repeat(attempt)
        # Not those of artifacts to download, which may be a thousand: no log shows an address with its query.
        for name in ("signed_upload_url", "signed_download_url"):
            hide_signature(str(said.get(name) or ""))
        return said

    def ids(self) -> dict[str, str]:
        """Run and job as artifact calls name them. Raises Failure."""
        try:
            middle = self.token.split(".")[1]
            said = json.loads(base64.urlsafe_b64decode(middle + "=" * (-len(middle) % 4)))
            scopes = [scope.split(":") for scope in str(said["scp"]).split(" ")]
            run, job = next(scope[1:] for scope in scopes if scope[0] == "Actions.Results" and len(scope) == 3)
        except (IndexError, KeyError, TypeError, ValueError, StopIteration, binascii.Error):
            raise step.Failure(
                "Failed to get backend IDs: The provided JWT token is invalid and/or missing claims"
            ) from None
        return {"workflow_run_backend_id": run, "workflow_job_run_backend_id": job}


def _snake(value: Any) -> Any:
    """Servers answer with snake_case or camelCase."""
    if isinstance(value, list):
        return [_snake(item) for item in value]
    if isinstance(value, dict):
        return {
            re.sub("([A-Z])", lambda found: "_" + found[1].lower(), key): _snake(item) for key, item in value.items()
        }
    return value


def hide_signature(url: str) -> None:
    """Whoever has a signed address may use it."""
    for signature in parse_qs(urlsplit(url).query).get("sig", []):
        step.mask(signature)
        step.mask(quote(signature, safe=""))


def without_query(url: str) -> str:
    """An address as logs may show it."""
    return urlsplit(url)._replace(query="").geturl()

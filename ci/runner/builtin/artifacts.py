"""Which artifacts are there, and how does one come or go?

Of the running job's own run through the results service, of any other through the REST API with a token."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from urllib.parse import quote

from ci.runner.builtin import step
from ci.runner.builtin.results import Results
from ci.runner.builtin.step import Failure
from ci.runner.builtin.transfers import Passing, Transfers, reason
from ci.runner.payload import mapping

SERVICE = "ArtifactService"
VERSION = 7
PAGE = 100
MOST_PAGES = 10
NOT_FOUND = (
    "Artifact not found for name: {name}\n"
    "Please ensure that your artifact is not expired and the artifact was uploaded using a compatible version of "
    "toolkit/upload-artifact."
)


@dataclass(frozen=True)
class Artifact:
    """`digest`: `sha256:<hex>`, or nothing where the forge knows none."""

    id: int
    name: str
    size: int
    digest: str


class Source(Protocol):
    """Where artifacts are downloaded from."""

    def list(self, name: str = "") -> list[Artifact]: ...
    def address(self, artifact: Artifact) -> str: ...


def newest(artifacts: Iterable[Artifact]) -> list[Artifact]:
    """One of each name, the newest first."""
    found: dict[str, Artifact] = {}
    for artifact in sorted(artifacts, key=lambda artifact: -artifact.id):
        found.setdefault(artifact.name, artifact)
    return list(found.values())


class OwnRun:
    """The artifacts of the run that this job belongs to."""

    def __init__(self, results: Results) -> None:
        """Raises Failure."""
        self._results = results
        self._ids = results.ids()
        self._backends: dict[int, dict[str, str]] = {}

    def list(self, name: str = "") -> list[Artifact]:
        """Raises Refused, Exhausted."""
        wanted = {"name_filter": name} if name else {}
        found: list[Artifact] = []
        said = self._results.call(SERVICE, "ListArtifacts", {**self._ids, **wanted})
        for item in map(mapping, said.get("artifacts") or []):
            artifact = Artifact(
                id=int(item.get("database_id") or 0),
                name=str(item.get("name") or ""),
                size=int(item.get("size") or 0),
                digest=str(item.get("digest") or ""),
            )
            found.append(artifact)
            self._backends[artifact.id] = {name: str(item.get(name) or own) for name, own in self._ids.items()}
        return found

    def address(self, artifact: Artifact) -> str:
        """Raises Refused, Exhausted."""
        body = {**self._backends.get(artifact.id, self._ids), "name": artifact.name}
        return str(self._results.call(SERVICE, "GetSignedArtifactURL", body).get("signed_url") or "")

    def create(self, name: str, *, content_type: str, retention_days: int) -> str:
        """The signed address to upload to. Raises Failure."""
        body: dict[str, Any] = {**self._ids, "name": name, "mime_type": content_type, "version": VERSION}
        if retention_days > 0:
            expires = datetime.now(UTC) + timedelta(days=retention_days)
            body["expires_at"] = expires.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        said = self._results.call(SERVICE, "CreateArtifact", body)
        if not said.get("ok") or not said.get("signed_upload_url"):
            raise Failure("CreateArtifact: response from backend was not ok")
        return str(said["signed_upload_url"])

    def finalize(self, name: str, *, size: int, sha256: str) -> int:
        """The artifact's id. Raises Failure."""
        body = {**self._ids, "name": name, "size": str(size), "hash": f"sha256:{sha256}"}
        said = self._results.call(SERVICE, "FinalizeArtifact", body)
        if not said.get("ok"):
            raise Failure("FinalizeArtifact: response from backend was not ok")
        return int(said["artifact_id"])

    def delete(self, name: str) -> bool:
        """False where there is none of that name. Raises Failure."""
        found = newest(self.list(name))
        if not found:
            return False
        body = {**self._backends[found[0].id], "name": name}
        said = self._results.call(SERVICE, "DeleteArtifact", body)
        step.info(f"Artifact '{name}' (ID: {said.get('artifact_id')}) deleted")
        return True


class OtherRun:
    """The artifacts of a run that the token can read."""

    def __init__(self, transfers: Transfers, *, token: str, repository: str, run: str) -> None:
        """Raises Failure."""
        owner, _, name = repository.partition("/")
        if not owner or not name or "/" in name:
            raise Failure(f"Invalid repository: '{repository}'. Must be in format owner/repo")
        if not run.isdecimal():
            raise Failure(f"Invalid run-id: '{run}'. It must be the number of a workflow run.")
        api = step.variable("GITHUB_API_URL").rstrip("/")
        self._actions = f"{api}/repos/{quote(owner, safe='')}/{quote(name, safe='')}/actions"
        self._run = int(run)
        self._where = f"workflow run {run} in repository {repository}"
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._transfers = transfers
        step.mask(token)

    def list(self, name: str = "") -> list[Artifact]:
        """Raises Failure."""
        step.info(f"Fetching artifact list for {self._where}")
        wanted = f"&name={quote(name, safe='')}" if name else ""
        found: list[Artifact] = []
        for page in range(1, MOST_PAGES + 1):
            said = self._get(f"/runs/{self._run}/artifacts?per_page={PAGE}&page={page}{wanted}")
            items = [mapping(item) for item in said.get("artifacts") or []]
            found += [
                Artifact(
                    id=int(item["id"]),
                    name=str(item["name"]),
                    size=int(item.get("size_in_bytes") or 0),
                    digest=str(item.get("digest") or ""),
                )
                for item in items
                if not item.get("expired")
            ]
            if len(items) < PAGE:
                return found
        step.warning(f"The {self._where} has more artifacts than the {PAGE * MOST_PAGES} that are looked at.")
        return found

    def _get(self, path: str) -> dict[str, Any]:
        def attempt() -> dict[str, Any]:
            answer = self._transfers.send("GET", f"{self._actions}{path}", headers=self._headers)
            if answer.status != 200:
                raise Failure(
                    f"The forge's API refused the {self._where}: {reason(answer.status)}{_words(answer.content)}"
                )
            try:
                return mapping(json.loads(answer.content))
            except ValueError:
                raise Passing(f"{reason(answer.status)} without JSON") from None

        return self._transfers.repeat(attempt)

    def address(self, artifact: Artifact) -> str:
        """Raises Failure."""

        def attempt() -> str:
            url = f"{self._actions}/artifacts/{artifact.id}/zip"
            answer = self._transfers.send("GET", url, headers=self._headers)
            if answer.status != 302 or not answer.headers.get("Location"):
                raise Failure(f"Unable to download artifact. Unexpected status: {reason(answer.status)}")
            return str(answer.headers["Location"])

        return self._transfers.repeat(attempt)


def _words(content: bytes) -> str:
    try:
        said = mapping(json.loads(content))
    except ValueError:
        return ""
    words = said.get("detail") or said.get("message")
    return f": {str(words)[:500]}" if words else ""

"""How do artifacts of the actions' third major come and go? File by file, and several jobs may fill one.

Source of the protocol: @actions/artifact 1, by REST below ACTIONS_RUNTIME_URL."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from ci.runner.builtin import step
from ci.runner.builtin.blobs import BLOCK, put
from ci.runner.builtin.step import Failure
from ci.runner.builtin.transfers import Passing, Refused, Slice, Transfers, reason
from ci.runner.builtin.zips import PIECE, Entry, folder_for, inside
from ci.runner.payload import mapping

# Up to this major an artifact is a folder that several jobs may fill.
OF_FOLDERS = 3
PARALLEL = 2
NOTHING = "bytes 0--1/0"
_API = "api-version=6.0-preview"
_ACCEPT = f"application/json;{_API}"


@dataclass(frozen=True)
class Folder:
    """An artifact and the address of its files."""

    name: str
    address: str


class Folders:
    """The artifacts of the run that this job belongs to."""

    def __init__(self, transfers: Transfers) -> None:
        """Raises Failure."""
        self._transfers = transfers
        self._headers = {"Authorization": f"Bearer {step.variable('ACTIONS_RUNTIME_TOKEN')}", "Accept": _ACCEPT}
        run = step.variable("GITHUB_RUN_ID")
        self._address = f"{step.variable('ACTIONS_RUNTIME_URL')}_apis/pipelines/workflows/{run}/artifacts"

    def _call(self, method: str, url: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content = None if body is None else json.dumps(body).encode()
        headers = self._headers if body is None else {**self._headers, "Content-Type": "application/json"}

        def attempt() -> dict[str, Any]:
            answer = self._transfers.send(method, url, content=content, headers=headers)
            try:
                said = mapping(json.loads(answer.content))
            except ValueError:
                raise Passing(f"{reason(answer.status)} without JSON") from None
            if 200 <= answer.status < 300:
                return said
            words = str(said.get("message") or said.get("detail") or "")[:2000]
            raise Refused(f"The artifact service said {reason(answer.status)}: {words}", status=answer.status)

        return self._transfers.repeat(attempt)

    def upload(self, name: str, entries: Sequence[Entry], *, days: int) -> None:
        """Raises Failure."""
        asked: dict[str, Any] = {"Type": "actions_storage", "Name": name}
        if days > 0:
            asked["RetentionDays"] = days
        address = str(self._call("POST", f"{self._address}?{_API}", asked)["fileContainerResourceUrl"])
        step.info(f'Container for artifact "{name}" successfully created. Starting upload of file(s)')
        begin = f"{address}?itemPath={quote(name)}/"
        with ThreadPoolExecutor(PARALLEL) as pool:
            sent = [pool.submit(self._send, f"{begin}{quote(one.name)}", one) for one in entries]
            try:
                size = sum(each.result() for each in sent)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        step.info(f"Total size of all the files uploaded is {size} bytes")
        step.info("File upload process has finished. Finalizing the artifact upload")
        self._call("PATCH", f"{self._address}?{_API}&artifactName={quote(name, safe='')}", {"Size": size})
        step.info("Artifact has been finalized. All files have been successfully uploaded!")

    def _send(self, url: str, entry: Entry) -> int:
        """The file's size."""
        path = Path(entry.path)
        try:
            size = path.stat().st_size
        except OSError as problem:
            raise Failure(f"'{entry.path}' cannot be read: {problem.strerror}") from problem
        for start in range(0, max(1, size), BLOCK):
            part = Slice(path, start, min(BLOCK, size - start))
            said = f"bytes {start}-{start + len(part) - 1}/{size}" if size else NOTHING
            headers = {"Content-Type": "application/octet-stream", "Content-Range": said}
            put(self._transfers, url, part, {**self._headers, **headers})
        return size

    def list(self) -> list[Folder]:
        """Raises Failure."""
        found = map(mapping, self._call("GET", f"{self._address}?{_API}").get("value") or [])
        return [Folder(str(item["name"]), str(item["fileContainerResourceUrl"])) for item in found]

    def download(self, folder: Folder, target: Path) -> None:
        """Every file below the target. Raises Failure."""
        said = self._call("GET", f"{folder.address}?itemPath={quote(folder.name, safe='')}")
        files = [mapping(item) for item in said.get("value") or []]
        os.makedirs(target, exist_ok=True)
        root = os.path.realpath(target)
        with tempfile.TemporaryDirectory(dir=os.environ.get("RUNNER_TEMP")) as temporary:
            for item in files:
                if item.get("itemType") == "file":
                    place = inside(root, str(item["path"]).removeprefix(f"{folder.name}/"))
                    self._fetch(str(item["contentLocation"]), place, Path(temporary, "file"))

    def _fetch(self, url: str, place: str, temporary: Path) -> None:
        got = self._transfers.download(url, temporary)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.lexists(place) and not os.path.isdir(place):
            os.unlink(place)
        kind = gzip.open if got.encoding == "gzip" else open
        try:
            with kind(temporary, "rb") as source, open(place, "xb") as copy:
                shutil.copyfileobj(source, copy, PIECE)
        except (EOFError, gzip.BadGzipFile) as problem:
            raise Failure(f"'{place}' came damaged: {problem}") from problem


def download(*, name: str, path: Path) -> None:
    """What `actions/download-artifact@v3` does. Raises Failure."""
    folders = Folders(Transfers())
    there = folders.list()
    if name:
        step.info(f"Starting download for {name}")
        found = next((folder for folder in there if folder.name == name), None)
        if found is None:
            raise Failure(f"Unable to find any artifacts for the associated workflow with the name: {name}")
        folders.download(found, path)
        step.info(f"Artifact {name} was downloaded to {path}")
        return
    step.info("No artifact name specified, downloading all artifacts")
    step.info("Creating an extra directory for each artifact that is being downloaded")
    for folder in there:
        target = folder_for(path, folder.name)
        folders.download(folder, target)
        step.info(f"Artifact {folder.name} was downloaded to {target}")
    step.info(f"There were {len(there)} artifacts downloaded")

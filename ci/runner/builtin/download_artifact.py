"""How does `actions/download-artifact` run without Node.js?"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ci.runner.builtin import step, zips
from ci.runner.builtin.artifacts import NOT_FOUND, Artifact, OtherRun, OwnRun, Source, newest
from ci.runner.builtin.folders import OF_FOLDERS, download
from ci.runner.builtin.name_patterns import matches
from ci.runner.builtin.results import Results, without_query
from ci.runner.builtin.step import Call, Failure
from ci.runner.builtin.transfers import Downloaded, Transfers, sha256

PARALLEL = 5
MISMATCH = ("ignore", "info", "warn", "error")
ZIPS = ("application/zip", "application/x-zip-compressed", "application/zip-compressed")
# From this major on one artifact alone gets no folder of its own, however it was asked for.
ONE_WITHOUT_FOLDER = 5
# From this major on one may choose what becomes of a zip, and of bytes that are not those uploaded.
OF_CHOICE = 8


@dataclass(frozen=True)
class Wish:
    """What is asked for."""

    name: str
    ids: tuple[int, ...]
    pattern: str
    merge: bool
    raw: bool
    mismatch: str
    folder: Path


def run(call: Call) -> None:
    """Raises Failure."""
    try:
        if call.major > OF_FOLDERS:
            _run(call.major)
        else:
            folder = _folder()
            download(name=step.text("name"), path=folder)
            _finish(folder)
    except Failure as problem:
        raise Failure(f"Unable to download artifact(s): {problem}") from problem


def _run(major: int) -> None:
    wish = _wish(major)
    transfers = Transfers()
    token = step.text("github-token")
    source: Source = (
        OtherRun(transfers, token=token, repository=step.text("repository"), run=step.text("run-id"))
        if token
        else OwnRun(Results(transfers))
    )
    _check_run(token)
    wanted = _wanted(source, wish)
    if wanted:
        step.info("Preparing to download the following artifacts:")
    for artifact in wanted:
        step.info(
            f"- {artifact.name} (ID: {artifact.id}, Size: {artifact.size}, "
            f"Expected Digest: {artifact.digest or 'none'})"
        )
    alone = bool(wish.name) or wish.merge or (len(wanted) == 1 and major >= ONE_WITHOUT_FOLDER)
    folders = {artifact: wish.folder if alone else zips.folder_for(wish.folder, artifact.name) for artifact in wanted}
    damaged = fetch_all(transfers, source, wanted, folders, raw=wish.raw)
    _tell_of(damaged, wish.mismatch)
    step.info(f"Total of {len(wanted)} artifact(s) downloaded")
    _finish(wish.folder)


def _finish(folder: Path) -> None:
    step.set_output("download-path", folder)
    step.info("Download artifact has finished successfully")


def _wish(major: int) -> Wish:
    # An input that a major does not know is in its environment all the same.
    mismatch = (step.text("digest-mismatch") or "error") if major >= OF_CHOICE else "warn"
    if mismatch not in MISMATCH:
        raise Failure(f"Invalid value for 'digest-mismatch': '{mismatch}'. Valid options are: {', '.join(MISMATCH)}")
    name, ids = step.text("name"), step.text("artifact-ids")
    if name and ids:
        raise Failure("Inputs 'name' and 'artifact-ids' cannot be used together. Please specify only one.")
    return Wish(
        name=name,
        ids=_ids(ids),
        pattern=step.text("pattern"),
        merge=step.flag("merge-multiple"),
        raw=major >= OF_CHOICE and step.flag("skip-decompress"),
        mismatch=mismatch,
        folder=_folder(),
    )


def _folder() -> Path:
    given = step.text("path")
    if given.startswith("~"):
        given = f"{Path.home()}{given[1:]}"
    return Path(os.path.abspath(given or os.environ.get("GITHUB_WORKSPACE", ".")))


def _ids(given: str) -> tuple[int, ...]:
    ids = [part.strip() for part in given.split(",") if part.strip()]
    if given and not ids:
        raise Failure("No valid artifact IDs provided in 'artifact-ids' input")
    for number in ids:
        if not re.fullmatch(r"\d{1,18}", number):
            raise Failure(f"Invalid artifact ID: '{number}'. Must be a number.")
    return tuple(map(int, ids))


def _check_run(token: str) -> None:
    """Another run's artifacts are not to be had by the job's own runtime token."""
    if token:
        return
    for name, variable in (("repository", "GITHUB_REPOSITORY"), ("run-id", "GITHUB_RUN_ID")):
        given, own = step.text(name), os.environ.get(variable, "")
        if given and given.lower() != own.lower():
            step.warning(
                f"{name} is '{given}', but artifacts of another run can only be read with a github-token: "
                "without one this run's own are downloaded."
            )


def _wanted(source: Source, wish: Wish) -> list[Artifact]:
    if wish.name:
        step.info("Downloading single artifact")
        found = newest(artifact for artifact in source.list(wish.name) if artifact.name == wish.name)
        if not found:
            raise Failure(NOT_FOUND.format(name=wish.name))
        return found
    found = newest(source.list())
    step.info(f"Found {len(found)} artifact(s)")
    if wish.ids:
        return _of_ids(found, wish.ids)
    if wish.pattern:
        step.info(f"Filtering artifacts by pattern '{wish.pattern}'")
        return [artifact for artifact in found if matches(artifact.name, wish.pattern)]
    step.info("No input name, artifact-ids or pattern filtered specified, downloading all artifacts")
    if not wish.merge:
        step.info("An extra directory with the artifact name will be created for each download")
    return found


def _of_ids(artifacts: Sequence[Artifact], ids: Sequence[int]) -> list[Artifact]:
    step.info("Downloading artifacts by ID")
    found = [artifact for artifact in artifacts if artifact.id in ids]
    if not found:
        raise Failure("None of the provided artifact IDs were found")
    there = {artifact.id for artifact in found}
    if missing := [str(number) for number in ids if number not in there]:
        step.warning(f"Could not find the following artifact IDs: {', '.join(missing)}")
    return found


def fetch_all(
    transfers: Transfers,
    source: Source,
    artifacts: Sequence[Artifact],
    folders: dict[Artifact, Path],
    *,
    raw: bool = False,
) -> list[str]:
    """Each into its folder; the names of those whose bytes are not those uploaded. Raises Failure."""
    damaged: list[str] = []
    for start in range(0, len(artifacts), PARALLEL):
        damaged += _download(transfers, source, artifacts[start : start + PARALLEL], folders, raw=raw)
    return damaged


def _download(
    transfers: Transfers, source: Source, artifacts: Sequence[Artifact], folders: dict[Artifact, Path], *, raw: bool
) -> list[str]:
    """Fetch some side by side and unpack them one after the other; the names of those whose bytes are not right."""
    damaged: list[str] = []
    with tempfile.TemporaryDirectory(dir=os.environ.get("RUNNER_TEMP")) as folder:

        def fetch(artifact: Artifact) -> Downloaded:
            url = source.address(artifact)
            step.info(f"Redirecting to blob download url: {without_query(url)}")
            step.info(f"Starting download of artifact to: {folders[artifact]}")
            return transfers.download(url, Path(folder, str(artifact.id)))

        with ThreadPoolExecutor(PARALLEL) as pool:
            for artifact, got in zip(artifacts, pool.map(fetch, artifacts), strict=True):
                file = Path(folder, str(artifact.id))
                digest = sha256(file)
                step.info(f"SHA256 digest of downloaded artifact is {digest}")
                if artifact.digest and artifact.digest != f"sha256:{digest}":
                    damaged.append(artifact.name)
                _unpack(file, folders[artifact], got, raw=raw)
                step.info("Artifact download completed successfully.")
    return damaged


def _unpack(file: Path, folder: Path, got: Downloaded, *, raw: bool) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not raw and (got.content_type in ZIPS or got.file_name.lower().endswith(".zip")):
            zips.extract(file, folder)
        else:
            target = folder / (got.file_name or "artifact")
            step.info(f"Downloading raw file (non-zip) to: {target}")
            shutil.move(file, target)
    except OSError as problem:
        raise Failure(f"'{problem.filename or folder}' cannot be written: {problem.strerror or problem}") from problem


def _tell_of(damaged: Sequence[str], mismatch: str) -> None:
    """Raises Failure."""
    if damaged and mismatch == "error":
        raise Failure(
            f"Digest validation failed for artifact(s): {', '.join(damaged)}. "
            "Use 'digest-mismatch: warn' to continue on mismatch."
        )
    for name in damaged:
        message = f"Artifact '{name}' digest validation failed. Please verify the integrity of the artifact."
        if mismatch != "ignore":
            (step.warning if mismatch == "warn" else step.info)(message)

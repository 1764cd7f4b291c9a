"""How does `actions/upload-artifact` run without Node.js?"""

from __future__ import annotations

import mimetypes
import os
import re
import shutil
from collections.abc import Sequence

from ci.runner.builtin import artifact_files, step, zips
from ci.runner.builtin.artifacts import OwnRun
from ci.runner.builtin.blobs import Sink, upload
from ci.runner.builtin.folders import OF_FOLDERS, Folders
from ci.runner.builtin.results import Results
from ci.runner.builtin.step import Call, Failure
from ci.runner.builtin.transfers import Transfers

NOTHING_FOUND = ("warn", "error", "ignore")
DEFAULT_LEVEL = 6
# From this major on a file may go without a zip. The environment has also inputs that a major does not know.
PLAIN_FILES = 7


def run(call: Call) -> None:
    """Raises Failure."""
    name, path = step.text("name"), step.text("path", required=True)
    overwrite, archive = step.flag("overwrite"), call.major < PLAIN_FILES or step.flag("archive")
    hidden, missing = step.flag("include-hidden-files"), step.text("if-no-files-found")
    if missing not in NOTHING_FOUND:
        raise Failure(
            f"Unrecognized if-no-files-found input. Provided: {missing}. Available options: {','.join(NOTHING_FOUND)}"
        )
    days, level = retention_days(), compression_level()
    files, root = artifact_files.find(path.split("\n"), hidden=hidden)
    if not files:
        _tell_of_nothing(path, missing)
        return
    step.info(f"With the provided path, there will be {len(files)} file{'' if len(files) == 1 else 's'} uploaded")
    step.debug(f"Root artifact directory is {root}")
    if not archive:
        if len(files) > 1:
            raise Failure(
                f"When 'archive' is set to false, only a single file can be uploaded. Found {len(files)} files to "
                "upload."
            )
        name = os.path.basename(files[0])
    if call.major <= OF_FOLDERS:
        _fill_folder(name, files, root=root, days=days)
        return
    artifacts = OwnRun(Results(Transfers()))
    if overwrite:
        delete(artifacts, name)
    if archive:
        send_zip(artifacts, name, files, root=root, days=days, level=level)
    else:
        _send_file(artifacts, name, files[0], days=days)


def _fill_folder(name: str, files: Sequence[str], *, root: str, days: int) -> None:
    artifact_files.check_name(name)
    Folders(Transfers()).upload(name, artifact_files.entries(files, root), days=days)
    step.info(f"Artifact {name} has been successfully uploaded!")


def _tell_of_nothing(path: str, missing: str) -> None:
    message = f"No files were found with the provided path: {path}. No artifacts will be uploaded."
    if missing == "error":
        raise Failure(message)
    (step.warning if missing == "warn" else step.info)(message)


def retention_days() -> int:
    """0 for the repository's own. Raises Failure."""
    days = _number("retention-days", "Invalid retention-days", default=0)
    most = os.environ.get("GITHUB_RETENTION_DAYS", "")
    if most.isdecimal() and 0 < int(most) < days:
        step.warning(
            "Retention days cannot be greater than the maximum allowed retention set within the repository. "
            f"Using {most} instead."
        )
        return int(most)
    return max(0, days)


def compression_level() -> int:
    """Raises Failure."""
    level = _number("compression-level", "Invalid compression-level", default=DEFAULT_LEVEL)
    if not 0 <= level <= 9:
        raise Failure("Invalid compression-level. Valid values are 0-9")
    return level


def _number(name: str, problem: str, *, default: int) -> int:
    """As JavaScript's parseInt reads it: what follows the digits does not count."""
    given = step.text(name)
    if not given:
        return default
    digits = re.match(r"[+-]?\d{1,9}", given)
    if digits is None:
        raise Failure(problem)
    return int(digits[0])


def delete(artifacts: OwnRun, name: str) -> None:
    """Best effort: what cannot be deleted shows when it is to be replaced."""
    try:
        if not artifacts.delete(name):
            step.debug(f"Skipping deletion of '{name}', it does not exist")
    except Failure as problem:
        step.debug(f"Unable to delete artifact: {problem}")


def send_zip(artifacts: OwnRun, name: str, files: Sequence[str], *, root: str, days: int, level: int) -> None:
    """Raises Failure."""
    artifact_files.check_name(name)
    entries = artifact_files.entries(files, root)

    def write(sink: Sink) -> None:
        zips.write(sink, entries, level=level)

    _send(artifacts, name, f"{name}.zip", content_type="application/zip", days=days, write=write)


def _send_file(artifacts: OwnRun, name: str, path: str, *, days: int) -> None:
    artifact_files.check_name(name)
    known = mimetypes.MimeTypes().guess_type(name)[0]

    def write(sink: Sink) -> None:
        try:
            with open(path, "rb") as stream:
                shutil.copyfileobj(stream, sink, zips.PIECE)
        except OSError as problem:
            raise Failure(f"'{path}' cannot be read: {problem.strerror}") from problem

    _send(artifacts, name, name, content_type=known or "application/octet-stream", days=days, write=write)


def _send(artifacts: OwnRun, name: str, file_name: str, *, content_type: str, days: int, write: zips.Writer) -> None:
    transfers = Transfers()
    url = artifacts.create(name, content_type=content_type, retention_days=days)
    step.info(f"Uploading artifact: {file_name}")
    step.info("Beginning upload of artifact content to blob storage")
    sent = upload(transfers, url, content_type=content_type, write=write)
    step.info("Finished uploading artifact content to blob storage!")
    step.info(f"SHA256 digest of uploaded artifact is {sent.sha256}")
    if sent.size == 0:
        step.warning("No data was uploaded to blob storage. Reported upload byte count is 0.")
    step.info("Finalizing artifact upload")
    number = artifacts.finalize(name, size=sent.size, sha256=sent.sha256)
    step.info(f"Artifact {name} successfully finalized. Artifact ID {number}")
    step.info(
        f"Artifact {name} has been successfully uploaded! Final size is {sent.size} bytes. Artifact ID is {number}"
    )
    where = [step.variable(f"GITHUB_{word}") for word in ("SERVER_URL", "REPOSITORY", "RUN_ID")]
    url = f"{where[0]}/{where[1]}/actions/runs/{where[2]}/artifacts/{number}"
    step.info(f"Artifact download URL: {url}")
    step.set_output("artifact-id", number)
    step.set_output("artifact-digest", sent.sha256)
    step.set_output("artifact-url", url)

"""How does `actions/upload-artifact/merge` run without Node.js?"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ci.runner.builtin import artifact_files, step, zips
from ci.runner.builtin.artifacts import OwnRun, newest
from ci.runner.builtin.download_artifact import fetch_all
from ci.runner.builtin.globs import escape
from ci.runner.builtin.name_patterns import matches
from ci.runner.builtin.results import Results
from ci.runner.builtin.step import Call, Failure
from ci.runner.builtin.transfers import Transfers
from ci.runner.builtin.upload_artifact import compression_level, delete, retention_days, send_zip


def run(call: Call) -> None:
    """Raises Failure."""
    name, pattern = step.text("name", required=True), step.text("pattern", required=True)
    apart, remove = step.flag("separate-directories"), step.flag("delete-merged")
    hidden, days, level = step.flag("include-hidden-files"), retention_days(), compression_level()
    transfers = Transfers()
    artifacts = OwnRun(Results(transfers))
    found = [artifact for artifact in newest(artifacts.list()) if matches(artifact.name, pattern)]
    if not found:
        raise Failure(f"No artifacts found matching pattern '{pattern}'")
    step.info("Preparing to download the following artifacts:")
    for artifact in found:
        step.info(f"- {artifact.name} (ID: {artifact.id}, Size: {artifact.size})")
    with tempfile.TemporaryDirectory(dir=os.environ.get("RUNNER_TEMP")) as folder:
        base = Path(folder)
        folders = {one: zips.folder_for(base, one.name) if apart else base for one in found}
        if damaged := fetch_all(transfers, artifacts, found, folders):
            raise Failure(f"Digest validation failed for artifact(s): {', '.join(damaged)}")
        files, _ = artifact_files.find([escape(folder)], hidden=hidden)
        send_zip(artifacts, name, files, root=folder, days=days, level=level)
    step.info(f"The {len(found)} artifact(s) have been successfully merged!")
    if remove:
        for artifact in found:
            delete(artifacts, artifact.name)

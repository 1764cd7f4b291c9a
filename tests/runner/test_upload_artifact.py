"""Does the built-in actions/upload-artifact do what the real one does?"""

from __future__ import annotations

import hashlib
import io
import shutil
import threading
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from ci.runner.builtin import catalog
from tests.runner.conftest import Runners
from tests.runner.fake_results import SIGNATURE, TOKEN
from tests.runner.fake_server import FakeServer
from tests.runner.repositories import Repository

UPLOAD = "actions/upload-artifact@v4"


def upload(path: str, *, uses: str = UPLOAD, **inputs: Any) -> dict[str, Any]:
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    return {"name": "upload", "id": "up", "uses": uses, "with": {"path": path, **given}}


def run(script: str) -> dict[str, Any]:
    return {"name": "make", "run": script}


def opened(server: FakeServer, name: str = "artifact") -> zipfile.ZipFile:
    return zipfile.ZipFile(io.BytesIO(server.results.bytes_of(name)))


def names(server: FakeServer, name: str = "artifact") -> list[str]:
    return sorted(opened(server, name).namelist())


def test_it_zips_a_folder_and_tells_id_address_and_digest(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            run("mkdir -p out/deep out/.git; echo one > out/one; echo two > 'out/deep/t w ü%#'; echo x > out/.git/x"),
            upload("out/", name="my art ü", retention_days=5),
            {"name": "tell", "run": "echo '${{ toJSON(steps.up.outputs) }}'"},
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    with opened(server, "my art ü") as found:
        assert sorted(found.namelist()) == ["deep/t w ü%#", "one"] and found.read("one") == b"one\n"
        assert found.testzip() is None
    content = server.results.bytes_of("my art ü")
    digest = hashlib.sha256(content).hexdigest()
    told = "\n".join(job.lines_of("tell"))
    assert f'"artifact-digest": "{digest}"' in told and '"artifact-id": "1"' in told
    assert f'"artifact-url": "{server.url}/octo/hello/actions/runs/3/artifacts/1"' in told
    lines = job.lines_of("upload")
    for line in (
        "With the provided path, there will be 2 files uploaded",
        "Artifact name is valid!",
        "Root directory input is valid!",
        "Beginning upload of artifact content to blob storage",
        f"Uploaded bytes {len(content)}",
        "Finished uploading artifact content to blob storage!",
        f"SHA256 digest of uploaded artifact is {digest}",
        "Finalizing artifact upload",
        "Artifact my art ü successfully finalized. Artifact ID 1",
        f"Artifact my art ü has been successfully uploaded! Final size is {len(content)} bytes. Artifact ID is 1",
        f"Artifact download URL: {server.url}/octo/hello/actions/runs/3/artifacts/1",
    ):
        assert line in lines
    asked = server.results.artifacts[0].asked
    assert asked["mime_type"] == "application/zip"
    expires = datetime.fromisoformat(asked["expires_at"])
    assert timedelta(days=4) < expires - datetime.now(UTC) <= timedelta(days=5)


def test_what_is_in_the_archive_follows_the_lines_of_path(server: FakeServer, runners: Runners) -> None:
    make = "mkdir -p a/b/skip c; touch a/x.txt a/b/y.txt a/b/skip/z.txt c/w.log c/.hidden a/other; ln -s ../c/w.log a/l"
    job = server.add(
        [
            run(f"{make}; ln -s nowhere a/broken; ln -s .. a/b/loop"),
            upload("a/**/*.txt\n!a/**/skip\n# a comment\nc", name="two"),
            upload("a/x.txt", name="one"),
            upload("a/*\n!**/*.txt\n!a/b", name="shallow"),
            upload("c/", name="hidden", include_hidden_files=True),
            upload("./c/w.log\n~/nothing-here", name="far"),
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert names(server, "two") == ["a/b/y.txt", "a/x.txt", "c/w.log"]
    assert names(server, "one") == ["x.txt"]
    assert names(server, "shallow") == ["l", "other"]
    assert names(server, "hidden") == [".hidden", "w.log"]
    assert names(server, "far")[0].endswith("hello/hello/c/w.log")
    assert "Multiple search paths detected. Calculating the least common ancestor of all paths" in job.text


@pytest.mark.parametrize(("wish", "conclusion"), [("warn", "success"), ("ignore", "success"), ("error", "failure")])
def test_no_files_are_a_warning_an_error_or_nothing(
    server: FakeServer, runners: Runners, wish: str, conclusion: str
) -> None:
    job = runners.run(server.add([upload("nothing/**", if_no_files_found=wish)]))
    message = "No files were found with the provided path: nothing/**. No artifacts will be uploaded."
    assert job.conclusion == conclusion
    level = {"warn": "##[warning]", "ignore": "", "error": "##[error]"}[wish]
    assert f"{level}{message}" in job.lines_of("upload")
    annotated = [one["message"] for one in job.step("upload").get("annotations", [])]
    assert (message in annotated) is (wish != "ignore")
    assert not server.results.artifacts


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"name": "a/b"}, "The artifact name is not valid: a/b. Contains the following character:  Forward slash /"),
        ({"if_no_files_found": "maybe"}, "Unrecognized if-no-files-found input. Provided: maybe."),
        ({"compression_level": "10"}, "Invalid compression-level. Valid values are 0-9"),
        ({"retention_days": "soon"}, "Invalid retention-days"),
        ({"overwrite": "perhaps"}, 'Input does not meet YAML 1.2 "Core Schema" specification: overwrite'),
        ({"path": ""}, "Input required and not supplied: path"),
        ({"path": "../x"}, "Relative pathing '.' and '..' is not allowed."),
        ({"path": "a:b"}, "The path for one of the files in artifact is not valid: /a:b."),
    ],
)
def test_wrong_inputs_are_refused_before_anything_is_sent(
    server: FakeServer, runners: Runners, inputs: dict[str, str], words: str
) -> None:
    job = runners.run(server.add([run("touch x a:b"), upload(**{"path": "x", **inputs})]))
    assert job.conclusion == "failure" and words in job.step("upload")["annotations"][0]["message"], job.text
    assert not server.results.calls


def test_large_files_travel_in_blocks_and_survive_a_server_that_fails_once(
    server: FakeServer, runners: Runners
) -> None:
    server.results.faults = [("comp=block&", 503), ("CreateArtifact", 500)]
    job = server.add([run("head -c 41943040 /dev/urandom > big"), upload("big", compression_level=0)])
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert opened(server).getinfo("big").file_size == 41943040 and opened(server).testzip() is None
    blob = next(iter(server.results.blobs.values()))
    assert sorted(map(len, blob.blocks.values()))[1:] == [8 * 1024 * 1024] * 5
    assert blob.content_type == "application/zip"
    assert "Attempt 1 of 5 failed with error: 503 Service Unavailable. Retrying request in 3000 ms..." in job.text


def test_a_name_is_taken_once_unless_it_is_to_be_overwritten(server: FakeServer, runners: Runners) -> None:
    server.results.keep("artifact", b"old")
    job = server.add([run("echo new > x"), {**upload("x"), "continue-on-error": True}, upload("x", overwrite=True)])
    runners.run(job)
    assert job.conclusion == "success", job.text
    refused = "(409) Conflict: an artifact with this name already exists on the workflow run"
    assert f"Failed to CreateArtifact: Received non-retryable error: Failed request: {refused}" in job.text
    assert names(server) == ["x"] and "Artifact 'artifact' (ID: 1) deleted" in job.text


def test_one_file_can_go_without_a_zip_from_v7_on(server: FakeServer, runners: Runners) -> None:
    v7 = "actions/upload-artifact@v7"
    job = server.add(
        [
            run("echo '{}' > page.json; touch other"),
            upload("page.json", uses=v7, archive=False),
            {**upload("page.json\nother", uses=v7, archive=False), "name": "many", "continue-on-error": True},
            {**upload("page.json", archive=False, name="four"), "name": "four"},
        ]
    )
    runners.run(job)
    assert server.results.bytes_of("page.json") == b"{}\n"
    assert server.results.artifacts[0].asked["mime_type"] == "application/json"
    assert "only a single file can be uploaded. Found 2 files to upload." in job.text
    assert "Unexpected input(s) 'archive'" in "\n".join(job.lines_of("four")) and names(server, "four") == ["page.json"]


def test_artifacts_are_merged_into_one(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            run("mkdir a b; echo 1 > a/one; echo 2 > b/two"),
            upload("a", name="part-a"),
            upload("b", name="part-b"),
            {"uses": "actions/upload-artifact/merge@v4", "with": {"pattern": "part-*", "delete-merged": True}},
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert names(server, "merged-artifacts") == ["one", "two"]
    assert [one.name for one in server.results.artifacts] == ["merged-artifacts"]


def test_several_steps_fill_one_artifact_of_v3(server: FakeServer, runners: Runners) -> None:
    v3, down = "actions/upload-artifact@v3", "actions/download-artifact@v3"
    server.results.faults = [("itemPath=artifact/big", 502)]
    job = server.add(
        [
            run("mkdir a; echo 1 > 'a/ö %23'; touch a/empty; head -c 10000000 /dev/urandom > big; sha256sum big > sum"),
            upload("a", uses=v3),
            upload("big", uses=v3),
            {"name": "down", "id": "down", "uses": down, "with": {"name": "artifact", "path": "x"}},
            {"name": "all", "uses": down, "with": {"path": "y"}},
            {"name": "look", "run": "(cd x && sha256sum -c ../sum); ls x y/artifact; cat 'x/ö %23'"},
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    files = ["big", "empty", "ö %23"]
    assert job.lines_of("look")[-10:] == ["big: OK", "x:", *files, "", "y/artifact:", *files, "1"][-10:]
    assert "Artifact artifact has been successfully uploaded!" in job.lines_of("upload")


def test_signatures_and_tokens_are_in_no_log(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            run("touch x; env | grep ACTIONS_ || echo none of it"),
            upload("x"),
            {"name": "show", "run": f"echo {SIGNATURE} {TOKEN}"},
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert "none of it" in job.lines_of("make") and "*** ***" in job.lines_of("show")


def test_a_cancel_ends_an_upload_that_hangs(server: FakeServer, runners: Runners) -> None:
    reached, over = threading.Event(), threading.Event()
    answer = server.results.answer

    def hang(method: str, address: str, *rest: Any) -> Any:
        if "comp=block&" in address:
            reached.set()
            over.wait(120)
        return answer(method, address, *rest)

    server.results.answer = hang  # type: ignore[method-assign]
    job = server.add([run("touch x"), upload("x")], grace=60.0)
    process = runners.start()
    assert reached.wait(60)
    server.cancel(job)
    try:
        assert process.wait(60) == 0
    finally:
        over.set()
    assert job.conclusion == "cancelled" and job.conclusions()["upload"] == "cancelled"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed here")
def test_javascript_actions_see_where_the_forge_keeps_files(server: FakeServer, runners: Runners) -> None:
    assert server.repositories is not None
    script = (
        "const e = process.env;\n"
        "console.log('seen', e.ACTIONS_RUNTIME_URL, e.ACTIONS_RESULTS_URL, e.ACTIONS_CACHE_URL,"
        " e.ACTIONS_CACHE_SERVICE_V2, e.ACTIONS_RUNTIME_TOKEN.length);\n"
    )
    action = {"action.yml": "runs: {using: node20, main: main.js}\n", "main.js": script}
    Repository(server.repositories, "octo/look").commit(action, tag="v1")
    outer = "runs:\n  using: composite\n  steps: [{uses: octo/look@v1}]\n"
    Repository(server.repositories, "octo/outer").commit({"action.yml": outer}, tag="v1")
    job = runners.run(server.add([{"name": "plain", "uses": "octo/look@v1"}, {"name": "in", "uses": "octo/outer@v1"}]))
    runtime = server.results.runtime()
    seen = f"seen {runtime['runtime_url']} {runtime['results_url']} {runtime['cache_url']} true {len(TOKEN)}"
    assert seen in job.lines_of("plain") and seen in job.lines_of("in"), job.text


def test_which_action_is_built_in_and_why_is_in_the_log(server: FakeServer, runners: Runners, tmp_path: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "git", "touch"):
        (programs / name).symlink_to(shutil.which(name) or "")
    job = runners.run(server.add([run("touch x"), upload("x")]), env={"PATH": str(programs)})
    assert job.conclusion == "success", job.text
    assert "built-in upload-artifact: Node.js or the action itself is not available here." in job.text


@pytest.mark.parametrize(
    ("uses", "server", "alone"),
    [
        ("actions/upload-artifact@v4", "http://forge.example:8000", True),
        ("actions/upload-artifact@v4", "http://forge.localhost:8000", False),
        ("actions/upload-artifact/merge@v4.6.2", "http://127.0.0.1:8000", True),
        ("actions/download-artifact@0123456789012345678901234567890123456789", "http://forge.example", True),
        ("actions/download-artifact@v3", "http://forge.example", False),
        ("actions/cache@v5", "http://forge.example", False),
        ("octo/upload-artifact@v4", "http://forge.example", False),
    ],
)
def test_the_real_one_is_not_tried_where_it_would_refuse_the_forge(uses: str, server: str, alone: bool) -> None:
    assert catalog.works_at_github_only(uses, server) is alone

"""Does the built-in actions/download-artifact do what the real one does?"""

from __future__ import annotations

import io
import zipfile
from typing import Any

import pytest

from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer

V4, V5, V8 = (f"actions/download-artifact@v{major}" for major in (4, 5, 8))


def download(*, uses: str = V4, **inputs: Any) -> dict[str, Any]:
    given = {name.replace("_", "-"): value for name, value in inputs.items()}
    return {"name": "download", "id": "down", "uses": uses, "with": given}


def look(script: str = "find . -type f | sort") -> dict[str, Any]:
    return {"name": "look", "run": script}


def zipped(**files: str) -> bytes:
    return zipped_names({name.replace("__", "."): text for name, text in files.items()})


def zipped_names(files: dict[str, str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return made.getvalue()


@pytest.fixture
def three(server: FakeServer) -> list[int]:
    """The ids of linux, macos and docs."""
    return [
        server.results.keep(name, zipped_names({f"{name}.txt": name, "deep/both.txt": name}))
        for name in ("bin-linux", "bin-macos", "docs")
    ]


def test_one_artifact_is_unpacked_into_the_path(server: FakeServer, runners: Runners, three: list[int]) -> None:
    job = server.add(
        [
            look("mkdir -p got/deep; echo old > got/deep/both.txt; ln -s deep/both.txt got/docs.txt"),
            download(name="docs", path="got"),
            look(
                "find got -type f | sort; cat got/deep/both.txt; echo; echo '${{ steps.down.outputs.download-path }}'"
            ),
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert {"got/deep/both.txt", "got/docs.txt", "docs"} <= {line for _, line in job.log}
    assert any(line.endswith("/hello/hello/got") for _, line in job.log)
    lines = job.lines_of("download")
    assert "Downloading single artifact" in lines and "Total of 1 artifact(s) downloaded" in lines
    assert "Download artifact has finished successfully" in lines


@pytest.mark.parametrize(
    ("inputs", "files"),
    [
        ({}, "bin-linux/bin-linux.txt bin-macos/bin-macos.txt docs/docs.txt"),
        ({"merge_multiple": True}, "bin-linux.txt bin-macos.txt docs.txt"),
        ({"pattern": "bin-*"}, "bin-linux/bin-linux.txt bin-macos/bin-macos.txt"),
        ({"pattern": "*-{linux,windows}"}, "bin-linux/bin-linux.txt"),
        ({"pattern": "*-{linux,windows}", "uses": V5}, "bin-linux.txt"),
        ({"pattern": "!bin-*", "merge_multiple": True}, "docs.txt"),
        ({"artifact_ids": "1, 3"}, "bin-linux/bin-linux.txt docs/docs.txt"),
    ],
)
def test_several_artifacts_are_chosen_and_placed(
    server: FakeServer, runners: Runners, three: list[int], inputs: dict[str, Any], files: str
) -> None:
    job = server.add([download(**inputs), look("find . -name '*.txt' ! -name both.txt | sort | tr '\\n' ' '")])
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert " ".join(f"./{file}" for file in files.split()) == job.lines_of("look")[-1].strip()


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ({"name": "bin"}, "Unable to download artifact(s): Artifact not found for name: bin"),
        ({"name": "docs", "artifact_ids": "1"}, "Inputs 'name' and 'artifact-ids' cannot be used together."),
        ({"artifact_ids": "1,x"}, "Invalid artifact ID: 'x'. Must be a number."),
        ({"artifact_ids": "77"}, "None of the provided artifact IDs were found"),
        ({"uses": V8, "digest_mismatch": "shrug"}, "Invalid value for 'digest-mismatch': 'shrug'."),
        ({"github_token": "t0ken-of-mona", "repository": "hello"}, "Invalid repository: 'hello'. Must be in format"),
    ],
)
def test_what_cannot_be_had_is_told(
    server: FakeServer, runners: Runners, three: list[int], inputs: dict[str, Any], words: str
) -> None:
    job = runners.run(server.add([download(**inputs)]))
    assert job.conclusion == "failure" and words in job.step("download")["annotations"][0]["message"], job.text


@pytest.mark.parametrize(
    ("inputs", "conclusion", "words"),
    [
        ({}, "success", "##[warning]Artifact 'bad' digest validation failed."),
        ({"uses": V8}, "failure", "Digest validation failed for artifact(s): bad."),
        ({"uses": V8, "digest_mismatch": "info"}, "success", "Artifact 'bad' digest validation failed."),
    ],
)
def test_bytes_that_are_not_those_uploaded_are_told(
    server: FakeServer, runners: Runners, inputs: dict[str, Any], conclusion: str, words: str
) -> None:
    server.results.keep("bad", zipped(a="1"), digest=f"sha256:{'0' * 64}")
    job = runners.run(server.add([download(name="bad", **inputs)]))
    assert job.conclusion == conclusion and words in job.text


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out", "sub/link/out"])
def test_no_entry_leaves_the_folder(server: FakeServer, runners: Runners, name: str) -> None:
    server.results.keep("evil", zipped_names({"fine": "1", name: "2"}))
    job = server.add(
        [
            look("mkdir -p in/sub; ln -s ../.. in/sub/link"),
            {**download(name="evil", path="in"), "continue-on-error": True},
            {"name": "after", "run": "ls out in/out /tmp/out ../out 2>/dev/null || echo nothing there"},
        ]
    )
    runners.run(job)
    assert "nothing there" in job.lines_of("after"), job.text
    assert job.conclusions()["download"] == "success" and "##[error]Unable to download artifact(s):" in job.text


def test_a_broken_zip_is_told(server: FakeServer, runners: Runners) -> None:
    server.results.keep("torn", zipped(a="1")[:-10])
    job = runners.run(server.add([download(name="torn")]))
    assert job.conclusion == "failure" and "The artifact is no zip that can be read" in job.text


def test_it_goes_on_where_a_connection_broke_off(server: FakeServer, runners: Runners) -> None:
    content = zipped(big="0123456789" * 100_000)
    server.results.keep("big", content)
    server.results.faults = [("/_blobs/download/", None)]
    job = runners.run(server.add([download(name="big")]))
    assert job.conclusion == "success", job.text
    assert server.results.ranges == [f"bytes={len(content) // 2}-"]


def test_bytes_that_are_no_zip_stay_as_they_are(server: FakeServer, runners: Runners) -> None:
    server.results.keep("docs", zipped(a="1"))
    job = server.add([download(name="docs", path="raw", uses=V8, skip_decompress=True), look("ls raw")])
    runners.run(job)
    assert "docs.zip" in job.lines_of("look"), job.text


def test_another_runs_artifacts_come_through_the_api_with_a_token(server: FakeServer, runners: Runners) -> None:
    server.results.keep("docs", zipped(theirs="1"), run="99")
    server.results.keep("docs", zipped(ours="1"))
    token = "frp_token-of-mona"
    job = server.add(
        [
            download(name="docs", path="a", github_token="${{ secrets.READER }}", run_id=99, repository="octo/other"),
            {**download(name="docs", path="b", run_id=99), "name": "own"},
            look("ls a b"),
        ],
        secrets={"READER": token},
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert job.lines_of("look")[-5:] == ["a:", "theirs", "", "b:", "ours"]
    assert server.results.api_tokens == [token, token] and token not in job.text
    assert "artifacts of another run can only be read with a github-token" in "\n".join(job.lines_of("own"))

"""Do the built-in actions/cache, cache/restore and cache/save do what the real ones do?"""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from ci.runner.builtin import caches, tars
from ci.runner.builtin.step import Failure
from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeJob, FakeServer

CACHE, RESTORE, SAVE = (f"actions/cache{part}@v4" for part in ("", "/restore", "/save"))


def cache(key: str, *, uses: str = CACHE, path: str = "kept", name: str = "cache", **inputs: Any) -> dict[str, Any]:
    given = {word.replace("_", "-"): value for word, value in inputs.items()}
    return {"name": name, "id": name, "uses": uses, "with": {"key": key, "path": path, **given}}


def run(script: str, name: str = "script") -> dict[str, Any]:
    return {"name": name, "run": script}


def keys(server: FakeServer) -> list[str]:
    return [one.key for one in server.results.caches if one.finalized]


def tell(name: str = "cache") -> dict[str, Any]:
    return run(f"echo '${{{{ toJSON(steps.{name}.outputs) }}}}' | tr -d '\\n '", "tell")


def told(job: FakeJob) -> str:
    return job.lines_of("tell")[-1]


def test_what_one_job_saves_the_next_one_restores(server: FakeServer, runners: Runners) -> None:
    make = (
        "mkdir -p kept/sub ~/away-$GITHUB_RUN_ID; cd kept; echo '#!/bin/sh' > sub/run; chmod 755 sub/run\n"
        "ln -s /usr/bin/env absolute; ln -s sub/run relative; ln sub/run twin; touch fixed; chmod 444 fixed\n"
        "touch -d 2020-02-03 'näme with space' sub; echo far > ~/away-$GITHUB_RUN_ID/far"
    )
    path = "kept\n~/away-3\nnot-there"
    job = runners.run(server.add([cache("k-1", path=path), run(make), tell()]), env={"HOME": str(runners.folder)})
    assert job.conclusion == "success", job.text
    assert "Cache not found for input keys: k-1" in job.text and told(job) == "{}"
    assert "Cache saved with key: k-1" in job.lines_of("Post cache") and keys(server) == ["k-1"]
    (runners.folder / "away-3" / "far").write_text("changed")
    look = (
        "cat ~/away-3/far; cd kept; readlink absolute relative; sub/run && echo ran; stat -c '%a %h' twin\n"
        "stat -c '%y' 'näme with space' sub | cut -c1-10; touch 'näme with space'"
    )
    job = runners.run(server.add([cache("k-1", path=path), run(look), tell()]), env={"HOME": str(runners.folder)})
    assert job.conclusion == "success", job.text
    lines = job.lines_of("script")
    assert lines[-7:] == ["far", "/usr/bin/env", "sub/run", "ran", "755 2", "2020-02-03", "2020-02-03"]
    assert told(job) == '{"cache-hit":"true"}'
    assert {"Cache hit for: k-1", "Cache restored successfully", "Cache restored from key: k-1"} <= set(
        job.lines_of("cache")
    )
    assert "Cache hit occurred on the primary key k-1, not saving cache." in job.lines_of("Post cache")


def test_a_restore_key_is_no_hit_and_the_new_key_is_saved(server: FakeServer, runners: Runners) -> None:
    runners.run(server.add([run("mkdir kept; echo old > kept/file"), cache("deps-1")]))
    job = server.add([cache("deps-2", restore_keys="other-\ndeps-"), run("cat kept/file"), tell()])
    runners.run(job)
    assert "old" in job.lines_of("script") and told(job) == '{"cache-hit":"false"}', job.text
    assert "Cache hit for restore-key: deps-1" in job.text and "Cache restored from key: deps-1" in job.text
    assert keys(server) == ["deps-1", "deps-2"]


@pytest.mark.parametrize(("always", "saved"), [(False, []), (True, ["k"])])
def test_a_failed_job_saves_nothing_unless_it_always_does(
    server: FakeServer, runners: Runners, always: bool, saved: list[str]
) -> None:
    job = server.add([run("mkdir kept; touch kept/x"), cache("k", save_always=always), run("exit 1", "fail")])
    runners.run(job)
    assert job.conclusion == "failure" and keys(server) == saved
    assert job.conclusions()["Post cache"] == ("success" if always else "skipped")


def test_restore_and_save_are_actions_of_their_own(server: FakeServer, runners: Runners) -> None:
    job = server.add(
        [
            run("mkdir kept; echo 1 > kept/file"),
            cache("a-1", uses=SAVE, name="save"),
            cache("a-1", uses=SAVE, name="again"),
            run("rm -r kept", "remove"),
            cache("a-2", uses=RESTORE, restore_keys="a-", lookup_only=True),
            run("ls kept || echo not downloaded", "look"),
            tell(),
        ]
    )
    runners.run(job)
    assert job.conclusion == "success", job.text
    assert "Cache saved with key: a-1" in job.lines_of("save")
    again = job.lines_of("again")
    assert "Failed to save: Unable to reserve cache with key a-1, another job may be creating this cache." in again
    assert "##[warning]Cache save failed." in again
    assert "not downloaded" in job.lines_of("look") and "Cache found and can be restored from key: a-1" in job.text
    assert told(job) == '{"cache-primary-key":"a-2","cache-matched-key":"a-1","cache-hit":"false"}'
    assert not any(name.startswith("Post") for name in job.conclusions())


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (cache("a,b"), "Key Validation Error: a,b cannot contain commas."),
        (cache("k" * 513), "cannot be larger than 512 characters."),
        (
            cache("k", restore_keys="\n".join("abcdefghij")),
            "Key Validation Error: Keys are limited to a maximum of 10.",
        ),
        (cache("k", fail_on_cache_miss=True), "Exiting as fail-on-cache-miss is set. Input key: k"),
        (cache("", uses=RESTORE), "Input required and not supplied: key"),
    ],
)
def test_wrong_inputs_fail_the_step(server: FakeServer, runners: Runners, step: dict[str, Any], words: str) -> None:
    job = runners.run(server.add([step]))
    assert job.conclusion == "failure" and words in job.text


def test_paths_that_are_not_there_are_not_saved(server: FakeServer, runners: Runners) -> None:
    job = runners.run(server.add([cache("k")]))
    assert job.conclusion == "success" and not keys(server)
    assert any("Path(s) specified in the action for caching do(es) not exist" in line for _, line in job.log)


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as opened:
        for member, content in members:
            member.size = len(content)
            opened.addfile(member, io.BytesIO(content))
    return made.getvalue()


def member(name: str, *, kind: bytes = tarfile.REGTYPE, target: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname = kind, target
    return made


@pytest.mark.parametrize(
    "members",
    [
        [(member("../out"), b"x")],
        [(member("out"), b"x")],
        [(member("kept/../out"), b"x")],
        [(member("kept/link", kind=tarfile.SYMTYPE, target=".."), b""), (member("kept/link/out"), b"x")],
        [(member("kept/own"), b""), (member("kept/out", kind=tarfile.LNKTYPE, target="../secret"), b"")],
        [(member("kept/out", kind=tarfile.CHRTYPE), b"")],
    ],
)
def test_nothing_is_restored_beside_the_cached_paths(
    server: FakeServer, runners: Runners, members: list[tuple[tarfile.TarInfo, bytes]]
) -> None:
    server.results.cache("k", caches.version(["kept"], tars.GZIP), archive(*members))
    look = "ls out ../out kept/out 2>/dev/null || echo nothing there; ls -d kept/link/out 2>/dev/null"
    job = server.add([run("touch ../secret"), cache("k", uses=RESTORE), tell(), run(look, "look")])
    job.payload["definition"]["steps"][-1]["continue-on-error"] = True
    runners.run(job)
    assert "nothing there" in job.lines_of("look") and told(job) == '{"cache-primary-key":"k"}', job.text
    assert any(line.startswith("##[warning]Failed to restore: ") for _, line in job.log)


def test_an_archive_compressed_in_the_other_way_is_found(server: FakeServer, runners: Runners) -> None:
    found = archive((member("kept/file"), b"from elsewhere"))
    server.results.cache("k", caches.version(["kept"], tars.GZIP), found)
    job = runners.run(server.add([cache("k", uses=RESTORE), run("cat kept/file")]))
    assert "from elsewhere" in job.lines_of("script"), job.text


def test_a_service_that_is_down_costs_a_warning_and_not_the_job(server: FakeServer, runners: Runners) -> None:
    server.results.faults = [("GetCacheEntryDownloadURL", 403)] * 2
    job = runners.run(server.add([cache("k", uses=RESTORE)]))
    assert job.conclusion == "success", job.text
    assert "##[warning]Failed to restore: Failed to GetCacheEntryDownloadURL" in job.text


@pytest.mark.parametrize("uses", ["actions/cache@v4", "actions/upload-artifact@v4", "actions/upload-artifact@v3"])
def test_a_forge_without_these_services_is_told_of(server: FakeServer, runners: Runners, uses: str) -> None:
    job = server.add([run("mkdir kept; touch kept/x"), cache("k", uses=uses), tell()])
    del job.payload["runtime"]
    runners.run(job)
    if uses == CACHE:
        assert job.conclusion == "success" and told(job) == '{"cache-hit":"false"}'
        assert "[warning]The forge offers no cache to this job." in job.lines_of("cache")
    else:
        assert "##[error]Unable to get the ACTIONS_RUNTIME_TOKEN env variable" in job.lines_of("cache")


@pytest.mark.parametrize("compression", [tars.GZIP, tars.ZSTD])
def test_archives_of_either_compression_come_back(tmp_path: Path, compression: str) -> None:
    kept = tmp_path / "work" / "kept"
    kept.mkdir(parents=True)
    (kept / "file").write_bytes(b"0123456789" * 1_000_000)
    tars.create(tmp_path / "tar", [str(kept)], workspace=tmp_path / "work", compression=compression)
    (kept / "file").write_text("changed")
    tars.extract(tmp_path / "tar", workspace=tmp_path / "work", roots=[str(kept)], compression=compression)
    assert (kept / "file").read_bytes() == b"0123456789" * 1_000_000
    torn = (tmp_path / "tar").read_bytes()
    (tmp_path / "tar").write_bytes(torn[: len(torn) // 2])
    with pytest.raises(Failure, match="The cached archive cannot be read"):
        tars.extract(tmp_path / "tar", workspace=tmp_path / "work", roots=[str(kept)], compression=compression)


def test_without_the_package_of_zstd_caches_are_gzipped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tars.GZIP in tars.readable_methods() and tars.ZSTD in tars.readable_methods()
    monkeypatch.setattr(tars, "zstandard", None)
    assert tars.method() == tars.GZIP and tars.readable_methods() == [tars.GZIP]


def test_entries_have_the_version_that_githubs_client_gives_them() -> None:
    """@actions/cache: SHA-256 of the paths, the compression and a salt, joined by |."""
    expected = hashlib.sha256(b"~/.cache/pip|node_modules|zstd-without-long|1.0").hexdigest()
    assert caches.version(["~/.cache/pip", "node_modules"], tars.ZSTD) == expected

"""Do GitHub's clients of caches, over both protocols, find here what they find there? Real packages, a real server."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ci.models import BlobPart, CacheEntry, StoragePolicy
from tests.api.server import Server
from tests.interop.blob_server import peak
from tests.interop.jobs import environment
from tests.interop.npm_clients import ClientError, NpmClient
from tests.lifecycle.caching import begin, kept, pull_request
from tests.playground import Assigned, Playground

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 2**20
NPM = Callable[[str], NpmClient]
KEYS = ["plain", "two words", "it's `quoted`", "ünï ködé 日本 🎉", "100%", "a%2Fb_c", "#1 & more; a=b+c?", "x" * 512]


class Client:
    """One of the packages over one of the protocols, acting in one job."""

    def __init__(self, npm_client: NpmClient, protocol: str, forge: Server, assigned: Assigned, folder: Path) -> None:
        self._client = npm_client
        self._environment: dict[str, str | None] = {
            **environment(forge, assigned, folder),
            "ACTIONS_CACHE_SERVICE_V2": "true" if protocol == "v2" else None,
        }
        self.folder = folder

    def save(self, key: str, *paths: str, **options: Any) -> int:
        """Its number, or -1 where it was not kept; the client writes why to its log."""
        number: int = self._call("saveCache", list(paths or ("deps",)), key, options)
        return number

    def restore(self, key: str, *further: str, paths: tuple[str, ...] = ("deps",), **options: Any) -> str | None:
        """The key of what was found."""
        found: str | None = self._call("restoreCache", list(paths), key, list(further), options)
        return found

    def write(self, name: str, content: bytes = b"some bytes") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        return path

    @property
    def log(self) -> str:
        return self._client.log

    def _call(self, method: str, *arguments: Any) -> Any:
        return self._client.call(method, *arguments, env=self._environment, cwd=self.folder)


@pytest.fixture(params=["cache-4", "cache-6"])
def package(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(params=["v1", "v2"])
def protocol(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def make(npm_client: NPM, package: str, protocol: str, forge: Server, tmp_path: Path) -> Callable[[Assigned], Client]:
    return lambda assigned: Client(npm_client(package), protocol, forge, assigned, tmp_path)


@pytest.fixture
def client(world: Playground, make: Callable[[Assigned], Client]) -> Client:
    return make(begin(world))


def test_what_was_saved_is_restored(client: Client) -> None:
    written = [
        client.write("deps/a file.txt"),
        client.write("deps/deep/ünï.bin", bytes(range(256))),
        client.write("deps/0", b""),
    ]
    before = [path.read_bytes() for path in written]
    number = client.save("deps-1")
    entry = CacheEntry.objects.get()
    assert number == entry.pk
    assert (entry.key, entry.ref, entry.finalized_at is not None) == ("deps-1", "refs/heads/main", True)
    for path in written:
        path.unlink()
    assert client.restore("deps-1") == "deps-1"
    assert [path.read_bytes() for path in written] == before


def test_any_key_is_kept_as_it_is(client: Client) -> None:
    file = client.write("deps/file")
    for number, key in enumerate(KEYS):
        file.write_bytes(str(number).encode())
        assert client.save(key) > 0, client.log[-2000:]
    assert kept() == KEYS
    for number, key in enumerate(KEYS):
        assert client.restore(key) == key
        assert file.read_bytes() == str(number).encode()


def test_what_begins_with_a_further_key_is_restored(client: Client) -> None:
    client.write("deps/file")
    for key in ("linux-npm-1", "linux-npm-2", "linux-pip"):
        client.save(key)
    assert client.restore("linux-npm-3", "linux-npm-", "linux-") == "linux-npm-2"
    assert client.restore("linux-npm-3", "mac-", "linux-") == "linux-pip"
    assert client.restore("linux-npm-3", "mac-") is None


def test_other_paths_are_another_version(client: Client) -> None:
    client.write("deps/file")
    client.write("other/file")
    client.save("deps-1")
    assert client.restore("deps-1", paths=("other",)) is None


def test_a_look_up_downloads_nothing(client: Client) -> None:
    file = client.write("deps/file")
    client.save("deps-1")
    file.unlink()
    assert client.restore("deps-1", lookupOnly=True) == "deps-1"
    assert not file.exists()


def test_a_key_that_is_taken_is_not_kept_again(client: Client) -> None:
    client.write("deps/file")
    assert client.save("deps-1") > 0
    client.write("deps/file", b"other bytes")
    assert client.save("deps-1") == -1
    assert "Unable to reserve cache with key deps-1" in client.log
    assert kept() == ["deps-1"]


def test_what_is_over_the_quota_is_not_kept(client: Client, world: Playground) -> None:
    StoragePolicy.objects.create(repository=world.repository, cache_bytes=100)
    client.write("deps/file", random.Random(1).randbytes(1000))
    try:
        assert client.save("deps-1") == -1
    except ClientError as error:
        assert "bytes" in str(error)
    assert kept() == []


def test_a_pull_request_finds_the_default_branchs_and_keeps_its_own_to_itself(
    client: Client, world: Playground, make: Callable[[Assigned], Client]
) -> None:
    client.write("deps/file")
    client.save("deps-1")
    request = make(begin(world, runner="beta", trusted=False, **pull_request(7)))
    assert request.restore("deps-1") == "deps-1"
    assert request.save("deps-1") > 0
    assert request.save("deps-2") > 0
    assert client.restore("deps-2") is None
    assert request.restore("deps-2") == "deps-2"


def test_a_stranger_keeps_nothing_for_the_default_branch(world: Playground, make: Callable[[Assigned], Client]) -> None:
    stranger = make(begin(world, trusted=False))
    stranger.write("deps/file")
    assert stranger.save("deps-1") == -1
    assert not CacheEntry.objects.exists()


@pytest.mark.parametrize("keys", [("a,b",), ("x" * 513,), ("k",) * 11], ids=["a comma", "too long", "too many"])
def test_the_client_knows_the_same_limits(client: Client, keys: tuple[str, ...]) -> None:
    with pytest.raises(ClientError) as raised:
        client.restore(*keys)
    assert raised.value.kind == "ValidationError"


def test_a_large_one_comes_in_parts(client: Client, protocol: str) -> None:
    """v2 cuts what is larger than 128 MiB into blocks of 64 MiB, v1 as it is told to."""
    size = 130 * MIB if protocol == "v2" else 5 * MIB
    content = random.Random(7).randbytes(size)
    file = client.write("deps/file", content)
    assert client.save("deps-1", **({"uploadChunkSize": MIB} if protocol == "v1" else {})) > 0
    assert BlobPart.objects.count() >= (5 if protocol == "v1" else 3)
    file.unlink()
    assert client.restore("deps-1") == "deps-1"
    assert file.read_bytes() == content
    file.unlink()


@pytest.mark.parametrize("package", ["cache-6"], indirect=True)
def test_one_gibibyte_arrives_and_the_server_stays_small(client: Client, forge: Server) -> None:
    file, source, before = client.write("deps/file"), random.Random(9), hashlib.sha256()
    with file.open("wb") as target:
        for _ in range(1024):
            piece = source.randbytes(MIB)
            before.update(piece)
            target.write(piece)
    assert client.save("deps-1") > 0
    file.unlink()
    assert client.restore("deps-1") == "deps-1"
    with file.open("rb") as restored:
        assert hashlib.file_digest(restored, "sha256").digest() == before.digest()
    file.unlink()
    assert peak(forge) < 300 * MIB


@pytest.mark.parametrize("package", ["cache-6"], indirect=True)
def test_many_small_files_are_one_cache(client: Client) -> None:
    names = [f"deps/{number % 100}/{number}" for number in range(10_000)]
    for name in names:
        client.write(name, name.encode())
    assert client.save("deps-1") > 0
    for name in names:
        (client.folder / name).unlink()
    assert client.restore("deps-1") == "deps-1"
    assert all((client.folder / name).read_text() == name for name in names)

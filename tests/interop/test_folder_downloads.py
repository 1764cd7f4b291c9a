"""Is a folder sent as one zip, bounded, at an address of its own, without a thread that waits for its client?"""

import contextlib
import gzip
import io
import os
import socket
import zipfile
from datetime import timedelta
from urllib.parse import urlsplit

import httpx
import pytest
from django.conf import settings
from django.utils import timezone

from ci.lifecycle import artifact_downloads
from ci.models import Artifact
from ci.storage import signed_urls
from tests.api.server import Server
from tests.interop.blob_server import assert_refused, peak
from tests.lifecycle.artifact_making import keep_folder, on

pytestmark = pytest.mark.django_db(transaction=True)

MIB = 2**20


@pytest.fixture(scope="module")
def server(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock():
        started = Server(tmp_path_factory.mktemp("server") / "log", FORGE_ARTIFACT_BYTES=str(64 * MIB))
    with started as server:
        yield server


def address(server, artifact):
    artifact.refresh_from_db()
    return artifact_downloads.address(artifact).replace(settings.SERVER_URL, server.url)


def test_its_zip_has_a_name_and_no_length(server, world):
    folder = keep_folder(on(world), "logs ü", a=b"one", b=b"x" * MIB)
    answer = httpx.get(address(server, folder), timeout=60)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/zip")
    assert answer.headers["content-disposition"].endswith("filename*=UTF-8''logs%20%C3%BC.zip")
    assert answer.headers["x-content-type-options"] == "nosniff"
    with zipfile.ZipFile(io.BytesIO(answer.content)) as found:
        assert {name: found.read(name) for name in found.namelist()} == {"a": b"one", "b": b"x" * MIB}
    assert httpx.head(address(server, folder)).status_code == 200
    assert_refused(httpx.put(address(server, folder)), 405, "UnsupportedHttpVerb")


def test_an_address_is_of_one_folder_only_and_ends(server, world):
    job = on(world)
    one, other = keep_folder(job, "one", a=b"1"), keep_folder(job, "other", a=b"2")
    changed = address(server, one).replace(f"/folder/{one.pk}/", f"/folder/{other.pk}/")
    assert_refused(httpx.get(changed), 403, "AuthenticationFailed")
    over = signed_urls.folder_url(one, filename="a", seconds=-1).replace(settings.SERVER_URL, server.url)
    assert_refused(httpx.get(over), 403, "AuthenticationFailed")


def test_what_has_expired_or_was_deleted_since_is_not_found(server, world):
    job = on(world)
    gone, expired = keep_folder(job, "gone", a=b"1"), keep_folder(job, "expired", a=b"2")
    addresses = [address(server, gone), address(server, expired)]
    gone.delete()
    Artifact.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    for each in addresses:
        assert_refused(httpx.get(each), 404, "BlobNotFound")


def test_few_bytes_do_not_become_more_than_an_artifact_may_have(server, world):
    folder = keep_folder(on(world), "bomb", a=gzip.compress(bytes(80 * MIB)))
    folder.files.get().blob.__class__.objects.update(content_encoding="gzip")
    before = peak(server)
    with pytest.raises(httpx.RemoteProtocolError):
        httpx.get(address(server, folder), timeout=60)
    assert peak(server) - before < 24 * MIB


def test_clients_that_do_not_read_keep_nobody_from_the_pages(server, world):
    folder = keep_folder(on(world), "large", a=os.urandom(24 * MIB))
    parts = urlsplit(address(server, folder))
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(socket.create_connection((parts.hostname, parts.port), timeout=60))
            client.sendall(f"GET {parts.path}?{parts.query} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            assert client.recv(20).startswith(b"HTTP/1.1 200")
        assert httpx.get(f"{server.url}/login/", timeout=30).status_code == 200
        assert len(httpx.get(address(server, folder), timeout=60).content) > 24 * MIB

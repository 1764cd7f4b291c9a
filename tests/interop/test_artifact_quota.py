"""Does a client hear that there is no room for its artifact, while it uploads it?"""

import pytest

from ci.lifecycle import artifacts
from ci.models import BlobPart
from tests.api.server import Server
from tests.interop.blob_server import Uploads, assert_refused
from tests.lifecycle.artifact_making import on

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server(transactional_db, tmp_path):
    with Server(tmp_path / "log", FORGE_ARTIFACT_QUOTA_BYTES="10") as server:
        yield server


def test_a_block_over_the_quota_is_refused_with_a_sentence(server, world):
    made = artifacts.create_artifact(job=on(world), name="large")
    client = Uploads(server, made.blob)
    assert client.block("a", b"12345678").status_code == 201
    refused = client.block("b", b"123")
    assert_refused(refused, 413, "RequestBodyTooLarge")
    assert "take 8 of the 10 bytes" in refused.text
    assert_refused(client.put(b"123"), 413, "RequestBodyTooLarge")
    assert BlobPart.objects.count() == 1

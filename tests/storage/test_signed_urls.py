"""Is an address good for just the blob, purpose, name and time it was signed for?"""

import time
import uuid
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from ci.models import Blob
from ci.storage import signed_urls
from ci.storage.signed_urls import SignatureInvalid, check_download, check_upload

KEY = uuid.UUID("0123456789abcdef0123456789abcdef")
BLOB = Blob(key=KEY)
NAMES = ["a.zip", "my art ü.zip", "100% of #1?.zip", 'with "quotes" & +plus.zip', "a/b\\c", "line\nbreak", "名前.zip"]


def taken_apart(url):
    address = urlsplit(url)
    query = {name: value for name, (value,) in parse_qs(address.query, strict_parsing=True).items()}
    return address.path, query["se"], query["sig"]


def test_an_upload_has_three_segments_of_path_at_the_servers_address(settings):
    settings.SERVER_URL = "http://forge.localhost:8000"
    url = signed_urls.upload_url(BLOB)
    assert url.startswith(f"http://forge.localhost:8000/_blobs/upload/{KEY}?se=")
    path, expires, signature = taken_apart(url)
    check_upload(key=KEY, expires=expires, signature=signature)
    assert len(path.strip("/").split("/")) == 3


@pytest.mark.parametrize("name", NAMES)
def test_a_download_carries_any_name(name):
    path, expires, signature = taken_apart(signed_urls.download_url(BLOB, filename=name))
    prefix, _, quoted = path.rpartition("/")
    assert (prefix, unquote(quoted)) == (f"/_blobs/download/{KEY}", name)
    check_download(key=KEY, filename=name, expires=expires, signature=signature)


def test_it_ends_when_it_says(monkeypatch):
    _, expires, signature = taken_apart(signed_urls.upload_url(BLOB, seconds=60))
    check_upload(key=KEY, expires=expires, signature=signature)
    end = int(expires)
    monkeypatch.setattr(time, "time", lambda: end + 1)
    with pytest.raises(SignatureInvalid, match="over"):
        check_upload(key=KEY, expires=expires, signature=signature)


def test_nothing_in_it_can_be_changed():
    _, expires, signature = taken_apart(signed_urls.download_url(BLOB, filename="a.zip"))
    good = {"key": KEY, "filename": "a.zip", "expires": expires, "signature": signature}
    check_download(**good)
    changes = (
        {"key": uuid.UUID(int=KEY.int + 1)},
        {"filename": "b.zip"},
        {"filename": ""},
        {"expires": str(int(expires) + 1)},
        {"expires": ""},
        {"expires": f"{expires}\n"},
        {"signature": ""},
        {"signature": signature[:-1]},
        {"signature": signature.upper()},
        {"signature": "ü" + signature[1:]},
    )
    for change in changes:
        with pytest.raises(SignatureInvalid, match="does not fit"):
            check_download(**good | change)


def test_an_upload_is_not_a_download_nor_the_other_way_round():
    _, expires, signature = taken_apart(signed_urls.upload_url(BLOB))
    with pytest.raises(SignatureInvalid):
        check_download(key=KEY, filename="", expires=expires, signature=signature)
    _, expires, signature = taken_apart(signed_urls.download_url(BLOB, filename=""))
    with pytest.raises(SignatureInvalid):
        check_upload(key=KEY, expires=expires, signature=signature)


def test_another_secret_key_signs_otherwise(settings):
    _, expires, signature = taken_apart(signed_urls.upload_url(BLOB))
    settings.SECRET_KEY = "another" * 10
    with pytest.raises(SignatureInvalid):
        check_upload(key=KEY, expires=expires, signature=signature)

"""Is a personal access token shown once, kept as a hash, and gone when revoked?"""

import re
from datetime import timedelta

import pytest
from django.utils import timezone

from forge.models import AccessToken
from forge.tokens import hash_token

ADDRESS = "/settings/tokens/"


def _make(client, name="laptop", days="30"):
    answer = client.post(ADDRESS, {"name": name, "days": days})
    found = re.search(r"frp_[\w-]{20,}", answer.content.decode())
    return answer, found.group() if found else None


def test_a_new_token_is_shown_once(alice, signed_in):
    client = signed_in("alice")
    answer, token = _make(client)
    assert answer.status_code == 200
    kept = AccessToken.objects.get()
    assert kept.token_hash == hash_token(token)
    assert timedelta(days=29) < kept.expires_at - timezone.now() <= timedelta(days=30)
    assert "no-store" in answer["Cache-Control"]
    again = client.get(ADDRESS).content.decode()
    assert token not in again
    assert kept.hint in again


def test_a_token_may_have_no_expiry(alice, signed_in):
    _make(signed_in("alice"), days="0")
    assert AccessToken.objects.get().expires_at is None


@pytest.mark.parametrize("fields", [{"name": "", "days": "30"}, {"name": "x", "days": "31"}, {"name": "x" * 101}, {}])
def test_bad_input_makes_no_token(alice, signed_in, fields):
    assert signed_in("alice").post(ADDRESS, fields).status_code == 422
    assert not AccessToken.objects.exists()


def test_a_revoked_token_is_gone(alice, signed_in):
    client = signed_in("alice")
    _make(client)
    kept = AccessToken.objects.get()
    assert client.post(f"{ADDRESS}{kept.pk}/revoke/", follow=True).status_code == 200
    assert not AccessToken.objects.exists()
    said = client.post(f"{ADDRESS}{kept.pk}/revoke/", follow=True).content.decode()
    assert "There is no such token of yours" in said


def test_nobody_revokes_or_sees_the_token_of_another(repository, signed_in):
    _make(signed_in("alice"), name="alice's own")
    kept = AccessToken.objects.get()
    mallory = signed_in("mallory")
    assert "own" not in mallory.get(ADDRESS).content.decode().split("<main")[1].split("New token")[0]
    mallory.post(f"{ADDRESS}{kept.pk}/revoke/")
    assert AccessToken.objects.exists()


def test_it_is_for_those_who_signed_in(db, signed_in):
    assert signed_in("").get(ADDRESS)["Location"] == f"/login/?next={ADDRESS}"
    assert signed_in("").post(ADDRESS, {"name": "x", "days": "0"}).status_code == 302
    assert not AccessToken.objects.exists()


def test_the_limit_is_told(alice, signed_in):
    AccessToken.objects.bulk_create(
        AccessToken(user=alice, name=f"t{number}", token_hash=str(number), hint="frp_") for number in range(100)
    )
    answer, token = _make(signed_in("alice"))
    assert answer.status_code == 422
    assert token is None
    assert "which is the limit" in answer.content.decode()

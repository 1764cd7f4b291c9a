"""sign with one key, made at first use; and replace it without breaking what it signed."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import jwt
import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone
from pytest_django.fixtures import Settings

from ci.lifecycle import id_tokens, key_rotation, settings_values, signing_keys
from ci.lifecycle.encryption import SecretUnreadable
from ci.lifecycle.errors import Conflict
from ci.models import Event, Scope, SigningKey
from tests.lifecycle.test_id_tokens import MAY
from tests.playground import Assigned, Playground


def published() -> list[str]:
    return [key["kid"] for key in signing_keys.key_set()["keys"]]


def decoded(token: str) -> dict[str, Any]:
    keys = jwt.PyJWKSet.from_dict(signing_keys.key_set())
    key = keys[jwt.get_unverified_header(token)["kid"]]
    return jwt.decode(token, key, algorithms=["RS256"], options={"verify_aud": False})


@pytest.fixture
def running(playground: Playground) -> Assigned:
    playground.run(MAY)
    return playground.assigned().begin()


def issue(assigned: Assigned) -> str:
    return id_tokens.issue(run_id=assigned.job.run_id, token=assigned.payload["id_token"]["request_token"])


def test_it_is_made_once_and_kept_encrypted(db: None) -> None:
    key = signing_keys.current()
    assert signing_keys.current() == key == SigningKey.objects.get()
    assert "PRIVATE" not in key.encrypted
    assert signing_keys.private_half(key).key_size == 2048


def test_what_is_published_is_the_public_half_alone(db: None) -> None:
    found = signing_keys.key_set()["keys"]
    assert [sorted(key) for key in found] == [["alg", "e", "kid", "kty", "n", "use"]]
    assert (found[0]["alg"], found[0]["use"], found[0]["kid"]) == ("RS256", "sig", SigningKey.objects.get().kid)


def test_two_processes_at_once_make_one(transactional_db: None) -> None:
    """Both have seen that there is none before either may make it."""
    made: list[str] = []

    def work() -> None:
        made.append(signing_keys.current().kid)
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    with transaction.atomic():
        signing_keys._lock()
        for thread in threads:
            thread.start()
        _until_two_wait()
    for thread in threads:
        thread.join(60)
    assert len(made) == 2
    assert made == [SigningKey.objects.get().kid] * 2


def _until_two_wait() -> None:
    waiting = 0
    deadline = timezone.now() + timedelta(seconds=60)
    while waiting < 2:
        assert timezone.now() < deadline, "the two threads never met at the lock"
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
                " WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()"
            )
            waiting = cursor.fetchone()[0]


def test_the_database_refuses_a_second_key_in_use(db: None) -> None:
    signing_keys.current()
    with pytest.raises(IntegrityError), transaction.atomic():
        SigningKey.objects.create(kid="second", encrypted="x", public="y")


def test_a_replaced_key_is_published_until_what_it_signed_has_expired(running: Assigned) -> None:
    before = issue(running)
    old = SigningKey.objects.get().kid
    call_command("rotate_keys")
    after = issue(running)
    new = SigningKey.objects.get(retired_at=None).kid
    assert published() == [new, old]
    assert [jwt.get_unverified_header(token)["kid"] for token in (before, after)] == [old, new]
    assert decoded(before)["sub"] == decoded(after)["sub"]
    assert SigningKey.objects.get(kid=old).encrypted == ""
    expired = timezone.now() - signing_keys.PUBLISHED_AFTER - timedelta(seconds=1)
    SigningKey.objects.filter(kid=old).update(retired_at=expired)
    assert published() == [new]
    call_command("rotate_keys")
    assert not SigningKey.objects.filter(kid=old).exists()


def test_published_longer_than_a_token_is_valid() -> None:
    assert signing_keys.PUBLISHED_AFTER > signing_keys.LIFETIME


def test_rotating_before_the_first_use_makes_none(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("rotate_keys")
    assert not SigningKey.objects.exists()
    assert capsys.readouterr().out == "0 secrets are under the newest key.\n"


def test_a_rotation_that_fails_replaces_no_key(playground: Playground, settings: Settings) -> None:
    settings_values.set_secret(scope=Scope(owner=playground.alice), name="X", value="kept", actor=playground.alice)
    signing_keys.current()
    before = SigningKey.objects.values().get()
    settings.SECRETS_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(SecretUnreadable):
        key_rotation.rotate_keys()
    assert SigningKey.objects.values().get() == before
    assert not Event.objects.filter(kind="signing_key_replaced").exists()


def test_a_key_that_cannot_be_read_says_what_to_do_and_rotating_helps(running: Assigned, settings: Settings) -> None:
    signing_keys.current()
    settings.SECRETS_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(Conflict, match="rotate_keys"):
        issue(running)
    call_command("rotate_keys")
    assert decoded(issue(running))["sub"]

"""set, delete and rotate secrets and variables."""

import pytest
from cryptography.fernet import Fernet
from django.core.management import CommandError, call_command
from pytest_django.fixtures import Settings

from ci.lifecycle import settings_values as values
from ci.lifecycle.encryption import decrypt
from ci.lifecycle.errors import InvalidInput, NotFound
from ci.models import Event, Run, Scope, Secret, Variable
from tests.playground import Playground


def test_a_secret_is_encrypted_at_rest_and_reaches_the_job(playground: Playground) -> None:
    scope = Scope(repository=playground.repository)
    values.set_secret(scope=scope, name="token", value="s3cr3t-value", actor=playground.alice)
    assert "s3cr3t-value" not in Secret.objects.get(name="TOKEN").encrypted
    playground.run()
    assert playground.assigned().payload["contexts"]["secrets"]["TOKEN"] == "s3cr3t-value"


def test_an_event_names_it_without_its_value(playground: Playground) -> None:
    scope = Scope(repository=playground.repository)
    values.set_secret(scope=scope, name="TOKEN", value="s3cr3t-value", actor=playground.alice)
    event = Event.objects.get(kind="secret_set")
    assert (event.actor, event.detail) == (playground.alice, "TOKEN for alice/widgets")


def test_the_nearest_scope_wins(playground: Playground) -> None:
    for scope, value in (
        (Scope(), "instance"),
        (Scope(repository=playground.repository), "repository"),
        (Scope(owner=playground.alice), "owner"),
    ):
        values.set_variable(scope=scope, name="WHERE", value=value, actor=playground.alice)
    playground.run()
    assert playground.assigned().payload["contexts"]["vars"] == {"WHERE": "repository"}


def test_setting_it_again_replaces_it(playground: Playground) -> None:
    scope = Scope(owner=playground.alice)
    for value in ("one", "two"):
        values.set_variable(scope=scope, name="color", value=value, actor=playground.alice)
    assert Variable.objects.get().value == "two"


@pytest.mark.parametrize("name", ["", "1ST", "GITHUB_TOKEN", "with space", "ü", "a" * 256])
def test_a_bad_name_is_refused(playground: Playground, name: str) -> None:
    with pytest.raises(InvalidInput):
        values.set_secret(scope=Scope(owner=playground.alice), name=name, value="x", actor=playground.alice)
    assert not Secret.objects.exists()


@pytest.mark.parametrize("value", ["", "x" * (48 * 1024 + 1), "a\0b"])
def test_a_bad_value_is_refused(playground: Playground, value: str) -> None:
    with pytest.raises(InvalidInput):
        values.set_secret(scope=Scope(owner=playground.alice), name="X", value=value, actor=playground.alice)


def test_deleting_what_is_not_there_is_not_found(playground: Playground) -> None:
    with pytest.raises(NotFound):
        values.delete_secret(scope=Scope(owner=playground.alice), name="X", actor=playground.alice)


def test_a_run_that_nobody_with_write_access_caused_gets_none(playground: Playground) -> None:
    values.set_secret(
        scope=Scope(repository=playground.repository), name="KEY", value="s3cret-value", actor=playground.alice
    )
    run = playground.run()
    Run.objects.filter(pk=run.pk).update(trusted=False)
    assigned = playground.assigned()
    assert set(assigned.payload["contexts"]["secrets"]) == {"GITHUB_TOKEN"}
    assert "s3cret-value" not in str(assigned.payload)
    assert assigned.payload["contexts"]["github"]["secret_source"] == "None"


def test_rotating_moves_every_secret_to_the_newest_key(playground: Playground, settings: Settings) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.SECRETS_KEYS = [old]
    values.set_secret(scope=Scope(owner=playground.alice), name="X", value="kept", actor=playground.alice)
    settings.SECRETS_KEYS = [new, old]
    call_command("rotate_keys")
    settings.SECRETS_KEYS = [new]
    assert decrypt(Secret.objects.get().encrypted) == "kept"


def test_rotating_without_the_old_key_changes_nothing(playground: Playground, settings: Settings) -> None:
    values.set_secret(scope=Scope(owner=playground.alice), name="X", value="kept", actor=playground.alice)
    before = Secret.objects.get().encrypted
    settings.SECRETS_KEYS = [Fernet.generate_key().decode()]
    with pytest.raises(CommandError, match="Nothing was changed"):
        call_command("rotate_keys")
    assert Secret.objects.get().encrypted == before

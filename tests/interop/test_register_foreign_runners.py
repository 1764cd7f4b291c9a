"""How does a runner of Forgejo or Gitea come to be known: by token, or offline by secret?"""

import pytest
from django.core.management import CommandError, call_command

from ci.lifecycle import foreign_runners, registration
from ci.lifecycle.errors import Conflict
from ci.models import Runner, Scope
from forge.tokens import hash_token
from tests.interop.foreign import Client, ForeignRunner, code_of, registered

pytestmark = pytest.mark.django_db(transaction=True)

SECRET = "7c31591e8b67225a116d4a4519ea8e507e08f71f"
UUID_OF_SECRET = "37633331-3539-3165-3862-363732323561"


def token_for(world, scope=None):
    _, token = registration.create_registration_token(scope=scope or Scope(), created_by=world.operator)
    return token


def test_a_ping_is_answered_without_any_token(forge):
    assert Client(forge.url)("Ping", data="forge").data == "Hello, forge!"


def test_it_registers_by_token_in_the_scope_of_the_token(world, forge):
    token = token_for(world, Scope(repository=world.repository))
    labels = ["linux", "gpu:docker://node:22", "self:host"]
    answer = Client(forge.url)("Register", token=token, name="theirs", version="v12.1.0", labels=labels)
    runner = Runner.objects.get()
    told = answer.runner
    assert (told.id, told.name, told.version, told.uuid) == (runner.pk, "theirs", "v12.1.0", str(runner.uuid))
    assert list(told.labels) == runner.labels == ["linux", "gpu", "self"]
    assert (runner.repository, runner.token_hash) == (world.repository, hash_token(told.token))
    assert not told.ephemeral


def test_an_older_runner_registers_with_the_fields_of_its_time(world, forge):
    answer = Client(forge.url)(
        "Register", token=token_for(world), name="old", agent_labels=["linux:host"], custom_labels=["gpu"]
    )
    assert list(answer.runner.labels) == ["linux", "gpu"]


@pytest.mark.parametrize("fields", [{"name": ""}, {"token": ""}, {"token": "frg_unknown"}, {"labels": ["a,b"]}])
def test_it_refuses_what_is_missing_or_unknown(world, forge, fields):
    given = {"token": token_for(world), "name": "theirs", "labels": ["linux"], **fields}
    assert code_of(Client(forge.url), "Register", **given) == "invalid_argument"
    assert not Runner.objects.exists()


def test_a_revoked_token_registers_nobody(world, forge):
    row, token = registration.create_registration_token(scope=Scope(), created_by=world.operator)
    registration.revoke_registration_token(token_id=row.pk, actor=world.operator)
    assert code_of(Client(forge.url), "Register", token=token, name="theirs") == "invalid_argument"


def test_it_declares_version_and_labels_at_its_start(world, forge):
    runner = registered(world, forge.url)
    answer = runner.client("Declare", version="v12.2.0", labels=["linux", "arm:host"], capabilities=["cancelling"])
    assert (answer.runner.name, answer.runner.version) == ("foreign", "v12.2.0")
    assert list(answer.runner.labels) == runner.row.labels == ["linux", "arm"]
    assert answer.runner.token == ""


@pytest.mark.parametrize("method", ["Declare", "FetchTask", "FetchSingleTask", "UpdateTask", "UpdateLog"])
def test_who_is_not_registered_is_unauthenticated(world, forge, method):
    known = registered(world, forge.url)
    wrong = [
        ForeignRunner(forge.url, uuid=known.uuid, token="frr_" + "x" * 43),
        ForeignRunner(
            forge.url, uuid="00000000-0000-4000-8000-000000000000", token=known.client.headers["x-runner-token"]
        ),
        ForeignRunner(forge.url, uuid="nobody", token="x"),
    ]
    assert [code_of(runner.client, method) for runner in wrong] == ["unauthenticated"] * 3
    assert code_of(Client(forge.url), method) == "unauthenticated"


def test_a_removed_runner_is_not_known_any_more(world, forge):
    runner = registered(world, forge.url)
    registration.remove_runner(runner_id=runner.row.pk, actor=world.operator)
    assert code_of(runner.fetch) == "unauthenticated"


def test_a_runner_that_was_set_up_offline_is_known_by_its_secret(world, forge, capsys):
    call_command("create_runner", secret=SECRET, name="offline", labels="linux:host,gpu", scope=str(world.repository))
    assert UUID_OF_SECRET in capsys.readouterr().out
    assert SECRET not in capsys.readouterr().out
    runner = ForeignRunner(forge.url, uuid=UUID_OF_SECRET, token=SECRET)
    answer = runner.client("Declare", version="v12", labels=["linux", "gpu"])
    assert answer.runner.name == "offline"
    row = runner.row
    assert (row.repository, row.labels, row.token_hash) == (world.repository, ["linux", "gpu"], hash_token(SECRET))


def test_the_same_secret_again_renews_the_runner(world):
    first, is_new = foreign_runners.create_runner(secret=SECRET, name="one", labels=["a"], scope=Scope())
    assert is_new
    other_end = SECRET[:16] + "0" * 24
    second, is_new = foreign_runners.create_runner(secret=other_end, name="two", labels=["b"], scope=Scope())
    assert (second.pk, is_new) == (first.pk, False)
    second.refresh_from_db()
    assert (second.name, second.labels, second.token_hash) == ("two", ["b"], hash_token(other_end))


def test_a_known_secret_does_not_move_its_runner_to_another_scope(world):
    foreign_runners.create_runner(secret=SECRET, name="one", labels=["a"], scope=Scope())
    with pytest.raises(Conflict, match="remove that one first"):
        foreign_runners.create_runner(secret=SECRET, name="one", labels=["a"], scope=Scope(owner=world.alice))
    with pytest.raises(Conflict):
        foreign_runners.create_runner(secret=SECRET, name="one", labels=["a"], scope=Scope(), ephemeral=True)


@pytest.mark.parametrize("secret", ["", "short", "g" * 40, SECRET + "0"])
def test_a_secret_must_be_forty_hexadecimal_digits(world, secret, monkeypatch):
    monkeypatch.setattr("sys.stdin", open("/dev/null"))  # noqa: SIM115
    with pytest.raises(CommandError, match="40 hexadecimal digits"):
        call_command("create_runner", secret=secret, name="offline")
    assert not Runner.objects.exists()


def test_a_scope_that_does_not_exist_is_refused(world):
    with pytest.raises(CommandError, match="nobody"):
        call_command("create_runner", secret=SECRET, name="offline", scope="nobody")
    with pytest.raises(CommandError, match="no/where"):
        call_command("create_runner", secret=SECRET, name="offline", scope="no/where")

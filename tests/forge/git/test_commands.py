import io

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from forge.access_tokens import user_of_access_token
from forge.models import AccessToken, Repository


def run(*arguments, **options) -> str:
    output = io.StringIO()
    call_command(*arguments, stdout=output, **options)
    return output.getvalue()


def test_createrepository_prints_where_to_push(alice):
    assert run("createrepository", "alice/widget", "--public").endswith("/alice/widget.git\n")
    repository = Repository.objects.get()
    assert not repository.private and repository.path.is_dir()


@pytest.mark.parametrize(
    ("argument", "reason"),
    [("widget", "OWNER/NAME"), ("nobody/widget", "no user 'nobody'"), ("alice/wid get", "name: Use letters")],
)
def test_createrepository_says_what_is_wrong(alice, argument, reason):
    with pytest.raises(CommandError, match=reason):
        run("createrepository", argument)
    assert not Repository.objects.exists()


def test_deleterepository_asks_and_deletes(repository, monkeypatch):
    monkeypatch.setattr("builtins.input", lambda prompt: "no")
    with pytest.raises(CommandError, match="Nothing was deleted"):
        run("deleterepository", "alice/widget")
    assert repository.path.is_dir()
    monkeypatch.setattr("builtins.input", lambda prompt: "alice/widget")
    assert run("deleterepository", "alice/Widget") == "Deleted alice/widget.\n"
    assert not Repository.objects.exists()
    with pytest.raises(CommandError, match="no repository 'alice/widget'"):
        run("deleterepository", "alice/widget", "--yes")


def test_createtoken_prints_a_token_that_works(alice):
    assert user_of_access_token(run("createtoken", "alice", "laptop", "--days", "30").strip()) == alice
    assert AccessToken.objects.get().expires_at is not None


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [(["bob", "x"], "no user"), (["alice", " "], "name:"), (["alice", "x", "--days", "0"], "--days takes")],
)
def test_createtoken_says_what_is_wrong(alice, arguments, reason):
    with pytest.raises(CommandError, match=reason):
        run("createtoken", *arguments)

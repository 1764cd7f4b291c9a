"""A name that somebody else takes at that very moment: it is found, or told as taken; nothing is left half done."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import transaction

from ci.lifecycle import foreign_runners, registration, runner_sets
from ci.lifecycle.environments import environment_of
from ci.lifecycle.errors import InvalidInput
from ci.models import Environment, Event, Runner, RunnerSet, Scope
from forge.models import Repository
from forge.repositories import create_repository, rename_repository
from tests.playground import Playground
from tests.races.interleaving import rival_before

SECRET = "7c31591e8b67225a116d4a4519ea8e507e08f71f"
WRITE_LABELS = r'UPDATE "ci_runner" SET .*"labels"'


@pytest.mark.parametrize("inside", [transaction.atomic, nullcontext])
def test_an_environment_is_made_by_one_of_two_who_name_it_first(
    committing_playground: Playground, inside: type[nullcontext]
) -> None:
    repository = committing_playground.repository
    with (
        rival_before(r'INSERT INTO "ci_environment"', lambda: environment_of(repository, "Production")) as rival,
        inside(),
    ):
        found = environment_of(repository, "production")
    assert rival.error is None
    assert found == rival.result == Environment.objects.get()


def save(playground: Playground, name: str, *, runner_set: RunnerSet | None = None) -> RunnerSet:
    fields = {"name": name} if runner_set else {"name": name, "labels": ["linux"], "template": {}}
    number = runner_set.pk if runner_set else None
    return runner_sets.save_runner_set(runner_set_id=number, fields=fields, version=None, actor=playground.operator)


def test_of_two_new_runner_sets_of_a_name_one_is_told(committing_playground: Playground) -> None:
    playground = committing_playground
    assert playground.operator
    with (
        rival_before(r'INSERT INTO "ci_runnerset"', lambda: save(playground, "pool")) as rival,
        pytest.raises(InvalidInput, match="already"),
    ):
        save(playground, "pool")
    assert RunnerSet.objects.get() == rival.result


def test_a_runner_set_is_not_renamed_to_what_another_is_called_meanwhile(committing_playground: Playground) -> None:
    playground = committing_playground
    mine = save(playground, "mine")
    with (
        rival_before(r'UPDATE "ci_runnerset"', lambda: save(playground, "pool")) as rival,
        pytest.raises(InvalidInput, match="already"),
    ):
        save(playground, "pool", runner_set=mine)
    assert rival.error is None
    assert RunnerSet.objects.get(pk=mine.pk).name == "mine"


def folders() -> set[Path]:
    return set((Path(settings.DATA_DIR) / "git").glob("*"))


def test_of_two_new_repositories_of_a_name_one_is_told(committing_playground: Playground) -> None:
    alice, before = committing_playground.alice, folders()
    with (
        rival_before(
            r'INSERT INTO "forge_repository"', lambda: create_repository(owner=alice, name="widgets")
        ) as rival,
        pytest.raises(ValidationError, match="already has a repository named Widgets"),
    ):
        create_repository(owner=alice, name="Widgets")
    made = Repository.objects.get()
    assert made == rival.result
    assert folders() - before == {made.path}


def test_a_repository_is_not_renamed_to_what_another_is_called_meanwhile(committing_playground: Playground) -> None:
    alice, repository = committing_playground.alice, committing_playground.repository
    with (
        rival_before(r'UPDATE "forge_repository"', lambda: create_repository(owner=alice, name="gadgets")) as rival,
        pytest.raises(ValidationError, match="already"),
    ):
        rename_repository(repository=repository, name="gadgets")
    assert rival.error is None
    assert Repository.objects.get(pk=repository.pk).name == repository.name == "widgets"


def renew() -> tuple[Runner, bool]:
    return foreign_runners.create_runner(secret=SECRET, name="theirs", labels=["linux"], scope=Scope())


def test_a_runner_that_is_removed_while_it_is_renewed_is_renewed_first(committing_playground: Playground) -> None:
    runner, _ = renew()
    operator = committing_playground.operator
    remove = lambda: registration.remove_runner(runner_id=runner.pk, actor=operator)  # noqa: E731
    with rival_before(WRITE_LABELS, remove) as rival:
        assert renew() == (runner, False)
    assert rival.error is None
    assert 'FROM "ci_runner"' in rival.waited_in
    assert not Runner.objects.exists()
    kinds = Event.objects.order_by("pk").values_list("kind", flat=True)
    assert list(kinds) == ["registered", "runner_renewed", "runner_removed"]

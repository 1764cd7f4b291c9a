"""May a repository be deleted while a push to it is settled, without either failing?"""

import pytest

from forge.git import receive
from forge.models import ZERO_SHA, Push, Repository
from forge.repositories import delete_repository
from tests.races.interleaving import rival_before
from tests.races.model import World

DELETE_PUSHES = r'DELETE FROM "forge_push"'


@pytest.mark.django_db(transaction=True)
def test_a_push_that_is_settled_meanwhile_waits_and_finds_nothing() -> None:
    repository = World().repository
    push = Push.objects.create(repository=repository, ref="refs/heads/new", before=ZERO_SHA, after="1" * 40)

    def settle() -> list[int]:
        return receive.settle(repository=repository, push_ids=[push.pk], outcomes={push.ref: True})

    with rival_before(DELETE_PUSHES, settle) as rival:
        delete_repository(repository=Repository.objects.get(pk=repository.pk))
    assert rival.error is None
    assert rival.result == []
    assert "forge_repository" in rival.waited_in
    assert not Repository.objects.exists() and not Push.objects.exists()

"""Two transactions that are the first to use a set of labels share its row, and neither meets an error."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection, transaction

from ci.lifecycle.matching import label_set_of
from ci.models import LabelSet
from tests.races.interleaving import Rival, rival_before

MAKE = 'INSERT INTO "ci_labelset"'


def use(*labels: str) -> LabelSet:
    with transaction.atomic():
        return label_set_of(labels)


@pytest.fixture
def failed() -> Any:
    """The statements of this connection that the database refused: each is a line in its log."""
    statements: list[str] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        try:
            return execute(sql, params, many, context)
        except Exception:
            statements.append(sql)
            raise

    with connection.execute_wrapper(note):
        yield statements


def test_who_comes_second_uses_the_row_of_the_first(transactional_db: None, failed: list[str]) -> None:
    with rival_before(MAKE, lambda: use("Linux", "x64")) as rival:
        mine = use("x64", "linux")
    assert rival.error is None
    assert rival.result == mine == LabelSet.objects.get()
    assert failed == []


def test_who_comes_first_is_waited_for(transactional_db: None) -> None:
    with transaction.atomic():
        mine = label_set_of(["linux"])
        rival = Rival(lambda: use("linux"))
        rival.start()
        assert rival.waited_in.startswith(MAKE)
    rival.join()
    assert rival.error is None
    assert rival.result == mine == LabelSet.objects.get()

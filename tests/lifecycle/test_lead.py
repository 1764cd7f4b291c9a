"""Leading: whoever leads goes on leading after its database was away, however that was put."""

from __future__ import annotations

import psycopg
import pytest
from django.db import InterfaceError, OperationalError

from ci.lifecycle import leading
from ci.lifecycle.leading import Leading, Session

LOCK = 0x7E57


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "error", [OperationalError, InterfaceError, psycopg.OperationalError, psycopg.InterfaceError], ids=lambda e: repr(e)
)
def test_a_lost_database_is_waited_for(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    monkeypatch.setattr(leading, "STANDBY_SECONDS", 0.01)
    this, led = Leading(lock=LOCK, name="forge test"), []

    def lead(session: Session) -> None:
        led.append(session)
        if len(led) == 1:
            raise error("the connection is closed")
        this.stop()

    this.run(lead)
    assert len(led) == 2

"""Leading: whoever leads goes on leading after its database was away, however that was put."""

from __future__ import annotations

import psycopg
import pytest
from django.db import InterfaceError, OperationalError

from ci.lifecycle import leading
from ci.lifecycle.leading import STANDBY_SECONDS, Leading, Session, has_leader

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


@pytest.mark.django_db(transaction=True)
def test_nobody_leads_beside_the_leader_and_its_death_lets_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row 42. The lock is the lease: it goes with its session, also that of a leader that dies without a word."""
    first, second, third = (Leading(lock=LOCK, name="forge test") for _ in range(3))
    asked: list[float | None] = []

    def give_up(seconds: float | None = None) -> bool:
        asked.append(seconds)
        second.stop()
        return True

    monkeypatch.setattr(second.stopped, "wait", give_up)
    doomed, session = first._own_connection(), second._own_connection()
    try:
        assert first._become_leader(doomed)
        assert has_leader(LOCK)
        assert not second._become_leader(session)
        assert asked == [STANDBY_SECONDS]
        killed = session.execute("SELECT pg_terminate_backend(%s, 60000)", [doomed.info.backend_pid]).fetchone()
        assert killed == (True,)
        assert not has_leader(LOCK)
        assert third._become_leader(session)
        assert has_leader(LOCK)
    finally:
        doomed.close()
        session.close()

"""A claim whose heads were all taken while it stood still looks again: an empty answer would leave a job waiting."""

from __future__ import annotations

import importlib

import pytest
from django.db import connection

from ci.lifecycle import transitions
from tests.playground import Playground
from tests.races.interleaving import Rival

# The package exports a function of the module's own name.
claims = importlib.import_module("ci.lifecycle.transitions.claim")


def test_it_finds_what_was_queued_since(committing_playground: Playground, monkeypatch: pytest.MonkeyPatch) -> None:
    """Held up in its first look, when it has seen the queue and locked nothing; all that it saw is gone then."""
    held_up = "WHERE (SELECT pg_advisory_xact_lock(7) IS NOT NULL) AND ci_labelset.labels <@"
    monkeypatch.setattr(claims, "CLAIM", claims.CLAIM.replace("WHERE ci_labelset.labels <@", held_up))
    playground = committing_playground
    seen = playground.run()
    runner = playground.runner()
    claim = Rival(lambda: playground.fetch(runner))
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(7)")
        try:
            claim.start()
            assert claim.waited_in
            transitions.cancel_run(run_id=seen.pk, actor=playground.alice)
            later = playground.run()
        finally:
            cursor.execute("SELECT pg_advisory_unlock(7)")
    claim.join()
    assert claim.error is None
    assert claim.result is not None and claim.result.job.run == later

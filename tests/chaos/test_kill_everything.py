"""Does every rule hold when everything is killed at random moments while 50 jobs run?"""

from __future__ import annotations

import os
from pathlib import Path

from tests.chaos.killer import RUNNERS
from tests.chaos.round import SETTINGS, Round
from tests.e2e.people import Person
from tests.e2e.product import Product

DEFAULT_SEED = 4


def test_fifty_jobs_end_as_they_must_whoever_is_killed(tmp_path: Path) -> None:
    seed = int(os.environ.get("FORGE_CHAOS_SEED", DEFAULT_SEED))
    product = Product(tmp_path / "data", "--runners", str(RUNNERS), **SETTINGS)
    try:
        product.wait_until_printed("Ctrl-C stops it")
        figures = Round(product, Person(product, *product.first_account), seed, say=print).run()
        print(dict(figures))
    finally:
        status = product.stop()
    assert status == 0, product.printed

"""How long does everything hold? `python -m tests.chaos --minutes N [--seed S]`: rounds of kills until time is up."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.chaos.killer import KINDS, RUNNERS
from tests.chaos.round import SETTINGS, Broken, Round
from tests.e2e.people import Person
from tests.e2e.product import Product


def main(arguments: list[str]) -> int:
    """1 on the first broken rule."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="begin rounds for so long (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="of the first round; the others follow from it (default: by chance)")
    given = parser.parse_args(arguments)
    seed = given.seed if given.seed is not None else random.SystemRandom().randrange(10**6)
    _say(f"First seed {seed}: the same again by --seed {seed}")
    with tempfile.TemporaryDirectory(prefix="forge-chaos-", ignore_cleanup_errors=True) as folder:
        # As root the database runs as a user of its own, who must pass.
        Path(folder).chmod(0o711)
        product = Product(Path(folder) / "data", "--runners", str(RUNNERS), **SETTINGS)
        try:
            product.wait_until_printed("Ctrl-C stops it")
            return _rounds(product, seed, until=time.monotonic() + given.minutes * 60)
        finally:
            product.stop()


def _rounds(product: Product, seed: int, *, until: float) -> int:
    person = Person(product, *product.first_account)
    total: Counter[str] = Counter()
    while not total or time.monotonic() < until:
        began = time.monotonic()
        try:
            total += Round(product, person, seed, say=_say, restarts=True).run()
        except Broken as broken:
            _say(f"{broken}\n\nBroken. The same work and kills again: python -m tests.chaos --minutes 0 --seed {seed}")
            return 1
        total["rounds"] += 1
        _say(f"round {total['rounds']} held ({time.monotonic() - began:.0f} s)")
        seed = random.Random(seed).randrange(10**6)
    for name, count in sorted(total.items(), key=lambda one: (one[0] in KINDS, one[0])):
        _say(f"{count:>8} {'kills: ' if name in KINDS else ''}{name}")
    return 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

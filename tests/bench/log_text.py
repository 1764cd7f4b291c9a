"""What does a build say? Lines as compilers, tests and downloads write them: alike in shape, with their own words."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

_TEXT = (
    "parser lexer token buffer socket server client request header cache index table column cursor session worker queue"
    " signal handler config loader plugin schema migration template widget render layout metric sample tracer filter"
    " matrix vector kernel device driver bridge packet router gateway proxy tunnel cipher digest ledger invoice account"
)
_WORDS = _TEXT.split()
_START = datetime(2026, 11, 30, 12, tzinfo=UTC)


def lines(count: int, *, seed: int = 0) -> Iterator[tuple[str, str]]:
    """(ISO time, text) of so many lines, the same for the same seed; about 90 bytes each with its time."""
    chance = random.Random(seed)
    at = _START
    for number in range(count):
        at += timedelta(microseconds=chance.randrange(20, 40_000))
        yield at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), _line(chance, number)


def _line(chance: random.Random, number: int) -> str:
    a, b, c = chance.choice(_WORDS), chance.choice(_WORDS), chance.choice(_WORDS)
    kind = chance.randrange(8)
    if kind < 2:
        return f"[{number % 4000}/4000] gcc -O2 -Wall -I include/{a} -c src/{a}/{b}_{c}.c -o build/{a}/{b}_{c}.o"
    if kind < 5:
        took = chance.expovariate(30)
        return f"tests/{a}/test_{b}.py::test_{c}_{chance.randrange(400)} PASSED in {took:.3f}s"
    if kind == 5:
        version = f"{chance.randrange(9)}.{chance.randrange(30)}.{chance.randrange(20)}"
        return f"Downloading {a}-{b}-{version}.tar.gz ({chance.randrange(10, 9000)} kB)"
    if kind == 6:
        where = f"src/{a}/{b}.c:{chance.randrange(1, 2000)}:{chance.randrange(1, 90)}"
        return f"\x1b[33mwarning\x1b[0m: {where}: unused variable '{c}' [-Wunused-variable]"
    digest = f"{chance.getrandbits(64):016x}"
    return f"INFO {a}.{b} {c} finished id={digest} rows={chance.randrange(100_000)} ok"

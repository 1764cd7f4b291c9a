"""How fast is it? `python -m tests.bench [name…]` measures what is named, or all, and prints one table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from tests.bench import (
    burst,
    claims,
    dispatch,
    idle,
    language,
    load,
    log_pages,
    log_writes,
    pages,
    planning,
    push,
    pushes,
    queue,
    results,
    runner,
    scaling,
    whole_job,
)
from tests.bench.figures import Figure, table

# Each measures the real product beside a limit or a peer, in the same run.
FIGURES: dict[str, Callable[[], Sequence[Figure]]] = {
    "dispatch": dispatch.measure,
    "idle": idle.measure,
    "burst": burst.measure,
    "claims": claims.measure,
    "queue": queue.measure,
    "whole_job": whole_job.measure,
    "log_writes": log_writes.measure,
    "log_pages": log_pages.measure,
    "push": push.measure,
    "planning": planning.measure,
    "pages": pages.measure,
    "runner": runner.measure,
    "pushes": pushes.measure,
}
# Those with words of their own; 1 for what is wrong.
REPORTS: dict[str, Callable[[], int]] = {"language": language.main, "load": load.main, "scaling": scaling.main}


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="name", help=f"of {', '.join([*FIGURES, *REPORTS])}")
    parser.add_argument("--write", action="store_true", help=f"the table to {results.FILE.name} too")
    given = parser.parse_args(arguments)
    names = given.names or list(FIGURES)
    if unknown := [name for name in names if name not in {**FIGURES, **REPORTS}]:
        parser.error(f"no benchmark is called {', '.join(unknown)}; there are {', '.join([*FIGURES, *REPORTS])}")
    wrong = max((REPORTS[name]() for name in names if name in REPORTS), default=0)
    found: list[Figure] = []
    for name in names:
        if name in FIGURES:
            print(f"{name} …", file=sys.stderr, flush=True)
            found += FIGURES[name]()
    if found:
        print("\n".join(table(found)))
    if given.write:
        results.write(found)
    return wrong


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""How many jobs a second do eight clients get over HTTP, beside pgbench running the very statement of the claim?

`python -m tests.bench.claims` is the process of the clients, see `tests.bench.ground.Companion`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psycopg import sql

from ci.lifecycle.queue_query import CLAIM
from forge.postgres import _installation
from tests.bench.figures import Figure
from tests.bench.fleet import Wire
from tests.bench.ground import Companion, Ground, running
from tests.bench.queued import Queue

CLIENTS = 8
AIM = 0.15
# Each runner has one job at a time, so each claim is another runner's.
_BENCHED, _CLAIMED = 8000, 4000
_QUEUED, _LABEL_SETS, _FITTING = 120_000, 50, 7


def measure(
    *, queued: int = _QUEUED, benched: int = _BENCHED, claimed: int = _CLAIMED, seconds: float = 15
) -> list[Figure]:
    labels = ["linux", *(f"label-{number}" for number in range(1, _FITTING + 1))]
    with running(FORGE_ACKNOWLEDGE_SECONDS="300") as ground:
        queue = Queue(ground)
        queue.fill(queued, queue.label_sets(_LABEL_SETS))
        bare_runners, _ = queue.runners(benched, labels, name="bare")
        _, tokens = queue.runners(claimed, labels, name="http")
        bare = pgbench(ground, first=min(bare_runners), each=benched // CLIENTS, labels=labels)
        before = ground.work()
        story = _over_http(ground, tokens, seconds)
        used = ground.work() - before
    assert set(story["statuses"]) == {"200"}, story["statuses"]
    got = story["statuses"]["200"]
    cost = ", ".join(f"{part} {used[part] * 1000 / got:.1f}" for part in used)
    return [
        Figure(
            "claims over HTTP, 8 clients",
            got / story["seconds"],
            "claims/s",
            AIM,
            beside=bare,
            beside_what="pgbench of the same statement",
            better="more",
            note=f"Milliseconds of a processor a claim: {cost}. Most of the server's go into ten statements and rows"
            " that the ORM builds. Next: runner and job by SQL of their own, as secrets, variables and events are.",
        )
    ]


def pgbench(ground: Ground, *, first: int, each: int, labels: Sequence[str]) -> float:
    """Claims a second by eight clients, each claim for the next of the runners from `first` on, `each` a client."""
    values = {
        "now": "now()",
        "deadline": "now() + interval '1 hour'",  # or the watch would be busy with them
        **dict.fromkeys(("repository", "owner", "repositories"), "NULL"),
        "runner": ":runner",
        "name": "'bench'",
        "single_use": "false",
        "token_hash": f"'{'0' * 64}'",
        "poll_id": "'poll'",
        "full": "'{}'",
        "labels": sql.Literal(sorted(labels)).as_string(),
    }
    script = Path(ground.folder, "claim.sql")
    script.write_text(f"\\set n :n + 1\n\\set runner :first + :client_id * :each + :n\n{CLAIM % values};\n")
    variables = [f"-D{name}={value}" for name, value in {"n": -1, "first": first, "each": each}.items()]
    done = subprocess.run(
        [
            str(_installation() / "bin" / "pgbench"),
            *("-n", "-M", "simple", "-c", str(CLIENTS), "-j", "2", "-t", str(each), "-f", str(script), *variables),
            *("-h", ground.database["host"], "-p", ground.database["port"], "-U", ground.database["user"]),
            ground.database["dbname"],
        ],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"]},
        timeout=300,
    )
    found = re.search(r"tps = ([0-9.]+)", done.stdout)
    assert done.returncode == 0 and found is not None, done.stdout + done.stderr
    [(claimed,)] = ground.sql("SELECT count(*) FROM ci_job WHERE runner_name = 'bench'")
    assert claimed > 0.9 * CLIENTS * each, f"{claimed} of {CLIENTS * each} claims got a job"
    return float(found[1]) * claimed / (CLIENTS * each)  # those that lost all heads to others are no claims


def _over_http(ground: Ground, tokens: list[str], seconds: float) -> dict[str, Any]:
    task = {"port": ground.product.port, "tokens": tokens, "seconds": seconds}
    with Companion("claims", task) as clients:
        return clients.end(patience=seconds + 60)


async def _claim(wire: Wire, tokens: Sequence[str], until: float, statuses: Counter[str]) -> None:
    """For one runner after the other, on one connection."""
    for number, token in enumerate(tokens):
        if time.monotonic() > until:
            break
        status, _ = await wire.call("POST", "jobs/fetch", token, {"poll_id": f"p{number}", "wait": 0})
        statuses[str(status)] += 1
    wire.close()


async def _claims(task: dict[str, Any]) -> dict[str, Any]:
    statuses: Counter[str] = Counter()
    began = time.monotonic()
    await asyncio.gather(
        *(
            _claim(Wire("127.0.0.1", task["port"]), task["tokens"][n::CLIENTS], began + task["seconds"], statuses)
            for n in range(CLIENTS)
        )
    )
    return {"statuses": statuses, "seconds": time.monotonic() - began}


def main() -> None:
    task = json.loads(sys.stdin.readline())
    print("ready", flush=True)
    print(json.dumps(asyncio.run(_claims(task))), flush=True)


if __name__ == "__main__":
    main()

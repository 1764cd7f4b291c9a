"""How fast do logs come in through the API, beside appending the same bytes to files, and what do they take then?

WRITERS jobs at once, each on one kept connection, a chunk of LINES lines after the other, their JSON made before the
clock runs. Beside it as many threads of one process append the same lines, as the log has them, each to a file of its
own, with an fsync after each chunk. Both in turn, ROUNDS times; medians. MB are of the lines as the log has them (time,
tab, text), in both.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.bench.figures import Figure, median
from tests.bench.ground import Ground, running
from tests.bench.log_text import lines
from tests.bench.running_jobs import SETTINGS, RunningJob, begin, complete, project_of
from tests.e2e.product import eventually

WRITERS = 8
LINES = 200
ROUNDS = 3
MB = 1e6


@dataclass(frozen=True)
class Chunk:
    """The same lines as a call's body, and as the log has them."""

    body: bytes
    stored: bytes


def chunks_of(writer: int, count: int) -> list[Chunk]:
    found, text = [], lines(count * LINES, seed=writer)
    for number in range(count):
        batch = list(islice(text, LINES))
        body = json.dumps({"offset": number * LINES, "lines": batch}).encode()
        found.append(Chunk(body, "".join(f"{at}\t{line}\n" for at, line in batch).encode()))
    return found


def measure(*, chunks: int = 100, rounds: int = ROUNDS) -> list[Figure]:
    """Three rows: the rate, what the rows take, what the merged files take."""
    with running(**SETTINGS, FORGE_LOG_SEAL_SECONDS="1") as ground:
        jobs = begin(ground, project_of(ground), WRITERS)
        all_of = [chunks_of(writer, chunks * rounds) for writer in range(WRITERS)]
        raw = sum(len(chunk.stored) for chunks in all_of for chunk in chunks)
        empty = _table_size(ground)
        before = ground.work()
        api, files = [], []
        for number in range(rounds):
            part = [found[number * chunks : (number + 1) * chunks] for found in all_of]
            size = sum(len(chunk.stored) for chunks in part for chunk in chunks)
            api.append(size / MB / asyncio.run(_send(jobs, part)))
            files.append(size / MB / _append(ground.folder / f"files-{number}", part))
        work = ground.work() - before
        rows = _table_size(ground) - empty
        complete(jobs)
        blobs = _merged_size(ground)
    spent = ", ".join(f"{part} {work[part] * 1000 / (WRITERS * chunks * rounds):.2f}" for part in sorted(work))
    return [
        Figure(
            what=f"log: {WRITERS} writers of {LINES}-line chunks",
            measured=median(api),
            unit="MB/s",
            beside=median(files),
            beside_what="the same bytes to files with fsync",
            aim=0.3,
            better="more",
            note=f"Milliseconds of a processor a chunk: {spent}. Clients, server and database share the cores. "
            "Next: the job's lock, the look at its token and the append as one statement.",
        ),
        _size_row("log: the table of chunks, as it has grown on the disk", rows, raw),
        _size_row("log: the files after sealing", blobs, raw),
    ]


def _size_row(what: str, stored: int, raw: int) -> Figure:
    return Figure(
        what=what, measured=stored / MB, unit="MB", beside=raw / MB, beside_what="the lines themselves", aim=0.4
    )


async def _send(jobs: Sequence[RunningJob], parts: Sequence[Sequence[Chunk]]) -> float:
    """Seconds until all is answered."""

    async def one(job: RunningJob, part: Sequence[Chunk]) -> None:
        for chunk in part:
            status, answer = await job.wire.call("POST", f"jobs/{job.id}/log", job.token, chunk.body)
            assert status == 200, answer
        job.wire.close()

    began = time.monotonic()
    await asyncio.gather(*map(one, jobs, parts))
    return time.monotonic() - began


def _append(folder: Path, parts: Sequence[Sequence[Chunk]]) -> float:
    """Seconds until all is on the disk."""
    folder.mkdir()

    def one(number: int) -> None:
        file = os.open(folder / str(number), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        for chunk in parts[number]:
            os.write(file, chunk.stored)
            os.fsync(file)
        os.close(file)

    began = time.monotonic()
    with ThreadPoolExecutor(len(parts)) as threads:
        list(threads.map(one, range(len(parts))))
    return time.monotonic() - began


def _table_size(ground: Ground) -> int:
    """Bytes of the table of chunks with its index and TOAST; after a checkpoint nothing is only in memory."""
    ground.sql("CHECKPOINT")
    return int(ground.sql("SELECT pg_total_relation_size('ci_logchunk')")[0][0])


def _merged_size(ground: Ground) -> int:
    """Bytes of the logs' files, once all logs are merged."""

    def merged() -> bool:
        return ground.sql("SELECT count(*) FROM ci_log WHERE blob = '' OR blob LIKE '%%.part'") == [(0,)]

    eventually(merged, seconds=120, what="all logs are merged", otherwise=ground.product.logs)
    names = [name for (name,) in ground.sql("SELECT blob FROM ci_log")]
    return sum((ground.product.data / "blobs" / name).stat().st_size for name in names)

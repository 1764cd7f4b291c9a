"""When does the first byte of a log's page come, and is that the same for a short log and one of a million lines?

Three requests (the page with the tail, the page that jumps to the middle, the raw text) of a long and of a short log,
in turn, by one client on a kept connection; for a job that runs (the log is rows) and for one that has ended (one
file). The pages are those a signed-in owner gets, whole: what a page costs beside its lines is in it. Beside it the
same lines read from a plain file, whose reader must count lines up to the middle. The short log came through the API;
the long one is its chunks over and over, by SQL.
"""

from __future__ import annotations

import asyncio
import http.client
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tests.bench.figures import Figure, median
from tests.bench.ground import Ground, running
from tests.bench.log_text import lines
from tests.bench.running_jobs import SETTINGS, RunningJob, begin, complete, project_of
from tests.e2e.product import eventually
from tests.e2e.projects import Project

CHUNK = 200
PAGE = 2000  # lines
FIRST_BYTE = 50.0  # milliseconds
FLAT = 1.5

_REPEAT = """
    INSERT INTO ci_logchunk (job_id, first_line, line_count, data)
    SELECT %(to)s, first_line + %(lines)s * number, line_count, data
    FROM ci_logchunk, generate_series(0, %(times)s - 1) number WHERE job_id = %(from)s
"""
_COUNT = """
    INSERT INTO ci_log (job_id, lines, size, base, blob)
    SELECT %(to)s, lines * %(times)s, size * %(times)s, 0, '' FROM ci_log WHERE job_id = %(from)s
"""


@dataclass(frozen=True)
class Page:
    """A request: what it is, and the path's end for a log of so many lines."""

    what: str
    path: Callable[[int], str]


PAGES = (
    Page("tail", lambda length: ""),
    Page("middle", lambda length: f"?line={length // 2}"),
    Page("raw text", lambda length: "log/raw/"),
)


def measure(*, short: int = 10_000, times: int = 100, samples: int = 9) -> list[Figure]:
    """Two rows for each store and request: the first byte, and how it grows with the log's length."""
    with running(**SETTINGS, FORGE_LOG_SEAL_SECONDS="1", FORGE_LOG_LIMIT_BYTES=str(1024**3)) as ground:
        project = project_of(ground)
        jobs = begin(ground, project, 4)
        for job in jobs[:2]:
            asyncio.run(_fill(job, short))
            other = jobs[2 + jobs.index(job)]
            names = {"from": job.id, "to": other.id, "lines": short, "times": times}
            with ground.connect() as session:
                session.execute(_REPEAT, names)
                session.execute(_COUNT, names)
        ground.sql("VACUUM ANALYZE ci_logchunk")
        complete([jobs[1], jobs[3]])
        _wait_for_merges(ground)
        file = ground.folder / "log.txt"
        found: list[Figure] = []
        for store, lesser, greater in (("rows", jobs[0], jobs[2]), ("file", jobs[1], jobs[3])):
            paths = {short: _path(ground, project, lesser), short * times: _path(ground, project, greater)}
            _write_text(ground, paths[short * times], file)
            for page in PAGES:
                # The raw text is read to its end, a hundred times the bytes of a page.
                count = samples if page.what != "raw text" else min(samples, 3)
                found += _rows(ground, store, page, paths, file, count)
        return found


async def _fill(job: RunningJob, count: int) -> None:
    text = lines(count, seed=job.id)
    for offset in range(0, count, CHUNK):
        batch = [list(line) for line in islice(text, CHUNK)]
        status, answer = await job.wire.call(
            "POST", f"jobs/{job.id}/log", job.token, {"offset": offset, "lines": batch}
        )
        assert status == 200, answer
    job.wire.close()


def _wait_for_merges(ground: Ground) -> None:
    def merged() -> bool:
        return ground.sql("SELECT count(*) FROM ci_log WHERE blob <> '' AND blob NOT LIKE '%%.part'") == [(2,)]

    eventually(merged, seconds=120, what="both logs are merged", otherwise=ground.product.logs)


def _path(ground: Ground, project: Project, job: RunningJob) -> str:
    run = ground.sql("SELECT run_id FROM ci_job WHERE id = %s", job.id)[0][0]
    return f"/{project.name}/actions/runs/{run}/jobs/{job.id}/"


def _rows(ground: Ground, store: str, page: Page, paths: dict[int, str], file: Path, samples: int) -> Iterator[Figure]:
    took: dict[int, list[float]] = {length: [] for length in paths}
    plain: list[float] = []
    with closing(http.client.HTTPConnection("127.0.0.1", ground.product.port, timeout=60)) as client:
        for number in range(samples + 2):
            for length, path in paths.items():
                seconds = _first_byte(ground, client, path + page.path(length))
                if number >= 2:  # by then both processes have met all
                    took[length].append(seconds * 1000)
            plain.append(_read_plain(file, page, max(paths)) * 1000)
    short, long = (median(took[length]) for length in sorted(paths))
    name = f"log page, {store}: {page.what} of {max(paths):,} lines"
    beside = f"The same from a plain file: {median(plain):.2g} ms."
    yield Figure(what=f"{name}, first byte", measured=long, unit="ms", aim=FIRST_BYTE, note=beside)
    yield Figure(
        what=f"{name}, growth", measured=long, unit="ms", beside=short, beside_what=f"of {min(paths):,}", aim=FLAT
    )


def _first_byte(ground: Ground, client: http.client.HTTPConnection, path: str) -> float:
    """Seconds to the first byte of the answer's body."""
    cookies = "; ".join(f"{name}={value}" for name, value in ground.person.pages.cookies.items())
    began = time.monotonic()
    client.request("GET", path, headers={"Cookie": cookies})
    answer = client.getresponse()
    assert answer.read(1), path
    took = time.monotonic() - began
    assert answer.status == 200, f"{path}: {answer.status}"
    while answer.read(1024 * 1024):
        pass
    return took


def _read_plain(file: Path, page: Page, length: int) -> float:
    """Seconds to have the lines of a page, or the first piece of the whole, from a file that has nothing but lines."""
    began = time.monotonic()
    with file.open("rb") as source:
        if page.what == "tail":
            source.seek(-PAGE * 200, 2)
            source.read().split(b"\n")[-PAGE:]
        elif page.what == "middle":
            list(islice(source, length // 2 - PAGE // 2, length // 2 + PAGE // 2))
        else:
            source.read(1024 * 1024)
    return time.monotonic() - began


def _write_text(ground: Ground, path: str, file: Path) -> None:
    with ground.person.pages.stream("GET", f"{path}log/raw/") as answer, file.open("wb") as target:
        for piece in answer.iter_bytes():
            target.write(piece)

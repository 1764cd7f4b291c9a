"""Do pages stay fast when a repository has 100,000 runs, and a run 256 jobs? Beside pages with next to nothing."""

from __future__ import annotations

import http.client
import time
from dataclasses import replace

from tests.bench.figures import Figure, median
from tests.bench.ground import Ground, running
from tests.e2e.projects import Project, Run

RUNS, ROUNDS = 100_000, 60
AIM = 2.0
SIDE = ", ".join(str(number) for number in range(16))
FILES = {
    ".github/workflows/one.yml": "name: one\non: workflow_dispatch\n"
    "jobs: {a: {runs-on: nobody, steps: [{run: echo}]}}\n",
    ".github/workflows/wide.yml": "name: wide\non: workflow_dispatch\njobs:\n  wide:\n    runs-on: nobody\n"
    f"    strategy: {{matrix: {{a: [{SIDE}], b: [{SIDE}]}}}}\n    steps: [{{run: echo}}]\n",
}
# What differs between a run, with its rows, and its copies; `n` counts them.
_RUN = {"id": "run.id + n", "number": "run.number + n", "push_id": "NULL", "ref": "'refs/heads/branch-' || n % 100"}
_RUN |= {"created_at": "run.created_at + n * interval '1 s'", "sha": "md5(n::text)"}
_RUN |= {"state": "'ended'", "conclusion": "CASE WHEN n % 10 = 0 THEN 'failure' ELSE 'success' END"}
_RUN |= {
    "ended_at": "run.created_at + n * interval '1 s'",
    "event": "CASE WHEN n % 3 = 0 THEN 'push' ELSE 'schedule' END",
}
_JOB = {"run_id": "run_id + n", "state": "'ended'", "hold": "''", "conclusion": "'success'", "ended_at": "now()"}


def measure(runs: int = RUNS, rounds: int = ROUNDS) -> list[Figure]:
    with running() as ground:
        few = Project.create(ground.person, "few", ground.folder / "few")
        many = Project.create(ground.person, "many", ground.folder / "many")
        for project in (few, many):
            project.start(FILES)
        many.dispatch("one.yml")
        wide, one = many.dispatch("wide.yml"), many.dispatch("one.yml")
        _multiply(ground, one, runs)
        newest = one.id + runs
        pages = {
            "empty": f"/{few.name}/actions/",
            "list": f"/{many.name}/actions/",
            "last": f"/{many.name}/actions/?before={one.id + 30}",
            "branch": f"/{many.name}/actions/?branch=branch-7",
            "nothing": f"/{many.name}/actions/?branch=nowhere",
            "mixed": f"/{many.name}/actions/?workflow=one.yml&event=push&state=failure",
            "one": f"/{many.name}/actions/runs/{newest}/",
            "wide": wide.path,
            "repository": f"/{many.name}/",
            "few": f"/{few.name}/",
        }
        taken = _times(ground, pages, rounds)
    return [_figure(what, taken[page], taken[beside], named) for what, page, beside, named in _ROWS]


_MISSED = "It does not grow with what is not shown; what is left is Django's templates, a row at a time."
_LIST, _RUN_PAGE = "that of a repository without runs", "that of a run of one job"
_ROWS = (
    ("run list, 100,000 runs", "list", "empty", _LIST),
    ("run list, the oldest of them", "last", "empty", _LIST),
    ("run list, one branch of a hundred", "branch", "empty", _LIST),
    ("run list, a branch without runs", "nothing", "empty", _LIST),
    ("run list by workflow, event and state", "mixed", "empty", _LIST),
    ("run page of 256 jobs beside 100,000 runs", "wide", "one", _RUN_PAGE),
    ("repository page beside 100,000 runs", "repository", "few", "that of a repository without runs"),
)


def _figure(what: str, taken: list[float], beside: list[float], named: str) -> Figure:
    figure = Figure(what=what, measured=median(taken), unit="ms", aim=AIM, beside=median(beside), beside_what=named)
    return figure if figure.met else replace(figure, note=_MISSED)


def _multiply(ground: Ground, run: Run, count: int) -> None:
    """So many copies of an ended run of one job, with its steps and events; every constraint holds for them."""
    for table, where, differs in (
        ("ci_run", f"id = {run.id}", _RUN),
        ("ci_job", f"run_id = {run.id}", {**_JOB, "id": f"id + {10 * count} + n"}),
        ("ci_event", f"run_id = {run.id}", {"id": None, "run_id": "run_id + n", "job_id": "NULL"}),
    ):
        names = [name for (name,) in ground.sql(_COLUMNS, table)]
        kept = [name for name in names if differs.get(name, "") is not None]
        values = ", ".join(differs.get(name) or f'"{name}"' for name in kept)
        columns = ", ".join(f'"{name}"' for name in kept)
        ground.sql(
            f"INSERT INTO {table} ({columns}) SELECT {values}"
            f" FROM (SELECT * FROM {table} WHERE {where}) run, generate_series(1, {count}) n"
        )
    ground.sql(
        f"INSERT INTO ci_step (job_id, number, name, state, conclusion, started_at, ended_at, first_line, line_count,"
        f" annotations, summary) SELECT id, n, 'Run echo', 'ended', 'success', now(), now(), 0, 0, '[]', ''"
        f" FROM ci_job, generate_series(1, 3) n WHERE run_id > {run.id}"
    )
    for table in ("ci_run", "ci_job", "ci_event", "ci_step"):
        ground.sql(f"VACUUM ANALYZE {table}")


_COLUMNS = "SELECT column_name::text FROM information_schema.columns WHERE table_name = %s ORDER BY ordinal_position"


def _times(ground: Ground, pages: dict[str, str], rounds: int) -> dict[str, list[float]]:
    """Milliseconds to the whole answer, by page; the pages in turn, signed in, over one connection."""
    cookies = "; ".join(f"{name}={value}" for name, value in ground.person.pages.cookies.items())
    connection = http.client.HTTPConnection("127.0.0.1", ground.product.port, timeout=60)
    taken: dict[str, list[float]] = {page: [] for page in pages}
    for number in range(rounds + 5):
        for page, address in pages.items():
            began = time.perf_counter()
            connection.request("GET", address, headers={"Cookie": cookies})
            answer = connection.getresponse()
            answer.read()
            if number >= 5:
                taken[page].append((time.perf_counter() - began) * 1000)
            assert answer.status == 200, f"{address}: {answer.status}"
    connection.close()
    return taken

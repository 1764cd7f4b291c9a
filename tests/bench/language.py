"""How fast are workflow files loaded and planned, against GitHub's own engine on the same files in the same run?"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ci.workflow import Event, Options, WorkflowErrors, legs, load, plan
from ci.workflow.expressions import program, templates
from tests.conformance.oracle_process import FOLDER, Absent, install

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "conformance" / "corpus"
TIME = ["node", "--import", "./json_imports.mjs", "time.mjs"]
# So many that V8 has compiled all of its engine: a round of one small file is a millisecond.
ROUNDS, SMALL_ROUNDS = 7, 60
# Called workflows of other repositories are not part of the corpus.
OPEN = Options(require_called=False)
SIDE = 16
Files = dict[str, str]
Work = Callable[[Files], "list[str] | None"]


def matrix_file() -> Files:
    """A workflow whose one job has a matrix of 256 legs."""
    values = ", ".join(str(number) for number in range(SIDE))
    job = "{runs-on: x, name: 'leg ${{ matrix.a }} ${{ matrix.b }}', strategy: {matrix: {a: [$V], b: [$V]}}}"
    return {"matrix.yml": f"on: push\njobs:\n  wide: {job.replace('$V', values)}\n"}


def corpus() -> Files:
    """The workflows of real repositories; small ones of our own where they are not here."""
    found = sorted(path for path in CORPUS.glob("*/*") if path.suffix in {".yml", ".yaml"})
    if not found:
        step = "{run: 'echo ${{ github.sha }}', env: {A: '${{ github.ref }}'}}"
        text = f"on: push\njobs:\n  a: {{runs-on: x, steps: [{', '.join([step] * 20)}]}}\n"
        return {f"own-{number}.yml": text for number in range(200)}
    return {f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in found}


def load_and_plan(files: Files) -> None:
    """Load every file and plan it for each of its events."""
    for path, text in files.items():
        try:
            workflow = load(path, {path: text}, options=OPEN)
        except WorkflowErrors:
            continue
        for name in workflow.on:
            plan(workflow, Event(name, {"ref": "refs/heads/main", "event_name": name, "event": {}}))


def expand_matrix(files: Files) -> list[str]:
    """Load, plan and expand the file with the large matrix. Returns the names of its legs."""
    ((path, text),) = files.items()
    (job,) = plan(load(path, {path: text}), Event("push", {})).jobs
    contexts: dict[str, object] = {"github": {}, "inputs": {}, "vars": {}, "needs": {}}
    expansion = legs.expand(job.definition, contexts=contexts, ancestors={}, cancelled=False, key=job.key)
    return [leg.name for leg in expansion.legs]


def _forget() -> None:
    """Empty what is remembered between files, so that every round does all the work; GitHub's engine keeps nothing."""
    program.forget()
    for value in vars(templates).values():
        if hasattr(value, "cache_clear"):
            value.cache_clear()


def ours(run: Work, files: Files) -> float:
    """The seconds of one round."""
    _forget()
    started = time.perf_counter()
    run(files)
    return time.perf_counter() - started


class GitHub:
    """GitHub's parser in one node process, which is warm after its first round."""

    def __init__(self, files: Files, *, expands: bool = False) -> None:
        """`expands`: it also makes the legs of each matrix and evaluates their names; `names` are those then."""
        command = [*TIME, "legs"] if expands else TIME
        self._process = subprocess.Popen(command, cwd=FOLDER, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._send(json.dumps(files))
        self.names: list[str] = []

    def round(self) -> float:
        """The seconds of one round."""
        self._send("")
        assert self._process.stdout
        answer = json.loads(self._process.stdout.readline())
        self.names = answer["names"]
        return float(answer["seconds"])

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _send(self, line: str) -> None:
        assert self._process.stdin
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()


def compare(run: Work, files: Files, *, present: bool, expands: bool = False) -> tuple[float, float]:
    """The best round of each side, in turn, so that whatever else the machine does burdens both."""
    github = GitHub(files, expands=expands) if present else None
    mine, other = [], []
    for _ in range(ROUNDS if len(files) > 1 else SMALL_ROUNDS):
        mine.append(ours(run, files))
        other.append(github.round() if github else float("nan"))
    if github:
        github.close()
        if expands and github.names != run(files):
            raise SystemExit("The two did not do the same work: the names of the legs differ.")
    return min(mine), min(other)


def main() -> int:
    """Print a table; 1 where we are slower than GitHub's engine, 0 also where that engine is not here."""
    files = corpus()
    work: list[tuple[str, Work, Files, bool]] = [
        (f"load and plan {len(files)} files", load_and_plan, files, False),
        ("256 legs, GitHub's parsed only", expand_matrix, matrix_file(), False),
        ("256 legs, expanded by both", expand_matrix, matrix_file(), True),
    ]
    try:
        install()
        present = True
    except Absent as absent:
        print(f"GitHub's engine is not here: {absent}")
        present = False
    print(f"{'':34} {'ours':>10} {'GitHub':>10} {'ratio':>6}")
    slower = False
    for name, run, given, expands in work:
        mine, other = compare(run, given, present=present, expands=expands)
        print(f"{name:34} {mine * 1000:8.1f} ms {other * 1000:7.1f} ms {mine / other:6.2f}")
        slower = slower or (run is load_and_plan and mine > other)
    print("GitHub's packages do not expand a matrix. The second row shows what the 256 legs cost us on top of a parse;")
    print("in the third a cross product of ours feeds GitHub's evaluator, which reads each text once for all legs.")
    return int(slower)

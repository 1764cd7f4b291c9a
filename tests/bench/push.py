"""How long after the start of `git push` does a warm bundled runner begin the workflow's first step?"""

from __future__ import annotations

import time

from tests.bench.figures import Figure, median, share
from tests.bench.ground import Ground, running
from tests.e2e.product import eventually
from tests.e2e.projects import Project

PUSHES = 40
AIM = 300.0
# The step says itself when its program ran: its report to the forge is a little earlier.
WORKFLOW = """name: first
on: {{push: {{branches: [go]}}}}
jobs:
  one:
    runs-on: self-hosted
    steps:
      - run: date +%s.%N > '{seen}/'"$GITHUB_SHA"
"""


def measure(pushes: int = PUSHES) -> list[Figure]:
    with running(runners=1) as ground:
        # The runner may work as another user.
        seen = ground.folder / "seen"
        seen.mkdir()
        seen.chmod(0o777)
        project = Project.create(ground.person, "pushes", ground.folder / "tree")
        project.start({".github/workflows/first.yml": WORKFLOW.format(seen=seen)})
        for branch in ("still", "go"):  # their first pushes start `create` too, and warm everything
            _pushed(project, branch)
        _wait_for_rest(ground)
        alone, begun, ran = [], [], []
        for _ in range(pushes):
            began, took, _ = _pushed(project, "still")
            alone.append(took)
            began, _, sha = _pushed(project, "go")
            _wait_for_rest(ground)
            begun.append((_first_step(ground, sha) - began) * 1000)
            ran.append((float((seen / sha).read_text()) - began) * 1000)
    return [_figure("reported to the forge", begun, alone), _figure("its program runs", ran, alone)]


def _figure(point: str, taken: list[float], alone: list[float]) -> Figure:
    return Figure(
        what=f"push to the first step of a warm bundled runner ({point}), beyond git push alone",
        measured=median(taken) - median(alone),
        unit="ms",
        aim=AIM,
        note=f"From the start of git push {median(taken):.0f} ms (p90 {share(taken, 0.9):.0f}); a push to the same "
        f"repository that starts nothing takes {median(alone):.0f} ms (p90 {share(alone, 0.9):.0f}).",
    )


def _pushed(project: Project, branch: str) -> tuple[float, float, str]:
    """When a push of one new commit began (Unix time), the milliseconds it took, and the commit."""
    sha = project.tree.commit()
    began = time.time()
    done = project.push(f"HEAD:refs/heads/{branch}")
    took = time.time() - began
    assert done.status == 0, done.stderr
    return began, took * 1000, sha


def _wait_for_rest(ground: Ground) -> None:
    """Until nothing runs, and the runner polls again."""
    eventually(
        lambda: not ground.sql("SELECT 1 FROM ci_run WHERE state <> 'ended'"), seconds=60, what="every run has ended"
    )
    time.sleep(0.2)


def _first_step(ground: Ground, sha: str) -> float:
    """When the first step of the workflow's own began, as Unix time."""
    rows = ground.sql(
        "SELECT extract(epoch FROM step.started_at)::float8 FROM ci_step step JOIN ci_job job ON job.id = step.job_id"
        " JOIN ci_run run ON run.id = job.run_id WHERE run.sha = %s AND step.number = 2",
        sha,
    )
    return float(rows[0][0])

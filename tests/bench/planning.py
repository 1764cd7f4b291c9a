"""How long does a push take to plan, rows and all, beside its workflow files parsed and planned in memory?

The planning runs in a process with Django (`planning_rows`), as a task of the product does.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from tests.bench.figures import Figure, median
from tests.bench.ground import Ground, running
from tests.e2e.product import ROOT
from tests.e2e.projects import Project

Files = dict[str, bytes]
ROUNDS = 15
_START = "import django, sys; django.setup(); from tests.bench import planning_rows; planning_rows.main(sys.stdin)"
AIM = 3.0
FOLDER = ".github/workflows"
SIDE = ", ".join(str(number) for number in range(16))
MATRIX = f"""name: wide
on: push
jobs:
  wide:
    runs-on: nobody-has-this
    strategy: {{matrix: {{a: [{SIDE}], b: [{SIDE}]}}}}
    steps: [{{run: "echo ${{{{ matrix.a }}}} ${{{{ matrix.b }}}}"}}]
"""
# About as long as half of the workflow files in public repositories are.
WORKFLOW = """name: Checks %d
on:
  push:
    branches: [main, 'release/**']
  pull_request:
permissions: {contents: read}
concurrency: {group: "${{ github.workflow }}-${{ github.run_id }}", cancel-in-progress: true}
env: {COLOR: always}
jobs:
  lint:
    runs-on: nobody-has-this
    steps:
      - uses: actions/checkout@v4
      - name: Set up
        uses: actions/setup-python@v5
        with:
          python-version: "3.12"
          cache: pip
      - name: Install
        run: |
          python -m pip install --upgrade pip
          pip install -r requirements.txt
      - name: Lint
        if: ${{ github.event_name == 'push' }}
        run: ruff check .
  test:
    needs: lint
    strategy:
      fail-fast: false
      matrix:
        python: ["3.11", "3.12", "3.13"]
        system: [linux, windows]
    name: Test ${{ matrix.python }} on ${{ matrix.system }}
    runs-on: nobody-has-this
    timeout-minutes: 20
    env:
      PYTHON: ${{ matrix.python }}
    steps:
      - uses: actions/checkout@v4
        with: {fetch-depth: 0}
      - uses: actions/setup-python@v5
        with:
          python-version: ${{ matrix.python }}
      - run: pip install -r requirements.txt
      - name: Test
        run: pytest -q --cov
        env: {TOKEN: "${{ secrets.TOKEN }}"}
      - name: Keep the coverage
        if: always()
        uses: actions/upload-artifact@v4
        with:
          name: coverage-${{ matrix.python }}-${{ matrix.system }}
          path: coverage.xml
"""
CASES: dict[str, Files] = {
    "256-leg matrix": {f"{FOLDER}/wide.yml": MATRIX.encode()},
    "40 workflows": {f"{FOLDER}/{number:02}.yml": (WORKFLOW % number).encode() for number in range(40)},
}


def measure(rounds: int = ROUNDS) -> list[Figure]:
    found = []
    with running() as ground:
        for number, (name, files) in enumerate(CASES.items()):
            project = Project.create(ground.person, f"planning-{number}", ground.folder / f"tree-{number}")
            project.start(files)
            found.append(_figure(name, _apart(ground, repository=project.name, case=name, rounds=rounds)))
    return found


def _figure(name: str, story: dict[str, list[float]]) -> Figure:
    return Figure(
        what=f"planning a push from its files in git to its rows: {name}",
        measured=median(story["push"]),
        unit="ms",
        aim=AIM,
        beside=median(story["alone"]),
        beside_what="the same files loaded, matched, planned and expanded in memory",
        note=f"Of it {median(story['create']):.0f} ms are for planning and writing what is loaded already. A leg is "
        "several writes (job, its move to the queue, event), a workflow a transaction of its own: next, insert "
        "legs as queued, and make the runs of one push together.",
    )


def _apart(ground: Ground, **task: Any) -> dict[str, list[float]]:
    """Milliseconds of each round, by what was done."""
    done = subprocess.run(
        [sys.executable, "-c", _START],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "DJANGO_SETTINGS_MODULE": "forge.settings",
            "FORGE_DATA": str(ground.product.data),
            "FORGE_LOG_LEVEL": "WARNING",
        },
        input=json.dumps(task),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return dict(json.loads(done.stdout))

"""Does a real runner process carry a job from the poll to its end?"""

from __future__ import annotations

from tests.runner.conftest import Runners
from tests.runner.fake_server import FakeServer


def test_a_job_runs_to_success_with_all_its_steps_reported(server: FakeServer, runners: Runners) -> None:
    job = runners.run(server.add([{"run": "echo hello"}, {"name": "Second", "run": "echo two >&2"}]))
    assert job.conclusion == "success", job.text
    assert job.conclusions() == {
        "Set up job": "success", "Run echo hello": "success", "Second": "success", "Complete job": "success",
    }  # fmt: skip
    assert "hello" in job.lines_of("Run echo hello")
    assert "two" in job.lines_of("Second")
    assert any("Labels: self-hosted" in line for line in job.lines_of("Set up job"))

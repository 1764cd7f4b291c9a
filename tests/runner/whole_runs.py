"""How does a whole workflow run, planned by ci.workflow and carried out by a real runner?

Takes the forge's part between two jobs: it expands what became ready, hands needs and outputs on, and concludes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ci.workflow import MatrixError, PlanError, PlannedJob, Workflow, calls, legs, needs, plan
from ci.workflow.expressions import ExpressionError
from ci.workflow.workflow import Event
from tests.runner.fake_server import FakeJob, FakeServer

JOB_SECONDS = 120.0


@dataclass
class Outcome:
    """What became of one job over its legs."""

    result: str
    outputs: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """What all jobs of one workflow file have in common."""

    env: Mapping[str, Any]
    defaults: Mapping[str, Any]
    inputs: Mapping[str, Any]
    secrets: Mapping[str, str]


class WholeRun:
    """One run. A runner process must be waiting for the server's jobs. `env` stands beneath the workflow's own."""

    def __init__(
        self,
        server: FakeServer,
        event: Event,
        *,
        env: Mapping[str, str] | None = None,
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._server = server
        self._event = event
        self._env = dict(env or {})
        self._secrets = dict(secrets or {})
        self.jobs: list[FakeJob] = []
        self.problems: list[str] = []

    @property
    def text(self) -> str:
        """All logs and problems, to show where an end was not the expected one."""
        return "\n".join([*self.problems, *(f"--- {job.payload['job']['name']}\n{job.text}" for job in self.jobs)])

    def run(self, workflow: Workflow) -> str:
        """The conclusion of the run: the result over its jobs."""
        try:
            planned = plan(workflow, self._event)
        except PlanError as error:
            self.problems.append(str(error))
            return "failure"
        around = Surroundings({**self._env, **planned.env}, planned.defaults, self._event.inputs, self._secrets)
        return needs.result((outcome.result, False) for outcome in self._scope(planned.jobs, around).values())

    def _scope(self, jobs: Sequence[PlannedJob], around: Surroundings) -> dict[str, Outcome]:
        """All jobs of one file, each when its needs have ended."""
        graph = {job.key: job.needs for job in jobs}
        above = needs.ancestors(graph)
        ended: dict[str, Outcome] = {}
        while ready := needs.ready({key: outcome.result for key, outcome in ended.items()}, graph):
            for job in (job for job in jobs if job.key in ready):
                ancestors = {key: ended[key].result for key in above[job.key]}
                given = {key: {"result": ended[key].result, "outputs": ended[key].outputs} for key in job.needs}
                ended[job.key] = self._job(job, around, needs=given, ancestors=ancestors)
        return ended

    def _contexts(self, around: Surroundings, given: Mapping[str, Any]) -> dict[str, Any]:
        return {"github": self._event.github, "vars": self._event.vars, "inputs": around.inputs, "needs": given}

    def _job(
        self, job: PlannedJob, around: Surroundings, *, needs: Mapping[str, Any], ancestors: Mapping[str, str]
    ) -> Outcome:
        contexts = self._contexts(around, needs)
        try:
            expansion = legs.expand(
                job.definition, contexts=contexts, ancestors=ancestors, cancelled=False, key=job.key
            )
        except (ExpressionError, MatrixError, PlanError) as error:
            self.problems.append(f"{job.key}: {error}")
            return Outcome("failure")
        if expansion.skipped:
            return Outcome("skipped")
        return self._legs(job, expansion.legs, around, contexts)

    def _legs(
        self, job: PlannedJob, expanded: Sequence[legs.Leg], around: Surroundings, contexts: Mapping[str, Any]
    ) -> Outcome:
        """One after the other; once a leg failed, those that fail fast are cancelled before they begin."""
        ended: list[tuple[Outcome, bool]] = []
        for leg in expanded:
            if leg.fail_fast and any(outcome.result == "failure" and not kept for outcome, kept in ended):
                outcome = Outcome("cancelled")
            elif leg.call is not None:
                outcome = self._call(job, leg, around, contexts)
            else:
                outcome = self._leg(job, leg, around, contexts)
            ended.append((outcome, leg.continue_on_error))
        return Outcome(
            needs.result((outcome.result, kept) for outcome, kept in ended),
            needs.merge_outputs(outcome.outputs for outcome, _ in ended),
        )

    def _leg(self, job: PlannedJob, leg: legs.Leg, around: Surroundings, contexts: Mapping[str, Any]) -> Outcome:
        definition = {key: value for key, value in job.definition.items() if key != "steps"}
        queued = self._server.add(
            job.definition.get("steps") or [],
            name=leg.name,
            key=job.key,
            secrets=dict(around.secrets),
            github=dict(self._event.github),
            workflow={"env": around.env, "defaults": around.defaults},
            contexts={
                **{name: contexts[name] for name in ("vars", "inputs", "needs")},
                "matrix": leg.matrix,
                "strategy": leg.strategy,
            },
            definition=definition,
        )
        self.jobs.append(queued)
        self._server.wait(lambda: queued.state == "ended", JOB_SECONDS)
        return Outcome(queued.conclusion or "failure", queued.outputs)

    def _call(self, job: PlannedJob, leg: legs.Leg, around: Surroundings, contexts: Mapping[str, Any]) -> Outcome:
        assert leg.call is not None
        called = job.definition["called"]
        seen = {**contexts, "strategy": leg.strategy, "matrix": leg.matrix, "secrets": around.secrets}
        raw = leg.call.secrets
        secrets = around.secrets if raw == "inherit" else calls.call_secrets(raw, seen)
        inner = Surroundings(called["env"], called["defaults"], leg.call.inputs, secrets)
        jobs = calls.plan_call(called, github=self._event.github, inputs=leg.call.inputs, vars=self._event.vars)
        ended = self._scope(jobs, inner)
        known = {
            **self._contexts(inner, {}),
            "jobs": {key: {"result": outcome.result, "outputs": outcome.outputs} for key, outcome in ended.items()},
        }
        known.pop("needs")
        result = needs.result((outcome.result, False) for outcome in ended.values())
        return Outcome(result, calls.outputs(called, contexts=known) if result == "success" else {})

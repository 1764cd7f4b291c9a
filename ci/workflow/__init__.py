"""What does a workflow file mean? The language of GitHub's workflows as plain functions: no input, no output.

`load` a text, ask `triggers.matches` whether an event starts it, `plan` the run, `legs.expand` each job in time."""

from ci.workflow import calls, commit, inputs, legs, matrix, needs, permissions, schedule, trees, triggers, uses
from ci.workflow.calls import Call
from ci.workflow.concurrency import Concurrency
from ci.workflow.inputs import InputErrors
from ci.workflow.loading import load
from ci.workflow.matrix import MatrixError
from ci.workflow.options import Options
from ci.workflow.planning import Plan, PlannedJob, plan
from ci.workflow.problems import PlanError, Problem, WorkflowErrors
from ci.workflow.schedule import ScheduleError
from ci.workflow.uses import references
from ci.workflow.workflow import Event, Workflow

__all__ = [
    "Call",
    "Concurrency",
    "Event",
    "InputErrors",
    "MatrixError",
    "Options",
    "Plan",
    "PlanError",
    "PlannedJob",
    "Problem",
    "ScheduleError",
    "Workflow",
    "WorkflowErrors",
    "calls",
    "commit",
    "inputs",
    "legs",
    "load",
    "matrix",
    "needs",
    "permissions",
    "plan",
    "references",
    "schedule",
    "trees",
    "triggers",
    "uses",
]

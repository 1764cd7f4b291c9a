"""What does a workflow file mean? The language of GitHub's workflows as plain functions: no input, no output.

`load` a text, ask `triggers.matches` whether an event starts it, `plan` the run, `legs.expand` each job in time."""

from ci.workflow import commit, inputs, legs, matrix, needs, schedule, trees, triggers
from ci.workflow.concurrency import Concurrency
from ci.workflow.document.loading import load
from ci.workflow.inputs import InputErrors
from ci.workflow.matrix import MatrixError
from ci.workflow.planning import Plan, PlannedJob, plan
from ci.workflow.problems import PlanError, Problem, WorkflowErrors
from ci.workflow.schedule import ScheduleError
from ci.workflow.workflow import Event, Workflow

__all__ = [
    "Concurrency",
    "Event",
    "InputErrors",
    "MatrixError",
    "Plan",
    "PlanError",
    "PlannedJob",
    "Problem",
    "ScheduleError",
    "Workflow",
    "WorkflowErrors",
    "commit",
    "inputs",
    "legs",
    "load",
    "matrix",
    "needs",
    "plan",
    "schedule",
    "trees",
    "triggers",
]

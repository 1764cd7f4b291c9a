"""Which events may stand under `on:`, with which activity types and filters? (GitHub docs, "Events that trigger
workflows", and GitHub's published workflow schema.)"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EventFacts:
    """`types`: the activity types that exist. `default_types`: those that count when none are given (() = all).
    `filters`: further keys whose value is a text or a list of texts. `bare`: may stand in `on:` without a mapping."""

    types: tuple[str, ...] = ()
    default_types: tuple[str, ...] = ()
    filters: tuple[str, ...] = ()


_BRANCHES = ("branches", "branches-ignore")
_TAGS = ("tags", "tags-ignore")
_PATHS = ("paths", "paths-ignore")
_EDITS = ("created", "edited", "deleted")
_PULL_REQUEST = (
    *("assigned", "unassigned", "labeled", "unlabeled", "opened", "edited", "closed", "reopened", "synchronize"),
    *("converted_to_draft", "locked", "unlocked", "enqueued", "dequeued", "milestoned", "demilestoned"),
    *("ready_for_review", "review_requested", "review_request_removed", "auto_merge_enabled", "auto_merge_disabled"),
    "stacked",
)
_PULL_REQUEST_DEFAULT = ("opened", "synchronize", "reopened")
_DISCUSSION = (
    *("created", "edited", "deleted", "transferred", "pinned", "unpinned", "labeled", "unlabeled", "locked"),
    *("unlocked", "category_changed", "answered", "unanswered"),
)
_ISSUES = (
    *("opened", "edited", "deleted", "transferred", "pinned", "unpinned", "closed", "reopened", "assigned"),
    *("unassigned", "labeled", "unlabeled", "locked", "unlocked", "milestoned", "demilestoned"),
    *("field_added", "field_removed", "typed", "untyped"),
)

# repository_dispatch takes any type; schedule, workflow_call and workflow_dispatch have shapes of their own.
EVENTS: dict[str, EventFacts] = {
    "branch_protection_rule": EventFacts(_EDITS),
    "check_run": EventFacts(("completed", "created", "rerequested", "requested_action")),
    "check_suite": EventFacts(("completed",)),
    "create": EventFacts(),
    "delete": EventFacts(),
    "deployment": EventFacts(),
    "deployment_status": EventFacts(),
    "discussion": EventFacts(_DISCUSSION),
    "discussion_comment": EventFacts(_EDITS),
    "fork": EventFacts(),
    "gollum": EventFacts(),
    "image_version": EventFacts(("created", "ready", "deleted"), filters=("names", "versions")),
    "issue_comment": EventFacts(_EDITS),
    "issues": EventFacts(_ISSUES),
    "label": EventFacts(_EDITS),
    "merge_group": EventFacts(("checks_requested",), filters=_BRANCHES),
    "milestone": EventFacts(("created", "closed", "opened", "edited", "deleted")),
    "page_build": EventFacts(),
    "project": EventFacts(("created", "closed", "reopened", "edited", "deleted")),
    "project_card": EventFacts(("created", "moved", "converted", "edited", "deleted")),
    "project_column": EventFacts(("created", "updated", "moved", "deleted")),
    "public": EventFacts(),
    "pull_request": EventFacts(_PULL_REQUEST, _PULL_REQUEST_DEFAULT, _BRANCHES + _PATHS),
    "pull_request_comment": EventFacts(_EDITS),
    "pull_request_review": EventFacts(("submitted", "edited", "dismissed")),
    "pull_request_review_comment": EventFacts(_EDITS),
    "pull_request_target": EventFacts(_PULL_REQUEST, _PULL_REQUEST_DEFAULT, _BRANCHES + _PATHS),
    "push": EventFacts(filters=_BRANCHES + _TAGS + _PATHS),
    "registry_package": EventFacts(("published", "updated")),
    "release": EventFacts(("published", "unpublished", "created", "edited", "deleted", "prereleased", "released")),
    "repository_dispatch": EventFacts(),
    "schedule": EventFacts(),
    "status": EventFacts(),
    "watch": EventFacts(("started",)),
    "workflow_call": EventFacts(),
    "workflow_dispatch": EventFacts(),
    "workflow_run": EventFacts(("requested", "completed", "in_progress"), filters=("workflows", *_BRANCHES)),
}

"""Do events start workflows as Gitea's published cases say, where GitHub agrees?"""

import json
import re
from pathlib import Path
from typing import Any

from ci.workflow import Event, load
from ci.workflow.triggers import matches

from .conftest import Score

# Gitea's name of an event -> GitHub's event and activity. None: the activity comes from the payload.
EVENTS: dict[str, tuple[str, str | None]] = {
    "Create": ("create", None),
    "Delete": ("delete", None),
    "Fork": ("fork", None),
    "Wiki": ("gollum", None),
    "Schedule": ("schedule", None),
    "Push": ("push", None),
    "Package": ("registry_package", None),
    "Release": ("release", None),
    "PullRequest": ("pull_request", None),
    "PullRequestSync": ("pull_request", "synchronize"),
    "Issues": ("issues", None),
    "issues": ("issues", None),
    "IssueComment": ("issue_comment", None),
}


def as_event(row: dict[str, Any]) -> Event | None:
    """The case in GitHub's words; None where Gitea's payload has no counterpart."""
    name, action = EVENTS.get(row["event"], (None, None))
    if name is None:
        return None
    payload = row["payload"] or {}
    if action is None and "Action" in payload:
        action = re.sub(r"^api\.Hook(Issue|Package|Release|PullRequest)", "", str(payload["Action"])).lower()
        if action.startswith("label"):
            # One Gitea hook stands for GitHub's labeled and unlabeled; the changed labels tell which.
            removed = action == "labelcleared" or (payload.get("Changes") or {}).get("RemovedLabels")
            action = "unlabeled" if removed else "labeled"
    paths = None
    if commits := payload.get("Commits"):
        changed = [
            path for commit in commits for kind in ("Added", "Removed", "Modified") for path in commit.get(kind) or []
        ]
        paths = tuple(changed)
    github = {"ref": payload.get("Ref", ""), "event": {} if action is None else {"action": action}}
    return Event(name, github, changed_paths=paths)


def test_every_published_trigger_matches_as_published(published: Path, score: Score) -> None:
    wrong, judged = [], 0
    rows = [json.loads(line) for line in (published / "gitea_triggers.jsonl").open(encoding="utf-8")]
    for row in rows:
        event = as_event(row)
        if event is None:
            continue
        judged += 1
        workflow = load("w.yml", {"w.yml": f"{row['on']}\njobs: {{a: {{runs-on: x}}}}\n"})
        if matches(workflow, event) != (row["expected"] in (True, "detectMatched")):
            wrong.append(row["desc"])
    score("gitea_triggers.jsonl", judged - len(wrong), len(rows))
    assert judged
    assert not wrong

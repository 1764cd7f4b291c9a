"""What does one reported step show: its lines, annotations and summary?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ci.runner.env_files import SUMMARY_LIMIT
from ci.runner.lines import cut_position, shorten
from ci.runner.logstream import LogStream, now
from ci.runner.masks import Masks, storable

MOST_ANNOTATIONS = 50
NAME_LIMIT = 200


class Console:
    """One step of the job's page. Everything that passes here is masked before it leaves."""

    def __init__(self, *, number: int, name: str, log: LogStream, masks: Masks, debug: bool) -> None:
        self.number = number
        self.debug = debug
        self.conclusion: str | None = None
        self._name = name
        self._log = log
        self._masks = masks
        self._state = "pending"
        self._started_at: str | None = None
        self._ended_at: str | None = None
        self._first: int | None = None
        self._last: int | None = None
        self._annotations: list[dict[str, Any]] = []
        self._summary = ""

    @property
    def has_errors(self) -> bool:
        return any(annotation["level"] == "error" for annotation in self._annotations)

    def rename(self, name: str) -> None:
        if name != self._name:
            self._name = name
            self.announce()

    def announce(self) -> None:
        """Tell the forge what is known of the step now."""
        self._log.step(self.report())

    def begin(self) -> None:
        self._state, self._started_at, self._first = "running", now(), self._log.end
        if self.number == 1:  # the set-up may be done again elsewhere, what follows may not
            self.announce()
        else:
            self._log.begin(self.report())

    def end(self, conclusion: str) -> None:
        if self._started_at is None:
            self._first = self._log.end
        self._last = self._log.end
        self._state, self.conclusion, self._ended_at = "ended", conclusion, now()
        self.announce()

    def report(self) -> dict[str, Any]:
        """The step as the API wants it."""
        name = " ".join(storable(self._masks.hide(self._name)).split())[:NAME_LIMIT] or f"Step {self.number}"
        state: dict[str, Any] = {"number": self.number, "name": name, "state": self._state}
        if self.conclusion:
            state["conclusion"] = self.conclusion
        if self._started_at:
            state["started_at"] = self._started_at
        if self._ended_at:
            state["ended_at"] = self._ended_at
        if self._first is not None:
            state["first_line"] = self._first
            state["line_count"] = (self._log.end if self._last is None else self._last) - self._first
        if self._annotations:
            state["annotations"] = list(self._annotations)
        if self._summary:
            state["summary"] = self._summary
        return state

    def print(self, text: str = "") -> None:
        """One line of the log."""
        clean = storable(text).replace("\n", " ")
        cut = cut_position(clean)
        hidden = self._masks.hide(clean, cut=cut)
        # Stars may be longer than what they hide, so that a line can outgrow the limit by them.
        if cut is not None or cut_position(hidden) is not None:
            hidden = shorten(hidden)
        self._log.write(hidden)

    def print_all(self, text: str) -> None:
        for line in text.split("\n"):
            self.print(line)

    def error(self, message: str) -> None:
        """An error of the runner's own about this step: a red line and an annotation."""
        first, *rest = message.split("\n")
        self.print(f"##[error]{first}")
        for line in rest:
            self.print(line)
        self.annotate({"level": "error", "message": message})

    def warning(self, message: str) -> None:
        self.print(f"##[warning]{message}")
        self.annotate({"level": "warning", "message": message})

    def annotate(self, annotation: Mapping[str, Any]) -> None:
        if len(self._annotations) < MOST_ANNOTATIONS:
            # Not the level, one of the API's own words: a secret such as "w" would make it one that the forge refuses.
            shown = {
                key: self._hide(value) if isinstance(value, str) and key != "level" else value
                for key, value in annotation.items()
            }
            self._annotations.append(shown)

    def _hide(self, text: str) -> str:
        return storable(self._masks.hide(text))

    def summarize(self, markdown: str) -> None:
        """Add to the step's summary; what does not fit is refused whole, as on GitHub."""
        if not markdown:
            return
        added = self._summary + self._hide(markdown)
        if len(added.encode("utf-8", "replace")) > SUMMARY_LIMIT:
            self.error(
                f"$GITHUB_STEP_SUMMARY upload aborted, supports content up to a size of {SUMMARY_LIMIT // 1024}k, "
                f"got {len(added.encode('utf-8', 'replace')) // 1024}k"
            )
            return
        self._summary = added

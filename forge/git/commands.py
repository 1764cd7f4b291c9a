"""What does a push ask for? The list of ref commands at the beginning of a receive-pack request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from forge.git.names import is_ref_name, is_sha
from forge.git.pktlines import DATA, FLUSH, PROGRESS, MalformedPacket, PacketReader, on_band, packet
from forge.models import ZERO_SHA

MAX_COMMANDS = 10_000
MAX_BYTES = 4 * 1024 * 1024
_RECORDED = ("refs/heads/", "refs/tags/")
_ALLOWED = (*_RECORDED, "refs/notes/")


class BadPush(Exception):
    """The request is not what git sends; the message says what is wrong."""


@dataclass(frozen=True)
class Command:
    before: str
    after: str
    ref: str

    @property
    def is_deletion(self) -> bool:
        return self.after == ZERO_SHA

    @property
    def is_recorded(self) -> bool:
        """Whether it is an event for others: notes are kept, but start nothing."""
        return self.ref.startswith(_RECORDED) and self.before != self.after


@dataclass
class CommandList:
    """The head of a receive-pack request, read as it streams in."""

    commands: list[Command] = field(default_factory=list)
    capabilities: frozenset[str] = frozenset()
    raw: bytearray = field(default_factory=bytearray)  # all that was fed, for git
    complete: bool = False
    _packets: PacketReader = field(default_factory=PacketReader)
    _first: bool = True

    def feed(self, chunk: bytes) -> None:
        """Read on; `complete` says when the list has ended. Raises BadPush."""
        self.raw += chunk
        try:
            for line in self._packets.feed(chunk):
                if line is None:
                    self.complete = True
                    return
                self._add(line)
        except MalformedPacket as error:
            raise BadPush(str(error)) from None
        if len(self.raw) > MAX_BYTES:
            raise BadPush(f"the list of refs is longer than {MAX_BYTES} bytes")

    @property
    def is_atomic(self) -> bool:
        return "atomic" in self.capabilities

    @property
    def has_side_band(self) -> bool:
        return "side-band-64k" in self.capabilities

    @property
    def wants_report(self) -> bool:
        return bool(self.capabilities & {"report-status", "report-status-v2"})

    def _add(self, line: bytes) -> None:
        if self._first:
            self._first = False
            line, _, capabilities = line.partition(b"\0")
            self.capabilities = frozenset(capabilities.decode("ascii", "replace").split())
        if line.startswith(b"shallow "):
            self._first = True  # the capabilities come with the first command
            return
        if line.startswith(b"push-cert"):
            raise BadPush("signed pushes are not supported")
        if len(self.commands) >= MAX_COMMANDS:
            raise BadPush(f"more than {MAX_COMMANDS} refs in one push; push them in parts")
        words = line.removesuffix(b"\n").decode("utf-8", "surrogateescape").split(" ", 2)
        if len(words) != 3 or not (is_sha(words[0]) and is_sha(words[1])):
            raise BadPush("a ref command must be two object ids and a ref")
        self.commands.append(Command(*words))


def refusal(command: Command, *, default_branch: str) -> str | None:
    """Why a command must not reach git, for the person who pushes; None when nothing speaks against it."""
    ref = command.ref
    if not is_ref_name(ref):
        return "this is not a valid ref name"
    if not ref.startswith(_ALLOWED):
        return "only branches, tags and notes can be pushed"
    name = ref.split("/", 2)[2]
    if command.is_deletion:
        if ref == f"refs/heads/{default_branch}":
            return "this is the default branch: choose another one in the settings first"
        return None
    if name.startswith("-") or name == "HEAD":
        return "a name must not be HEAD or begin with '-'"
    if is_sha(name):
        return "a name must not look like a commit id"
    return None


def refuse_all(request: CommandList, reason: str, *, refusals: Mapping[str, str] | None = None) -> bytes:
    """The whole answer to a push that git never saw: `reason`, or a ref's own one of `refusals`."""
    lines = [packet(b"unpack ok\n")]
    own = refusals or {}
    lines += [packet(_refused(command.ref, own.get(command.ref, reason))) for command in request.commands]
    report = b"".join(lines) + FLUSH if request.wants_report else b""
    if not request.has_side_band:
        return report
    return on_band(PROGRESS, f"{reason}\n".encode()) + on_band(DATA, report) + FLUSH


def _refused(ref: str, reason: str) -> bytes:
    return b"ng " + ref.encode("utf-8", "surrogateescape") + f" {reason}\n".encode()


class Answer:
    """git's answer to a push: progress passes at once, the report is kept until the push is settled."""

    _MAX_REPORT = 8 * 1024 * 1024

    def __init__(self, request: CommandList) -> None:
        self._request = request
        self._packets = PacketReader()
        self._report = bytearray()

    def feed(self, chunk: bytes) -> bytes:
        """What of git's output goes to the client now. Raises MalformedPacket."""
        if not self._request.has_side_band:
            self._keep(chunk)
            return b""
        passed = bytearray()
        for data in self._packets.feed(chunk):
            if data is None or data == DATA:  # the flush comes last, from finish()
                continue
            if data[:1] == DATA:
                self._keep(data[1:])
            else:
                passed += packet(data)
        return bytes(passed)

    def _keep(self, data: bytes) -> None:
        self._report += data
        if len(self._report) > self._MAX_REPORT:
            raise MalformedPacket("git's report is too long")

    @property
    def has_report(self) -> bool:
        return bool(self._lines())

    def outcomes(self) -> dict[str, bool]:
        """Whether git moved each ref that its report names; empty when there is no (whole) report."""
        found = {}
        for line in self._lines():
            word, _, rest = line.removesuffix(b"\n").partition(b" ")
            ref = rest.split(b" ", 1)[0].decode("utf-8", "surrogateescape")
            if word in (b"ok", b"ng"):
                found[ref] = word == b"ok"
        return found

    def finish(self, *, refusals: dict[str, str], lines: list[str]) -> bytes:
        """The rest of the answer: the report, with our reasons for what was refused, and lines for the person."""
        report = bytearray()
        for line in self._lines():
            word, _, rest = line.partition(b" ")
            ref = rest.split(b" ", 1)[0].decode("utf-8", "surrogateescape")
            report += packet(_refused(ref, refusals[ref]) if word == b"ng" and ref in refusals else line)
        whole = bytes(report) + FLUSH if report else b""
        if not self._request.has_side_band:
            return whole
        text = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        return on_band(DATA, whole) + on_band(PROGRESS, text) + FLUSH

    def _lines(self) -> list[bytes]:
        try:
            return [line for line in PacketReader().feed(bytes(self._report)) if line]
        except MalformedPacket:
            return []

"""As whom does the embedded PostgreSQL run, and what must that user be given?"""

import ctypes
import os
import pwd
import signal
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from forge.child_processes import ending_with_parent, libc

# Linux: <linux/prctl.h>, <linux/securebits.h> and <linux/capability.h>.
_PR_SET_SECUREBITS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE = 28, 47, 2
_SECBIT_NO_SETUID_FIXUP = 1 << 2
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, _CAPABILITY_VERSION_3 = 1, 2, 0x20080522


@dataclass(frozen=True)
class ServerUser:
    """Who the server's processes are.

    `capability` is the number of the one Linux capability that lets them pass folders closed to them, or None.
    """

    uid: int
    gid: int
    capability: int | None = None

    @property
    def name(self) -> str:
        try:
            return pwd.getpwuid(self.uid).pw_name
        except KeyError:
            return str(self.uid)

    @property
    def differs(self) -> bool:
        return self.uid != os.geteuid()

    def own(self, path: Path) -> None:
        if self.differs:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)

    def entrance(self) -> Callable[[], None]:
        """What a new process does between fork and exec to become this user and to end with its parent."""
        differs = self.differs
        # PostgreSQL's fast shutdown. Asked for last: a change of user forgets it.
        end_with_parent = ending_with_parent(signal.SIGINT)

        def enter() -> None:
            if differs:
                self._become()
            end_with_parent()

        return enter

    def _become(self) -> None:
        os.setgroups([])
        os.setresgid(self.gid, self.gid, self.gid)
        if self.capability is None or libc is None:
            os.setresuid(self.uid, self.uid, self.uid)
            return
        # Capabilities outlive the change of user; access(2), by which PostgreSQL finds its programs, heeds them.
        if libc.prctl(_PR_SET_SECUREBITS, _SECBIT_NO_SETUID_FIXUP, 0, 0, 0):
            raise OSError(ctypes.get_errno(), "the capability to enter the data folder cannot be kept")
        os.setresuid(self.uid, self.uid, self.uid)
        bit = 1 << self.capability
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        # effective, permitted, inheritable; twice, for 64 bits
        sets = (ctypes.c_uint32 * 6)(bit, bit, bit, 0, 0, 0)
        if libc.capset(header, sets) or libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, self.capability, 0, 0):
            raise OSError(ctypes.get_errno(), "the capability to enter the data folder cannot be passed on")


def server_user(folder: Path) -> ServerUser:
    """Who runs the server whose data is in `folder` (which need not exist yet).

    PostgreSQL refuses to run as root. Root therefore runs it as the folder's owner, else as `postgres`, else as
    `nobody`. Where that user cannot reach the folder (a clone below root's 0700 home), no permission of anybody's
    folders is changed: the server gets the one capability to pass them.

    Raises LookupError when root finds no such user, PermissionError when the folder cannot be reached.
    """
    if os.geteuid() != 0:
        return ServerUser(os.geteuid(), os.getegid())
    uid, gid = _chosen_ids(folder)
    if all(_may_enter(parent, uid, gid) for parent in folder.parents):
        return ServerUser(uid, gid)
    capability = _passing_capability()
    if capability is None:
        name = pwd.getpwuid(uid).pw_name
        raise PermissionError(f"PostgreSQL does not run as root, and user {name} cannot reach {folder}")
    return ServerUser(uid, gid, capability)


def _chosen_ids(folder: Path) -> tuple[int, int]:
    if folder.exists() and (owner := folder.stat()).st_uid != 0:
        return owner.st_uid, owner.st_gid
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return entry.pw_uid, entry.pw_gid
    raise LookupError("PostgreSQL does not run as root, and this machine has neither a user postgres nor nobody")


def _may_enter(folder: Path, uid: int, gid: int) -> bool:
    try:
        found = folder.stat()
    except FileNotFoundError:
        return True  # created by us later, open for passing
    if found.st_uid == uid:
        return bool(found.st_mode & stat.S_IXUSR)
    if found.st_gid == gid:
        return bool(found.st_mode & stat.S_IXGRP)
    return bool(found.st_mode & stat.S_IXOTH)


def _passing_capability() -> int | None:
    if libc is None:
        return None
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
            return next((cap for cap in (_CAP_DAC_READ_SEARCH, _CAP_DAC_OVERRIDE) if held >> cap & 1), None)
    return None

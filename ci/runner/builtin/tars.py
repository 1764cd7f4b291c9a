"""How do cached files become an archive, and how do they come back to just the places they were taken from?

Source of the form: @actions/cache: a tar whose names are relative to the workspace (`../` leads out of it), compressed
by zstd where the machine has that program, else by gzip."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, cast

from ci.runner.builtin import step
from ci.runner.builtin.step import Failure

try:
    import zstandard
except ImportError:  # a runner that was set up without the forge's requirements
    zstandard = None  # type: ignore[assignment]

GZIP, ZSTD = "gzip", "zstd-without-long"
# What `zstd --long=30` asks of readers.
LARGEST_WINDOW = 1 << 30
_LEVEL = 3


def method() -> str:
    """How an archive made here is compressed: as the real action would do it, so that both find each other's."""
    return ZSTD if zstandard is not None and shutil.which("zstd") else GZIP


def readable_methods() -> list[str]:
    """What can be read here, the preferred first."""
    own = method()
    return [own, *(other for other in (ZSTD, GZIP) if other != own and (other == GZIP or zstandard is not None))]


def create(file: Path, paths: Sequence[str], *, workspace: Path, compression: str) -> None:
    """Raises Failure, OSError."""
    start = os.path.realpath(workspace)
    with (
        file.open("wb") as raw,
        _compressing(raw, compression) as stream,
        tarfile.open(fileobj=stream, mode="w|", format=tarfile.PAX_FORMAT) as archive,
    ):
        for path in paths:
            archive.add(path, arcname=os.path.relpath(path, start), filter=_ordinary)


def _ordinary(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if member.ischr() or member.isblk() or member.isfifo():
        step.debug(f"Left out, for it is no regular file: {member.name}")
        return None
    return member


@contextlib.contextmanager
def _compressing(raw: IO[bytes], compression: str) -> Iterator[IO[bytes]]:
    if compression == GZIP:
        with gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6, mtime=0) as stream:
            yield cast("IO[bytes]", stream)
    else:
        writer = zstandard.ZstdCompressor(level=_LEVEL, threads=-1).stream_writer(raw, closefd=False)
        with writer as stream:
            yield cast("IO[bytes]", stream)


@contextlib.contextmanager
def _decompressing(raw: IO[bytes], compression: str) -> Iterator[IO[bytes]]:
    if compression == GZIP:
        with gzip.GzipFile(fileobj=raw, mode="rb") as stream:
            yield cast("IO[bytes]", stream)
    else:
        decompressor = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
        with decompressor.stream_reader(raw, read_across_frames=True, closefd=False) as reader:
            yield cast("IO[bytes]", reader)


def extract(file: Path, *, workspace: Path, roots: Sequence[str], compression: str) -> None:
    """Bring back what is at or below the roots. Raises Failure, also for an archive that holds anything else."""
    try:
        with (
            file.open("rb") as raw,
            _decompressing(raw, compression) as stream,
            tarfile.open(fileobj=stream, mode="r|") as archive,
        ):
            _Extraction(archive, workspace=workspace, roots=roots).run()
    except (tarfile.TarError, gzip.BadGzipFile, EOFError, _zstd_error()) as problem:
        raise Failure(f"The cached archive cannot be read: {problem}") from problem


def _zstd_error() -> type[Exception]:
    return tarfile.TarError if zstandard is None else zstandard.ZstdError


class _Extraction:
    """Links are made last, so that nothing is written through one that the archive brought along."""

    def __init__(self, archive: tarfile.TarFile, *, workspace: Path, roots: Sequence[str]) -> None:
        self._archive = archive
        self._workspace = os.path.realpath(workspace)
        # A root that is a link means what it leads to as well: it was there before the archive.
        own = [os.path.join(os.path.realpath(os.path.dirname(root)), os.path.basename(root)) for root in roots]
        self._roots = list(dict.fromkeys([*map(os.path.normpath, own), *map(os.path.realpath, roots)]))
        self._links: list[tuple[str, str]] = []
        self._folders: list[tuple[str, float]] = []

    def run(self) -> None:
        for member in self._archive:
            self._extract(member)
        for path, target in self._links:
            self._link(path, target)
        # Last of all: what was put into a folder changed its time.
        for path, moment in reversed(self._folders):
            with contextlib.suppress(OSError):
                os.utime(path, (moment, moment))

    def _extract(self, member: tarfile.TarInfo) -> None:
        path = self._place(member.name)
        if member.issym():
            self._links.append((path, member.linkname))
            return
        # By hand, since the filters of tarfile came with Python 3.11.4. As its `data` filter has it: no owners, no
        # set-user bits, nothing that others may write, no devices.
        if member.isdir():
            os.makedirs(path, exist_ok=True)
            os.chmod(path, member.mode & 0o755 | 0o700)
            self._folders.append((path, float(member.mtime)))
            return
        _clear(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if member.islnk():
            os.link(self._place(member.linkname), path, follow_symlinks=False)
        elif (content := self._archive.extractfile(member)) is not None:
            with content, open(path, "xb") as target:
                shutil.copyfileobj(content, target, 1024 * 1024)
            os.chmod(path, member.mode & 0o755 | 0o600)
            os.utime(path, (member.mtime, member.mtime))
        else:
            raise Failure(f"the archive holds '{member.name[:200]}', which is no file, folder or link")

    def _place(self, name: str) -> str:
        """Where a member belongs. Raises Failure."""
        path = os.path.normpath(os.path.join(self._workspace, name))
        parent = os.path.realpath(os.path.dirname(path))
        real = os.path.join(parent, os.path.basename(path))
        if not any(_at_or_below(real, root) for root in self._roots):
            raise Failure(
                f"the archive holds '{name[:200]}', which is none of the cached paths here ({', '.join(self._roots)}). "
                "Was it saved on a runner whose work folder is another?"
            )
        return real

    def _link(self, path: str, target: str) -> None:
        if os.path.isdir(path) and not os.path.islink(path):
            raise Failure(f"'{path}' is a folder, and a link in the archive")
        self._place(path)
        _clear(path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        os.symlink(target, path)


def _at_or_below(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def _clear(path: str) -> None:
    """A file that may be read-only, or have other names, is replaced and not written into."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)

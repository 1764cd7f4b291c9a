"""What image do containers of a real engine get here? One made of this machine's own shell, so that none is fetched."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

PROGRAMS = ("sh", "sleep", "setsid", "cat")
_LIBRARY = re.compile(r"(/\S+) \(0x")


def root_archive() -> bytes:
    """A tar of a root folder in which a shell runs."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for folder in ("bin", "tmp", "run", "proc", "dev", "sys", "etc"):
            _add_folder(archive, folder)
        files: dict[str, Path] = {}
        for program in PROGRAMS:
            found = shutil.which(program)
            assert found, f"this machine has no {program}"
            files[f"bin/{program}"] = Path(found).resolve()
            for library in _libraries(found):
                files[library.lstrip("/")] = Path(library).resolve()
        for name, source in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            content = source.read_bytes()
            entry.size, entry.mode = len(content), 0o755
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def _add_folder(archive: tarfile.TarFile, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
    archive.addfile(entry)


def _libraries(program: str) -> list[str]:
    linked = subprocess.run(["ldd", program], capture_output=True, text=True, check=False)
    return _LIBRARY.findall(linked.stdout)

"""Where does the secret key come from that signs sessions and tasks?"""

import contextlib
import os
import secrets
from pathlib import Path


def load_secret_key(data_dir: Path) -> str:
    """The key in `data_dir`/secret_key, made on first use where `data_dir` exists and can be written.

    Never raises: settings must load on a read-only folder too (to say so in a sentence), where the key is a random
    one of this process. An unreadable key file gives such a key as well; `manage.py up` refuses to start on it.
    """
    path = data_dir / "secret_key"
    try:
        return _stored(path) or _created(path)
    except OSError:
        return secrets.token_urlsafe(48)


def _stored(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _created(path: Path) -> str:
    draft = path.with_name(f".secret_key.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(48) + "\n")
            file.flush()
            os.fsync(file.fileno())
        if path.exists():  # an empty file, as a crashed machine leaves it
            draft.replace(path)
        else:
            # link() fails where another process was first, so that all processes read one and the same key
            with contextlib.suppress(FileExistsError):
                os.link(draft, path)
        return _stored(path)
    finally:
        draft.unlink(missing_ok=True)

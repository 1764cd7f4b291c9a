"""How does the whole product start with one command?"""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from ci.management.data_folder import DataFolder
from ci.management.environment import load_again, server_environment
from ci.management.installation import Installation, Options
from ci.management.machine import check_address, check_git, cores
from ci.management.progress import Progress
from ci.management.start_errors import CannotContinue, CannotStart, StopRequested
from forge.session_names import name_sessions


class Command(BaseCommand):
    help = "Start everything: database, web, tasks, deadlines and runners. Ctrl-C stops all of it."
    # They look at folders that this command is about to make.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--data", type=Path, metavar="DIR", help="where everything is kept (default: ./data)")
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=_port, default=8000, help="port to listen on (default: %(default)s)")
        parser.add_argument(
            "--runners",
            type=_runners,
            default=max(1, min(4, cores())),
            metavar="N",
            help="runners to start on this machine (default: one a core, at most 4)",
        )
        parser.add_argument("--demo", action="store_true", help="push a sample repository and show its run")
        parser.add_argument("--demo-set", action="store_true", help="give twenty jobs to a runner set of at most four")
        parser.add_argument("--exit", action="store_true", help="with a demo: end with its run, 0 only on success")

    def handle(self, *args: Any, **given: Any) -> None:
        data: Path = given["data"] or settings.DATA_DIR
        options = Options(
            given["host"], given["port"], given["runners"], given["demo"], given["exit"], given["demo_set"]
        )
        sys.exit(run(DataFolder(data), options, Progress(sys.stdout)))


def run(folder: DataFolder, options: Options, progress: Progress) -> int:
    """The exit status: 0 stopped as asked, 1 broken later (or the demo's run failed), 2 not started."""
    try:
        if options.exit and not (options.demo or options.demo_set):
            raise CannotStart("--exit ends with the demo's run: give --demo or --demo-set as well.")
        if options.demo and options.demo_set:
            raise CannotStart("--demo and --demo-set are shown one at a time: leave one of them out.")
        if options.demo and not options.runners:
            raise CannotStart("--demo needs a runner: leave --runners out or give 1 or more.")
        git = check_git()
        folder.prepare()
        environment = server_environment(folder.path, options.host, options.port)
        folder.lock(f"process {os.getpid()} at {environment['FORGE_URL']}")
        folder.end_left_over_children()
        check_address(options.host, options.port)
        load_again(environment)
        name_sessions("up")
        return Installation(folder, options, progress).run(git)
    except CannotStart as error:
        return _explain(error, 2)
    except CannotContinue as error:
        return _explain(error, 1)
    except (StopRequested, KeyboardInterrupt):
        progress.say("Stopped.")
        return 1 if options.exit else 0


def _explain(error: Exception, status: int) -> int:
    print(error, file=sys.stderr)
    return status


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: give a number from 1 to 65535")
    return int(text)


def _runners(text: str) -> int:
    if not text.isdecimal() or int(text) > 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to 100")
    return int(text)

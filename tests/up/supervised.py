"""A supervisor over the commands given on the command line, as a process of its own: tests/up/test_supervise.py."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from ci.management.children import Program
from ci.management.data_folder import DataFolder
from ci.management.progress import Progress
from ci.management.start_errors import CannotContinue, StopRequested
from ci.management.supervisor import Supervisor


def main(data: Path, commands: list[str]) -> int:
    folder = DataFolder(data)
    folder.prepare()
    progress = Progress(sys.stdout)
    supervisor = Supervisor(folder, progress)
    try:
        with supervisor.running():
            for number, command in enumerate(commands):
                log = folder.logs / f"child-{number}.log"
                shell = ["/bin/sh", "-c", command]
                supervisor.add(
                    Program(f"child-{number}", shell, env=dict(os.environ), log=log, cwd=data, patience=(1, 1))
                )
            progress.say("all run")
            supervisor.watch()
    except StopRequested:
        return 0
    except CannotContinue as error:
        progress.say(str(error))
        return 1
    return 3


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))

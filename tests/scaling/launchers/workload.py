"""What does the test's stand-in for the runner do? Behaves as the variable WORKLOAD says.

Run as a program; with --work FOLDER like the runner, next to whose folder it tells what it sees of itself.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

MEMORY_MIB = 160
CHILD = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


def main() -> int:
    work = Path(sys.argv[sys.argv.index("--work") + 1])
    words = os.environ["WORKLOAD"].split()
    if words[0] == "long":
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        tell(work, [os.getpid()])
        time.sleep(600)
    if words[0] == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        tell(work, [os.getpid(), *(far_child(keep_mark=True), far_child(keep_mark=False))])
        time.sleep(600)
    if words[0] == "count":  # tells at SIGUSR2 how often it was asked to end
        asked, awaited = 0, {signal.SIGTERM, signal.SIGUSR2}
        # Kept until they are asked for: one that came just before a pause would not end it.
        signal.pthread_sigmask(signal.SIG_BLOCK, awaited)
        tell(work, [os.getpid()])
        while True:
            if signal.sigwait(awaited) == signal.SIGTERM:
                asked += 1
            else:
                print(f"asked {asked} times", flush=True)
    if words[0] == "leave":  # a child in the background outlives it
        tell(work.parent.parent / "left", [far_child(keep_mark=False)])
        return 0
    if words[0] == "memory":
        hoard = b"x" * (MEMORY_MIB * 1024 * 1024)
        time.sleep(600 + len(hoard) * 0)
    if words[0] == "signal":
        os.kill(os.getpid(), int(words[1]))
        time.sleep(600)
    if words[0] == "chatter":
        for number in range(int(words[1])):
            print(f"{number:08d} {'x' * 90}")
        print("the last words", flush=True)
        return 4
    if words[0] == "fail":
        print("connecting\n\nno route to host", file=sys.stderr)
    return int(words[1])


def far_child(*, keep_mark: bool) -> int:
    """A grandchild whose parent is gone, in a session of its own, without the environment where asked."""
    middle = (
        "import subprocess, sys; p = subprocess.Popen(sys.argv[1:], start_new_session=True, stdout=subprocess.PIPE,"
        "stderr=subprocess.DEVNULL); "
        "p.stdout.readline(); print(p.pid)"
    )
    env = os.environ if keep_mark else {"PATH": os.environ.get("PATH", "")}
    done = subprocess.run(
        [sys.executable, "-c", middle, sys.executable, "-c", CHILD], env=env, capture_output=True, text=True, check=True
    )
    return int(done.stdout)


def tell(work: Path, pids: list[int]) -> None:
    os.umask(mask := os.umask(0))
    seen = {"environment": dict(os.environ), "pids": pids, "umask": mask}
    draft = work.with_name(f"{work.name}-draft")
    draft.write_text(json.dumps(seen))
    draft.replace(work.with_name(f"{work.name}-seen.json"))


if __name__ == "__main__":
    sys.exit(main())

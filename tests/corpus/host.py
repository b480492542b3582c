# ruff: noqa: PTH100, PTH118, PTH120, PTH123 - as little as can be is imported before the program
"""Runs programs, each in a child of its own, after the framework has been imported once.

    python host.py FOLDER FRAMEWORK NAME…

Each program gets FOLDER/NAME for its shared directory and leaves there `out`, `err`, `status` (exit code) and `truth`.
Standard library only: it also runs in virtual environments that have nothing but the framework.
"""

import gc
import importlib
import json
import os
import signal
import sys
import time
import warnings

SECONDS = 900.0  # for one program, which takes one or two where nothing else runs
PROGRAMS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def main() -> None:
    folder, framework, *names = sys.argv[1:]
    for module in framework.split("+"):
        importlib.import_module(module)
    gc.freeze()  # or each child would look through all that was imported, and take it apart at its end
    for name in names:
        place = os.path.join(folder, name)
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            _become(name, place)
        status = _wait(pid)
        with open(os.path.join(place, "status"), "w") as file:
            file.write(str(os.waitstatus_to_exitcode(status)))


def _wait(pid: int) -> int:
    """The status of the child, which is killed if it takes too long."""
    deadline = time.monotonic() + SECONDS
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            return os.waitpid(pid, 0)[1]
        time.sleep(0.005)


def _become(name: str, place: str) -> None:
    """Run the program in this child, and end."""
    for number, stream in ((1, "out"), (2, "err")):
        os.dup2(os.open(os.path.join(place, stream), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
    if "RIGHTPOOL_SHARED_DIR" in os.environ:
        os.environ["RIGHTPOOL_SHARED_DIR"] = place
    counted: dict = {}

    def truth(**counts: object) -> None:
        """What the program has counted so far: `steps`, `samples`, `parameters` that are trained."""
        counted.update(counts)
        with open(os.path.join(place, "truth"), "w") as file:
            json.dump(counted, file)

    warnings.simplefilter("ignore")
    path = os.path.join(PROGRAMS, name + ".py")
    with open(path) as file:
        source = compile(file.read(), path, "exec")
    sys.argv = [path, place]
    sys.modules["__main__"].__dict__.update(__file__=path)
    scope = sys.modules["__main__"].__dict__
    scope["truth"] = truth
    exec(source, scope)
    sys.exit(0)


if __name__ == "__main__":
    main()

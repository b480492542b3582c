"""One command: its log, its status, and its end on a timeout or interrupt."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from devcluster import locks
from devcluster.processes import start_ticks
from tests.unit.suite.programs import SECONDS, hangs, python, says, stubborn
from tools.suite import children
from tools.suite.children import End


def stop_when(path: Path) -> threading.Event:
    """Set once the file is there."""
    stop = threading.Event()

    def look() -> None:
        while not path.exists():
            time.sleep(0.02)
        stop.set()

    threading.Thread(target=look, daemon=True).start()
    return stop


def test_status_and_output(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert children.run(says("first"), log, seconds=SECONDS)[:2] == (End.BY_ITSELF, 0)
    assert children.run(says("second", 3), log, seconds=SECONDS)[:2] == (End.BY_ITSELF, 3)
    assert log.read_text() == "first\nsecond\n"


def test_processor_time_is_that_of_the_command_and_its_children(tmp_path: Path) -> None:
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    waits = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    for program in (busy, waits):
        assert children.run(python(program), tmp_path / "log", seconds=SECONDS).cpu >= 0.5


def test_modules_are_compiled_once(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = python("import sys; print(sys.dont_write_bytecode)")
    children.run(command, tmp_path / "log", seconds=SECONDS, environment=environment)
    assert (tmp_path / "log").read_text() == "False\n"


def test_a_missing_program(tmp_path: Path) -> None:
    assert children.run(("/no/such/program",), tmp_path / "log", seconds=SECONDS)[:2] == (End.BY_ITSELF, 127)
    assert "/no/such/program: No such file" in (tmp_path / "log").read_text()


def test_a_hanging_command_is_interrupted(tmp_path: Path) -> None:
    log = tmp_path / "log"
    end, _, _ = children.run(hangs(tmp_path / "ready"), log, seconds=SECONDS, stop=stop_when(tmp_path / "ready"))
    assert end is End.INTERRUPTED
    assert log.read_text() == "torn down\n"


def test_a_command_that_says_nothing_is_ended(tmp_path: Path) -> None:
    end, status, _ = children.run(python("import time; time.sleep(600)"), tmp_path / "log", seconds=0.0, grace=SECONDS)
    assert end is End.SILENT
    assert status != 0


def test_a_command_has_no_more_time_than_it_is_given(tmp_path: Path) -> None:
    talks = python("import time\nwhile True: print('.', flush=True); time.sleep(0.01)")
    end, status, _ = children.run(talks, tmp_path / "log", seconds=SECONDS, most=0.5, grace=SECONDS)
    assert end is End.LATE
    assert status != 0


def test_a_command_that_goes_on_to_say_something_may_take_any_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For each dot nearly as long as the limit, on a clock of dots. They are in the log at once."""
    log = tmp_path / "log"
    clock = SimpleNamespace(monotonic=lambda: 0.9 * SECONDS * log.stat().st_size, sleep=time.sleep)
    monkeypatch.setattr(children, "time", clock)
    program = "import time\nfor _ in range(10):\n    time.sleep(0.2)\n    print('.', end='')"
    assert children.run(python(program), log, seconds=SECONDS).how is End.BY_ITSELF
    assert log.read_text() == 10 * "."


def test_a_command_that_ignores_interrupts_is_killed_with_its_children(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    end, status, _ = children.run(stubborn(pids), tmp_path / "log", seconds=SECONDS, stop=stop_when(pids), grace=0.2)
    assert (end, status) == (End.INTERRUPTED, -signal.SIGKILL)
    _, orphan = (int(word) for word in pids.read_text().split())
    deadline = time.monotonic() + SECONDS
    while start_ticks(orphan) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert start_ticks(orphan) is None


def test_a_command_ends_with_a_suite_that_is_killed(tmp_path: Path) -> None:
    """And the next suite waits for its end."""
    log, ready, lock = (tmp_path / name for name in ("log", "ready", "lock"))
    command = python(
        "import pathlib, time\n"
        "try:\n"
        f"    pathlib.Path({str(ready)!r}).touch()\n"
        "    time.sleep(600)\n"
        "finally:\n"
        "    time.sleep(2)\n"
        "    print('torn down', flush=True)\n"
    )
    program = (
        "import pathlib\n"
        "from devcluster import locks\n"
        "from tools.suite import children\n"
        f"with locks.held_by_name(pathlib.Path({str(lock)!r}), print):\n"
        f"    children.run({command!r}, pathlib.Path({str(log)!r}), seconds={SECONDS})\n"
    )
    suite = subprocess.Popen(python(program), env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    stop_when(ready).wait(SECONDS)
    suite.kill()
    suite.wait()
    with locks.held_by_name(lock, lambda _: None):
        assert log.read_text().startswith("torn down\n")


def test_children_can_be_interrupted_where_the_shell_ignores_it(tmp_path: Path) -> None:
    """A shell's background job ignores SIGINT, and its children inherit that."""
    asks = "import signal; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    program = (
        "import pathlib, signal\n"
        "from tools.suite import __main__ as suite\n"
        "from tools.suite.parts import Lane, Part\n"
        f"suite.LANES = (Lane((Part('one', ((__import__('sys').executable, '-c', {asks!r}),)),)),)\n"
        f"suite.FOLDER = pathlib.Path({str(tmp_path)!r})\n"
        "raise SystemExit(suite.main())\n"
    )
    done = subprocess.run(
        ["sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.splitlines()[-1] == "1 passed, 0 failed", done.stdout + done.stderr
    assert (tmp_path / "one.log").read_text().splitlines()[-1] == "True"

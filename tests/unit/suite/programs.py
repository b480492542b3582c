"""Small programs that behave like tests: they pass, fail, hang, and leave processes behind."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.patience import PATIENCE
from tools.suite.parts import Command

SECONDS = PATIENCE


def python(program: str) -> Command:
    return (sys.executable, "-c", program)


def says(text: str, status: int = 0) -> Command:
    return python(f"print({text!r}); raise SystemExit({status})")


def hangs(ready: Path) -> Command:
    """A program that runs until it is interrupted."""
    return python(
        "import pathlib, time\n"
        "try:\n"
        f"    pathlib.Path({str(ready)!r}).touch()\n"
        "    time.sleep(600)\n"
        "except KeyboardInterrupt:\n"
        "    print('torn down', flush=True)\n"
    )


def stubborn(pids: Path) -> Command:
    """A program that ignores interrupts, with a child in another session that ignores them too."""
    return python(
        "import os, pathlib, signal, subprocess, sys, time\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'], start_new_session=True)\n"
        f"path = pathlib.Path({str(pids)!r})\n"
        "path.with_suffix('.new').write_text(f'{os.getpid()} {child.pid}')\n"
        "path.with_suffix('.new').rename(path)\n"
        "time.sleep(600)\n"
    )

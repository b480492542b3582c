"""The command line: `rightpool COMMAND`, also as `kubectl rightpool COMMAND`.

Nearly everything is imported only by `main`, so that an interrupt meanwhile ends the command as any other does.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

# Of what is read of a fleet next to nothing is garbage in circles. With Python's own thresholds, looking for it takes a
# fifth of `top` at 1,000 jobs, and a third of a first plan of 10,000.
_THRESHOLDS = (50_000, 20, 100)
_INTERRUPTED = 130
_MOMENT = 0.01  # seconds


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the exit status: 0 success, 1 error, 2 wrong arguments, 130 interrupted."""
    gc.set_threshold(*_THRESHOLDS)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # else it reads the metadata of every package there is
    try:
        from rightpool.cli.commands import run_command

        return run_command(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return _INTERRUPTED


def entry_point() -> None:
    """Run a command as this process, and end with its exit status."""
    sys.unraisablehook = _interrupt_again
    status = main()
    import signal  # not before `main`

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # an interrupt of what Python does at its end prints no traceback
    if status == _INTERRUPTED:
        # Where KeyboardInterrupt has passed through `exec` of a text, by which dataclasses are made, `python -m` ends
        # itself by SIGINT whatever the exit status, although the exception was caught.
        os._exit(status)
    sys.exit(status)


def _interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Where an interrupt comes within the callback of a weak reference, as imports have them, Python prints and ignores
    it. It is sent again, a moment later."""
    if ignored.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(ignored)
        return
    import signal
    import threading

    again = threading.Timer(_MOMENT, signal.pthread_kill, (threading.main_thread().ident, signal.SIGINT))
    again.daemon = True
    again.start()


if __name__ == "__main__":
    entry_point()

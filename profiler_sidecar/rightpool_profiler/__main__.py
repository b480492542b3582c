"""`python3 -m rightpool_profiler install` (init container), `run` (sidecar), and `trace ID`, by which the command line
reads the traces that are kept; with `xspace` behind it, what XLA has written."""

import asyncio
import os
import sys
from pathlib import Path

from rightpool import contract

_USAGE = "usage: python3 -m rightpool_profiler install|run|trace ID [xspace]"


def main(arguments: list[str]) -> int:
    """Run a command; the exit status."""
    if arguments == ["install"]:
        from rightpool_profiler.install import install

        try:
            install(Path(os.environ.get(contract.ENV_SHARED_DIR) or contract.SHARED_DIR))
        except OSError as error:
            # A failed init container would prevent the user's program from starting. Without the agent it is only not
            # measured.
            print(f"rightpool_profiler: the agent is not installed: {error}", file=sys.stderr)
        return 0
    if arguments == ["run"]:
        from rightpool_profiler.sidecar import Settings, run

        try:
            settings = Settings.read(os.environ)
        except ValueError as error:
            print(f"rightpool_profiler: {error}", file=sys.stderr)
            return 2
        asyncio.run(run(settings))
        return 0
    if arguments[:1] == ["trace"] and (len(arguments) == 2 or arguments[2:] == ["xspace"]):
        from rightpool_profiler.traces.kept import Kept

        kept = Kept(Path(os.environ.get(contract.ENV_KEPT_DIR) or contract.KEPT_DIR))
        return kept.send(arguments[1], sys.stdout.buffer, of_xla=len(arguments) == 3)
    print(_USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""`python3 -m rightpool_profiler install` (init container) and `run` (sidecar)."""

import asyncio
import os
import sys
from pathlib import Path

from rightpool import contract

_USAGE = "usage: python3 -m rightpool_profiler install|run"


def main(arguments: list[str]) -> int:
    """The process' exit code."""
    if arguments == ["install"]:
        from rightpool_profiler.install import install

        try:
            install(Path(os.environ.get(contract.ENV_SHARED_DIR) or contract.SHARED_DIR))
        except OSError as error:
            # An init container that fails keeps the user's program from starting; without the agent it only goes
            # unmeasured.
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
    print(_USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""The in-process agent: observes the steps of an unmodified PyTorch or JAX program and reports to the sidecar.

Standard library only, any Python from 3.9. Three rules prevent any effect on the program:

- nothing runs until the program has imported its framework by itself, and no thread starts before its first step;
- what runs inside a step is a few C calls that cannot fail, everything else runs on the agent's own thread;
- every error ends in silence: the agent stops, the program goes on.
"""

from __future__ import annotations

import os

_PRODUCT = "RIGHTPOOL_"


def start() -> None:
    """Wait for the program to import a framework. Does nothing without the operator's environment."""
    if any(name.startswith(_PRODUCT) for name in os.environ):
        from . import imports

        imports.watch()

"""Starts the profiler's agent inside the user's Python, then steps aside as if this file had never been here.

Python imports `sitecustomize` before the program. The agent's directory is first on PYTHONPATH, so this one is found;
whatever it shadowed is run afterwards. The directory is taken off `sys.path` again so that nothing of the agent can
shadow a module of the program.
"""

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))

try:
    import rightpool_agent

    rightpool_agent.start()
except Exception:
    pass

sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or os.getcwd()) != _here]

import importlib._bootstrap as _bootstrap  # noqa: E402
import importlib._bootstrap_external as _external  # noqa: E402

_shadowed = _external.PathFinder.find_spec("sitecustomize", sys.path)
if _shadowed is None or _shadowed.loader is None:
    # The interpreter would raise this without the agent; `site` ignores exactly this error.
    raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
_module = _bootstrap.module_from_spec(_shadowed)
sys.modules["sitecustomize"] = _module
_shadowed.loader.exec_module(_module)  # errors of the user's module are shown as such

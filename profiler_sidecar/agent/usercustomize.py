"""Starts the profiler's agent inside the user's Python, then restores the original user base.

PYTHONUSERBASE leads Python here if PYTHONPATH can't be set: the image may set it, which the pod template does not
show. Python imports `usercustomize` before the program. Then the user base is restored: packages that the image
installed with `pip install --user` are found in their place, and a `usercustomize` among them is run.
"""

import os
import site
import sys

_here = os.path.dirname(os.path.abspath(__file__))

try:
    # <shared>/userbase/lib/python3.N/site-packages → <shared>/agent
    _shared = os.path.normpath(os.path.join(_here, *[os.pardir] * 4))
    sys.path.insert(0, os.path.join(_shared, "agent"))
    try:
        import rightpool_agent

        rightpool_agent.start()
    finally:
        del sys.path[0]
except Exception:
    pass

try:
    _base = os.environ.pop("PYTHONUSERBASE", None)
    try:
        site.USER_BASE = site.USER_SITE = None
        _users = site.getusersitepackages()
    finally:
        if _base is not None:  # the program's children get the agent too
            os.environ["PYTHONUSERBASE"] = _base
    _place = next((i for i, entry in enumerate(sys.path) if os.path.abspath(entry) == _here), None)
    if _place is not None:
        del sys.path[_place]
        if os.path.isdir(_users):
            _before = list(sys.path)
            site.addsitedir(_users)
            _added = [entry for entry in sys.path if entry not in _before]
            sys.path[:] = _before[:_place] + _added + _before[_place:]
except Exception:
    pass

import importlib._bootstrap as _bootstrap  # noqa: E402
import importlib._bootstrap_external as _external  # noqa: E402

_shadowed = _external.PathFinder.find_spec("usercustomize", sys.path)
if _shadowed is None or _shadowed.loader is None:
    # The interpreter would raise this without the agent; `site` ignores exactly this error.
    raise ImportError("No module named 'usercustomize'", name="usercustomize")
_module = _bootstrap.module_from_spec(_shadowed)
sys.modules["usercustomize"] = _module
_shadowed.loader.exec_module(_module)  # errors of the user's module are shown as such

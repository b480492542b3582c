"""Installs the agent in the shared directory, in the pod's init container.

Python finds the agent through PYTHONPATH or PYTHONUSERBASE. The latter has a folder for each Python version, and the
version of the user's image is not known here, so a folder is created for each supported version.

The user's container may run as any user, so directories are open to all and files are readable by all. NVIDIA's
`pynvml`, one file, is copied beside the agent if the image has it.
"""

import importlib.util
import os
import shutil
from pathlib import Path

from rightpool import contract

_NEWEST_MINOR = 16
_FREE_THREADED_SINCE = 13
_SOURCE = Path(__file__).resolve().parent.parent / "agent"


def install(shared: Path, source: Path = _SOURCE) -> None:
    """Copy the agent to `shared`, and create the directories that agent and sidecar share."""
    target = shared / Path(contract.AGENT_DIR).name
    package = target / "rightpool_agent"
    package.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / "sitecustomize.py", target / "sitecustomize.py")
    for module in (source / "rightpool_agent").glob("*.py"):
        shutil.copyfile(module, package / module.name)
    nvml = importlib.util.find_spec("pynvml")
    if nvml is not None and nvml.origin is not None:
        shutil.copyfile(nvml.origin, package / "pynvml.py")
    for path in (target, package, *target.glob("*.py"), *package.glob("*.py")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    _lay_user_base(shared / Path(contract.USER_BASE_DIR).name, source / "usercustomize.py")
    for name in (contract.COMMAND_DIR, contract.TRACE_DIR):
        directory = shared / Path(name).name
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
    if shared.stat().st_uid == os.getuid():
        shared.chmod(0o777)


def _lay_user_base(base: Path, hook: Path) -> None:
    versions = [f"python3.{minor}" for minor in range(8, _NEWEST_MINOR + 1)]
    versions += [f"python3.{minor}t" for minor in range(_FREE_THREADED_SINCE, _NEWEST_MINOR + 1)]
    for version in versions:
        folder = base / "lib" / version / "site-packages"
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(hook, folder / "usercustomize.py")
    for path in (base, *base.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)

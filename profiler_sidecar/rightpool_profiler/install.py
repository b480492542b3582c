"""Lays the agent out in the shared directory: what the pod's init container does.

The user's container may run as any user, so directories are open to all and files are readable by all. NVIDIA's
`pynvml`, one file, is copied beside the agent if the image has it.
"""

import importlib.util
import os
import shutil
from pathlib import Path

from rightpool import contract

_SOURCE = Path(__file__).resolve().parent.parent / "agent"


def install(shared: Path, source: Path = _SOURCE) -> None:
    """Copy the agent to `shared` and make the directories that the parts meet in."""
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
    for name in (contract.COMMAND_DIR, contract.TRACE_DIR):
        directory = shared / Path(name).name
        directory.mkdir(exist_ok=True)
        directory.chmod(0o777)
    if shared.stat().st_uid == os.getuid():
        shared.chmod(0o777)

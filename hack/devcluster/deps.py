"""Debian packages: the programs that a container node needs and that are not built from Go modules, and Prometheus."""

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from devcluster.progress import Progress
from devcluster.spec import DevclusterError

APT_SECONDS: Final = 1800
CNI_DIR: Final = Path("/usr/lib/cni")
SBIN: Final = ("/usr/local/sbin", "/usr/sbin", "/sbin")  # often not in PATH, and the only place of iptables
_POLICY: Final = Path("/usr/sbin/policy-rc.d")


@dataclass(frozen=True)
class Dependency:
    package: str
    program: str  # the program is checked, not the package: it may come from elsewhere
    why: str
    root_only: bool = True

    def present(self) -> bool:
        return find(self.program) is not None


DEPENDENCIES: Final = (
    Dependency("openssl", "openssl", "certificates", root_only=False),
    Dependency("prometheus", "prometheus", "metrics", root_only=False),
    Dependency("runc", "runc", "runs containers"),
    Dependency("containernetworking-plugins", str(CNI_DIR / "bridge"), "pod networking"),
    Dependency("iptables", "iptables", "Services"),
    Dependency("iproute2", "ip", "network namespaces"),
    Dependency("mmdebstrap", "mmdebstrap", "the base layer of images"),
)


def search_path() -> str:
    return os.pathsep.join((os.environ.get("PATH", os.defpath), *SBIN))


def find(program: str) -> str | None:
    return shutil.which(program, path=search_path())


def missing(*, root: bool) -> list[Dependency]:
    return [one for one in DEPENDENCIES if (root or not one.root_only) and not one.present()]


def require(*, root: bool) -> None:
    absent = missing(root=root)
    if absent:
        raise DevclusterError(f"{describe(absent)}\n`python -m devcluster deps` as root installs them on Debian.")


def describe(absent: list[Dependency]) -> str:
    lines = [f"  {one.program} ({one.why}): Debian package {one.package}" for one in absent]
    return "\n".join(["missing on this machine:", *lines])


def install(progress: Progress) -> None:
    absent = missing(root=True)
    if not absent:
        progress.say("every program is there")
        return
    packages = [one.package for one in absent]
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        reason = "only root can install packages" if os.geteuid() != 0 else "there is no apt-get here"
        hint = f"with Debian or Ubuntu, as root: apt-get install --no-install-recommends {' '.join(packages)}"
        raise DevclusterError(f"{describe(absent)}\n{reason}; {hint}")
    with _no_service_start():
        for arguments in (["update", "-q"], ["install", "-q", "-y", "--no-install-recommends", *packages]):
            progress.say(f"apt-get {' '.join(arguments)}")
            _apt_get(arguments)
    still = missing(root=True)
    if still:
        raise DevclusterError(f"installed, and yet {describe(still)}")


def _apt_get(arguments: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        result = subprocess.run(
            ["apt-get", *arguments], env=environment, capture_output=True, text=True, timeout=APT_SECONDS
        )
    except subprocess.TimeoutExpired:
        raise DevclusterError(f"apt-get {arguments[0]} took more than {APT_SECONDS} s") from None
    if result.returncode != 0:
        raise DevclusterError(f"apt-get {arguments[0]} failed:\n{(result.stdout + result.stderr)[-2000:]}")


@contextlib.contextmanager
def _no_service_start() -> Iterator[None]:
    """Keep Debian's prometheus package from starting a service. An existing policy is not changed."""
    if _POLICY.exists():
        yield
        return
    _POLICY.write_text("#!/bin/sh\nexit 101\n")
    _POLICY.chmod(0o755)
    try:
        yield
    finally:
        _POLICY.unlink(missing_ok=True)

"""Images for the container node, loaded from tar files because there is no registry.

The base layer (Debian with Python) is built once per user; each image adds only its own files.
"""

import hashlib
import os
import subprocess
import tarfile
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Final

from devcluster import build, deps, locks, oci
from devcluster.node import PAUSE_IMAGE
from devcluster.progress import Progress
from devcluster.spec import Cluster, DevclusterError, cache_home

SUITE: Final = "bookworm"
PACKAGES: Final = ("python3-minimal", "libpython3-stdlib", "ca-certificates")
LIBRARY: Final = "libpython3.11"
_TRIPLE: Final = "x86_64-linux-gnu"
BASE_SECONDS: Final = 1800
IMPORT_SECONDS: Final = 1800
# Files that no program in a container needs. Package managers are removed too: nothing is installed later.
_STRIPPED: Final = (
    "usr/share/doc",
    "usr/share/man",
    "usr/share/info",
    "usr/share/locale",
    "usr/share/i18n",
    "usr/share/lintian",
    "usr/share/bash-completion",
    "usr/share/bug",
    "usr/share/perl",
    "usr/share/perl5",
    "usr/share/keyrings",
    "usr/lib/apt",
    "usr/lib/dpkg",
    "usr/lib/systemd",
    "usr/lib/udev",
    "usr/lib/x86_64-linux-gnu/gconv",
    "usr/lib/x86_64-linux-gnu/perl",
    "usr/lib/x86_64-linux-gnu/perl-base",
    "usr/lib/x86_64-linux-gnu/security",
    "usr/lib/python3.11/ensurepip",
    "usr/lib/python3.11/idlelib",
    "usr/lib/python3.11/lib2to3",
    "usr/lib/python3.11/pydoc_data",
    "usr/lib/python3.11/test",
    "var/cache",
    "var/lib/apt",
    "var/lib/systemd",
    "var/log",
    "boot",
    "dev",
    "home",
    "media",
    "mnt",
    "opt",
    "srv",
)
_STRIPPED_PROGRAMS: Final = ("perl", "apt", "dpkg", "debconf", "update-alternatives", "deb-systemd")
_STRIPPED_LIBRARIES: Final = (
    "libapt-",
    "libdb-5",
    "libsystemd",
    "libgnutls",
    "libperl",
    "libxxhash",
    "libp11-kit",
    "libunistring",
)


def load(cluster: Cluster, files: Iterable[Path]) -> list[str]:
    """Import image tars and return the names of their images. An existing name then refers to the new image.

    Names by digest are added too, because the kubelet looks an image up by the exact reference of the pod.
    """
    loaded: list[str] = []
    for path in files:
        loaded += oci.names_in(path)
        _ctr(cluster, "images", "import", "--local", str(path))
        for name, pinned in oci.pinned_names_in(path).items():
            _ctr(cluster, "images", "tag", "--force", name, pinned)
    return loaded


def names(cluster: Cluster) -> list[str]:
    """Names of images, without the digests that the container runtime lists as names."""
    return [name for name in _ctr(cluster, "images", "ls", "-q").split() if "sha256:" not in name]


def _ctr(cluster: Cluster, *arguments: str) -> str:
    if os.geteuid() != 0:
        raise DevclusterError("images need the container node, and the container node needs root")
    command = [build.binary("ctr"), "--address", str(cluster.containerd_socket), "--namespace", "k8s.io", *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=IMPORT_SECONDS)
    except subprocess.TimeoutExpired:
        log = cluster.logs / "containerd.log"
        raise DevclusterError(f"containerd did not finish within {IMPORT_SECONDS} s; its log: {log}") from None
    if result.returncode != 0:
        raise DevclusterError(f"ctr {' '.join(arguments[:2])}: {result.stderr.strip()}")
    return result.stdout


def ensure_pause(cluster: Cluster) -> bool:
    """Make sure that the sandbox image is loaded. Returns whether it had to be imported."""
    if PAUSE_IMAGE in names(cluster):
        return False
    archive = build.bin_dir() / "pause.tar"
    with locks.held(build.bin_dir() / ".pause.lock"):
        if not archive.exists():
            layer = oci.layer_from_files({"/pause": Path(build.binary("pause"))}, executable=["/pause"])
            oci.write_image(archive, PAUSE_IMAGE, [layer], oci.ImageConfig(user="65535:65535", entrypoint=["/pause"]))
    load(cluster, [archive])
    return True


def base_rootfs(progress: Progress | None = None) -> oci.Layer:
    """Debian with Python and certificates, stripped, as the lowest layer of an image. Cached per user."""
    made_of = (SUITE, PACKAGES, _STRIPPED, _STRIPPED_PROGRAMS, _STRIPPED_LIBRARIES, "byte code of sources at time 0")
    return _cached(
        f"base-{SUITE}", made_of, lambda scratch: _debian(scratch, "minbase", PACKAGES, _wanted), "base layer", progress
    )


def python_library(progress: Progress | None = None) -> oci.Layer:
    """Python as a library, which programs need that have it in them. Cached per user."""
    return _cached(
        f"libpython-{SUITE}",
        (SUITE, LIBRARY),
        lambda scratch: _debian(scratch, "extract", (LIBRARY,), lambda entry: f"lib/{_TRIPLE}/{LIBRARY}" in entry.name),
        "layer of Python's library",
        progress,
    )


def _cached(
    name: str, made_of: object, make: Callable[[Path], oci.Layer], what: str, progress: Progress | None
) -> oci.Layer:
    folder = cache_home() / "images"
    stem = f"{name}-{hashlib.sha256(repr(made_of).encode()).hexdigest()[:12]}"
    blob, diff_id = folder / f"{stem}.tar.gz", folder / f"{stem}.diff-id"
    if not diff_id.exists():
        with locks.held(folder / ".lock"):
            if not diff_id.exists():
                (progress or Progress()).say(f"making the {what} from Debian {SUITE} (about 1 min, once)")
                layer = make(folder / f".{stem}.tar")
                blob.write_bytes(layer.blob)
                diff_id.write_text(layer.diff_id)  # written last: if it exists, the blob is complete
    return oci.Layer(blob.read_bytes(), diff_id.read_text())


def _debian(
    scratch: Path, variant: str, packages: Collection[str], keep: Callable[[tarfile.TarInfo], bool]
) -> oci.Layer:
    program = deps.find("mmdebstrap")
    if program is None:
        raise DevclusterError("mmdebstrap is missing; `python -m devcluster deps` as root installs it on Debian")
    log = scratch.with_suffix(".log")
    command = [program, f"--variant={variant}", f"--include={','.join(packages)}", SUITE, str(scratch)]
    try:
        with log.open("w") as output:
            result = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=BASE_SECONDS)
    except subprocess.TimeoutExpired:
        raise DevclusterError(f"mmdebstrap took more than {BASE_SECONDS} s; see {log}") from None
    if result.returncode != 0:
        raise DevclusterError(f"mmdebstrap failed; {log} says:\n{log.read_text()[-2000:]}")
    layer = oci.layer_from_tar(scratch, keep=keep)
    scratch.unlink()
    return layer


def _wanted(entry: tarfile.TarInfo) -> bool:
    name = entry.name.removeprefix("./").rstrip("/")
    if entry.ischr() or entry.isblk():
        return False
    if any(name == prefix or name.startswith(prefix + "/") for prefix in _STRIPPED):
        return entry.isdir() and name in ("var/log", "var/cache", "dev", "home")  # expected to exist, empty
    folder, _, base = name.rpartition("/")
    if folder in ("usr/bin", "usr/sbin", "bin", "sbin") and base.startswith(_STRIPPED_PROGRAMS):
        return False
    if folder == "var/lib/dpkg/info":
        return False
    return not base.startswith(_STRIPPED_LIBRARIES)

"""The project's images, built without Docker: `python -m devcluster.recipes DIR [NAME…]`.

Each has the content of its Dockerfile, from the same lock: the base layer, the packages of the lock, the project's
files. Layers are reproducible, so an image with unchanged files keeps its digest. NAME.cdx.json lists the content of an
image; values.yaml pins the chart to all of them: helm install --values values.yaml.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from devcluster import bytecode, images, locks, oci, sbom
from devcluster.progress import Progress
from devcluster.spec import DevclusterError, cache_home

ROOT: Final = Path(__file__).resolve().parents[2]
REGISTRY: Final = "docker.io/"
VERSION: Final = "0.1.0"
INSTALL_SECONDS: Final = 1800
VALUES: Final = "values.yaml"
PACKAGES_DIR: Final = "/packages"
OPERATOR_ENVIRONMENT: Final = {
    "OPENBLAS_NUM_THREADS": "1",
    "MALLOC_MMAP_THRESHOLD_": "2097152",
    "MALLOC_TRIM_THRESHOLD_": "2097152",
}
"""What its Dockerfile sets beside what all images have. It says why."""
PROFILER_LOCK: Final = ROOT / "profiler_sidecar" / "requirements.lock"
# Files of wheels that no program imports.
_UNUSED_DIRS: Final = ("tests", "test", "__pycache__")
_UNUSED_SUFFIXES: Final = (".pyi", ".pyx", ".pxd", ".c", ".h", ".hpp", ".a")


@dataclass(frozen=True)
class Built:
    """An image as a tar file, with its manifest's digest."""

    archive: Path
    digest: str


@dataclass(frozen=True)
class Recipe:
    """name: as pods write it in `image:`. limit: most bytes of the compressed image. files: path in the image → file.

    lock: of the packages that are a layer of their own.
    """

    name: str
    lock: Path
    files: Callable[[], dict[str, bytes | Path]]
    config: oci.ImageConfig
    limit: int

    @property
    def short(self) -> str:
        """rightpool/operator → operator."""
        return self.name.partition(":")[0].rpartition("/")[2]


def _python_files(folder: Path, target: str) -> dict[str, bytes | Path]:
    files = sorted(p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
    return {f"{target}/{p.relative_to(folder).as_posix()}": p for p in files}


def _compiled(files: dict[str, bytes | Path]) -> dict[str, bytes | Path]:
    """The files, and the byte code of those that are modules."""
    sources = {name.lstrip("/"): source for name, source in files.items() if isinstance(source, Path)}
    return files | {f"/{name}": code for name, code in bytecode.of(sources, "/").items()}


def _operator_files() -> dict[str, bytes | Path]:
    return _compiled(_python_files(ROOT / "operator" / "rightpool", "/app/rightpool"))


def _profiler_files() -> dict[str, bytes | Path]:
    files = _python_files(ROOT / "profiler_sidecar" / "rightpool_profiler", "/app/rightpool_profiler")
    contract = ROOT / "operator" / "rightpool"
    files |= {f"/app/rightpool/{name}": contract / name for name in ("__init__.py", "contract.py")}
    # The agent runs in the user's Python without the sidecar's packages, so NVML's single file is installed beside it.
    files["/app/pynvml.py"] = packages(PROFILER_LOCK) / "pynvml.py"
    return _compiled(files) | _python_files(ROOT / "profiler_sidecar" / "agent", "/app/agent")


def _training_files() -> dict[str, bytes | Path]:
    return {"/app/train_jax.py": ROOT / "examples" / "training" / "train_jax.py"}


def _xprof_files() -> dict[str, bytes | Path]:
    return {"/usr/bin/xprof": ROOT / "examples" / "xprof" / "xprof"}


def _config(*entrypoint: str, **environment: str) -> oci.ImageConfig:
    return oci.ImageConfig(
        user="65532:65532",
        environment={
            "PATH": "/usr/bin:/bin",
            "PYTHONPATH": f"/app:{PACKAGES_DIR}",
            "PYTHONUNBUFFERED": "1",
            "PYTHONDONTWRITEBYTECODE": "1",
            **environment,
        },
        entrypoint=entrypoint,
        working_dir="/app",
    )


RECIPES: Final = (
    Recipe(
        f"rightpool/operator:{VERSION}",
        ROOT / "operator" / "requirements.lock",
        _operator_files,
        _config("python3", "-m", "rightpool.cli.main", **OPERATOR_ENVIRONMENT),
        150 * 10**6,
    ),
    Recipe(
        f"rightpool/profiler:{VERSION}",
        PROFILER_LOCK,
        _profiler_files,
        _config("python3", "-m", "rightpool_profiler", "run"),
        40 * 10**6,
    ),
    Recipe(
        f"rightpool/example-training:{VERSION}",
        ROOT / "examples" / "training" / "requirements.lock",
        _training_files,
        _config("python3", "/app/train_jax.py"),
        400 * 10**6,
    ),
    Recipe(
        f"rightpool/xprof:{VERSION}",
        ROOT / "examples" / "xprof" / "requirements.lock",
        _xprof_files,
        # It keeps answers in a folder that it names after the user, who has no name here.
        _config("xprof", USER="xprof"),
        150 * 10**6,
    ),
)


def packages(lock: Path) -> Path:
    """The packages of a lock, installed and compiled for the image's Python, cached by the lock's content."""
    compiled = f"{sys.implementation.cache_tag} without {bytecode.UNCOMPILED}"
    key = hashlib.sha256(lock.read_bytes() + compiled.encode()).hexdigest()[:16]
    target = cache_home() / "images" / f"packages-{key}"
    with locks.held(target.with_name(f".{target.name}.lock")):
        if not target.is_dir():
            _install(lock, target)
    return target


def _install(lock: Path, target: Path) -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
    if uv is None:
        raise DevclusterError("uv is missing in the virtual environment; `make images` puts it there")
    scratch = Path(tempfile.mkdtemp(dir=target.parent, prefix=".packages-"))
    command = [uv, "pip", "install", "--quiet", "--target", str(scratch), "--python-version", "3.11"]
    command += ["--python-platform", "x86_64-manylinux_2_36", "--only-binary", ":all:"]  # Debian 12
    result = subprocess.run(
        [*command, "--no-deps", "--require-hashes", "-r", str(lock)],
        capture_output=True,
        text=True,
        timeout=INSTALL_SECONDS,
    )
    if result.returncode != 0:
        shutil.rmtree(scratch)
        which = f"{lock.parent.name}/{lock.name}"
        raise DevclusterError(f"the packages of {which} can't be installed:\n{result.stderr.strip()}")
    for path in sorted(scratch.rglob("*"), reverse=True):
        if path.is_dir() and path.name in _UNUSED_DIRS and "testing" not in path.parts:
            shutil.rmtree(path)
        elif path.is_file() and path.suffix in _UNUSED_SUFFIXES:
            path.unlink()
    (scratch / ".lock").unlink(missing_ok=True)
    bytecode.add(scratch, PACKAGES_DIR)
    scratch.chmod(0o755)
    scratch.rename(target)


def package_layer(lock: Path) -> oci.Layer:
    """The layer of a lock's packages. It is cached, because compressing 200 MB takes half a minute."""
    folder = packages(lock)
    blob, diff_id = folder.with_suffix(".tar.gz"), folder.with_suffix(".diff-id")
    with locks.held(folder.with_name(f".{folder.name}.layer.lock")):
        if not diff_id.exists():
            layer = oci.layer_from_files({PACKAGES_DIR: folder})
            blob.write_bytes(layer.blob)
            diff_id.write_text(layer.diff_id)  # written last: if it exists, the blob is complete
    return oci.Layer(blob.read_bytes(), diff_id.read_text())


def contents(recipe: Recipe, base: bytes) -> list[sbom.Package]:
    """Every package in the image. base: its lowest layer."""
    return [*sbom.installed(base, images.SUITE), *sbom.locked(recipe.lock.read_text())]


def build(recipe: Recipe, folder: Path, progress: Progress) -> Built:
    """Write the image and the list of its content to `folder`. Raises DevclusterError if it exceeds its limit."""
    progress.say(f"assembling {recipe.name}")
    layers = [images.base_rootfs(progress), package_layer(recipe.lock), oci.layer_from_files(recipe.files())]
    size = sum(len(layer.blob) for layer in layers)
    if size > recipe.limit:
        raise DevclusterError(f"{recipe.name} has {size / 1e6:.0f} MB, and may have {recipe.limit / 1e6:.0f}")
    folder.mkdir(parents=True, exist_ok=True)
    target = folder / f"{recipe.short}.tar"
    digest = oci.write_image(target, REGISTRY + recipe.name, layers, recipe.config)
    bill = sbom.document(recipe.name.partition(":")[0], VERSION, digest, contents(recipe, layers[0].blob))
    sbom.write(folder / f"{recipe.short}.cdx.json", bill)
    progress.say(f"{recipe.name}: {size / 1e6:.1f} MB compressed, {digest}")
    return Built(target, digest)


def build_all(names: Collection[str], folder: Path, progress: Progress) -> dict[str, Built]:
    """The named images, and the chart's values that pin them."""
    built = {recipe.short: build(recipe, folder, progress) for recipe in RECIPES if recipe.short in names}
    (folder / VALUES).write_text(yaml.safe_dump(pins({name: image.digest for name, image in built.items()})))
    return built


def pins(digests: Mapping[str, str]) -> dict[str, Any]:
    """Values of the chart that name these of its images by digest."""
    values: dict[str, Any] = {}
    if "operator" in digests:
        values["image"] = {"digest": digests["operator"]}
    if "profiler" in digests:
        values["sidecar"] = {"image": {"digest": digests["profiler"]}}
    return values


def main() -> int:
    """Build the named images, or all."""
    parser = argparse.ArgumentParser(prog="devcluster.recipes", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", choices=[[], *(recipe.short for recipe in RECIPES)])
    options = parser.parse_args()
    progress = Progress()
    try:
        build_all(options.names or [recipe.short for recipe in RECIPES], options.folder, progress)
    except DevclusterError as error:
        print(f"images: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

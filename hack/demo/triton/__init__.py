"""The image of a real Triton Inference Server: the binary of NVIDIA's wheel, without CUDA, and a model in Python."""

from pathlib import Path
from typing import Final

from devcluster import images, oci, recipes
from devcluster.progress import Progress

IMAGE: Final = "rightpool/demo-triton:0.1.0"
HERE: Final = Path(__file__).parent
LOCK: Final = HERE / "requirements.lock"
_TRITON: Final = Path("pytriton", "tritonserver")
_PYTHON: Final = "3.11"


def build(folder: Path, progress: Progress) -> Path:
    """The image as a tar file."""
    progress.say(f"assembling {IMAGE}")
    packages, home = recipes.packages(LOCK), Path(recipes.PACKAGES_DIR) / _TRITON
    stub = "triton_python_backend_stub"
    files: dict[str, bytes | Path] = {
        # It is looked for beside the backend, and the wheel has one for each Python.
        f"{home}/backends/python/{stub}": packages / _TRITON / "python_backend_stubs" / _PYTHON / stub,
        # The stub takes no PYTHONPATH.
        "/usr/lib/python3/dist-packages/packages.pth": f"{recipes.PACKAGES_DIR}\n".encode(),
        "/models/ranker/config.pbtxt": HERE / "config.pbtxt",
        "/models/ranker/1/model.py": HERE / "model.py",
    }
    layers = [
        images.base_rootfs(progress),
        images.python_library(progress),
        recipes.package_layer(LOCK),
        oci.layer_from_files(files),
    ]
    config = oci.ImageConfig(
        user="65532:65532",
        environment={"PATH": "/usr/bin:/bin", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        entrypoint=(f"{home}/bin/tritonserver", "--model-repository=/models", f"--backend-directory={home}/backends"),
    )
    target = folder / "demo-triton.tar"
    oci.write_image(target, recipes.REGISTRY + IMAGE, layers, config)
    return target

"""What an image imports is compiled in it, and its byte code is used there."""

from __future__ import annotations

import gzip
import io
import py_compile
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from devcluster import bytecode, oci, recipes

pytestmark = pytest.mark.skipif(
    sys.implementation.cache_tag != bytecode.IMAGE_PYTHON, reason="its byte code is not for the image's Python"
)

ONE, TWO = "VALUE = 1\n", "VALUE = 2\n"


def unpacked(layer: oci.Layer, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(layer.blob))) as archive:
        archive.extractall(folder)  # our own archive
    return folder / "app"


def value(folder: Path) -> str:
    """What a program sees in the module, whose source says something else by now. It has the time of files of an image,
    and the same size."""
    module = folder / "thing.py"
    seconds = module.stat().st_mtime
    assert seconds == 0.0
    module.write_text(TWO)
    program = "import os, sys; sys.path.insert(0, os.getcwd()); os.utime('thing.py', (0, 0)); import thing"
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"{program}; print(thing.VALUE)"], cwd=folder, capture_output=True, text=True
    )
    return done.stdout.strip() or done.stderr


def test_modules_are_compiled(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "thing.py").write_text(ONE)
    (source / "template.py").write_text("{{ not Python }}")
    bytecode.add(source, "/app")
    assert value(unpacked(oci.layer_from_files({"/app": source}), tmp_path / "image")) == "1"


def test_byte_code_of_the_base_is_valid_for_its_sources(tmp_path: Path) -> None:
    """Its packages were compiled at their installation, and say at which time their sources had been written."""
    app = tmp_path / "app"
    app.mkdir()
    (app / "thing.py").write_text(ONE)
    py_compile.compile(str(app / "thing.py"), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    with tarfile.open(tmp_path / "base.tar", "w") as archive:
        archive.add(app, "app")
    assert value(unpacked(oci.layer_from_tar(tmp_path / "base.tar"), tmp_path / "image")) == "1"


def test_the_same_modules_give_the_same_byte_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the seed by which this process orders sets; and it names the sources as they are in the image."""
    source = tmp_path / "thing.py"
    source.write_text("def kind(x: str) -> bool:\n    return x in {'a', 'b', 'c', 'd', 'e'}\n")
    found = []
    for seed in ("1", "2"):
        monkeypatch.setenv("PYTHONHASHSEED", seed)
        found.append(bytecode.of({"app/thing.py": source}, "/"))
    assert found[0] == found[1]
    [(name, code)] = found[0].items()
    assert name == "app/__pycache__/thing.cpython-311.pyc"
    assert b"/app/thing.py" in code and str(tmp_path).encode() not in code


def test_our_own_modules_are_compiled_beside_their_sources() -> None:
    source = Path(bytecode.__file__)
    files = recipes._compiled({"/app/rightpool/thing.py": source, "/app/rightpool/py.typed": b""})
    assert set(files) == {
        *("/app/rightpool/thing.py", "/app/rightpool/py.typed"),
        "/app/rightpool/__pycache__/thing.cpython-311.pyc",
    }

"""The wheel has the product in it, and nothing that only develops or tests it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("operator", "profiler_sidecar", "hack", "tools", "tests", "benchmarks")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


def test_the_wheel_has_the_operator_and_the_profiler_only(tmp_path: Path) -> None:
    copy, output = tmp_path / "copy", tmp_path / "output"
    for name in SOURCES:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    done = subprocess.run([sys.executable, "-c", BUILD, str(output)], cwd=copy, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (wheel,) = output.glob("*.whl")
    files = [name for name in ZipFile(wheel).namelist() if ".dist-info/" not in name]
    assert {name.partition("/")[0] for name in files} == {"rightpool", "rightpool_profiler"}
    for name in ("rightpool/py.typed", "rightpool/cli/main.py", "rightpool_profiler/__main__.py"):
        assert name in files
    data = (ROOT / "operator/rightpool/hardware/data").glob("*.csv")
    assert {f"rightpool/hardware/data/{path.name}" for path in data} <= set(files)
    page = [path for path in (ROOT / "operator/rightpool/cli/ui").glob("*/*.*") if path.suffix != ".pyc"]
    assert len(page) > 5 and {path.relative_to(ROOT / "operator").as_posix() for path in page} <= set(files)

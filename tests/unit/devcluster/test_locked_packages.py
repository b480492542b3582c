"""Only packages that the lock names by hash are installed into an image; tested offline."""

from __future__ import annotations

import hashlib
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

from devcluster import recipes
from devcluster.spec import DevclusterError

METADATA = "Metadata-Version: 2.1\nName: ledger\nVersion: 1.0\n"
WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
HONEST, CHANGED = "RATE = 100\n", "RATE = 900\n"  # of the same length


def wheel(folder: Path, code: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "ledger-1.0-py3-none-any.whl"
    files = {"ledger.py": code, "ledger-1.0.dist-info/METADATA": METADATA, "ledger-1.0.dist-info/WHEEL": WHEEL}
    record = "".join(f"{name},,\n" for name in [*files, "ledger-1.0.dist-info/RECORD"])
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in {**files, "ledger-1.0.dist-info/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(name), text)
    return path


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The lock of the original package. Packages come from the folder `packages`, without an index."""
    honest = wheel(tmp_path / "honest", HONEST)
    for name, value in {
        "UV_OFFLINE": "1",
        "UV_NO_INDEX": "1",
        "UV_FIND_LINKS": str(tmp_path / "packages"),
        "UV_CACHE_DIR": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    path = tmp_path / "requirements.lock"
    path.write_text(f"ledger==1.0 --hash=sha256:{hashlib.sha256(honest.read_bytes()).hexdigest()}\n")
    return path


def test_the_package_that_was_locked_is_installed(lock: Path, tmp_path: Path) -> None:
    wheel(tmp_path / "packages", HONEST)
    recipes._install(lock, tmp_path / "image")
    assert (tmp_path / "image" / "ledger.py").read_text() == HONEST


def test_a_package_that_was_changed_since_is_refused(lock: Path, tmp_path: Path) -> None:
    """One byte differs, name and version are the same."""
    wheel(tmp_path / "packages", CHANGED)
    with pytest.raises(DevclusterError, match=r"(?is)hash mismatch.*ledger==1.0"):
        recipes._install(lock, tmp_path / "image")
    assert not (tmp_path / "image").exists() and not list(tmp_path.glob(".packages-*")), "nothing of it is left"


def test_a_package_without_a_hash_is_refused(lock: Path, tmp_path: Path) -> None:
    wheel(tmp_path / "packages", HONEST)
    lock.write_text("ledger==1.0\n")
    with pytest.raises(DevclusterError, match=r"(?is)require-hashes.*ledger==1.0"):
        recipes._install(lock, tmp_path / "image")


def test_the_demos_environment_has_what_every_command_and_option_needs() -> None:
    """The page and `--plot` are extras, which the demo sets up, too."""
    extras = tomllib.loads((recipes.ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    needed = {re.split(r"[<>=\[]", each)[0] for extra in ("operator", "ui", "plot") for each in extras[extra]}
    locks = (recipes.ROOT / name for name in ("operator/requirements.lock", "hack/requirements.lock"))
    there = {found for lock in locks for found in re.findall(r"^([a-z0-9_.-]+)==", lock.read_text(), re.MULTILINE)}
    assert needed <= there

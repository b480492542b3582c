"""Runs that are kept, in a folder or on a branch of the repository: `git:BRANCH`. The branch grows by a commit a run,
and no file that is checked out is touched."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from rightpool.cli.bench.profile import BenchProfile, read_profile

BRANCH: Final = "git:"
_UNFIT: Final = re.compile(r"[^A-Za-z0-9._-]+")


class StoreProblem(Exception):
    """Runs can't be kept or found; the message is for the user."""


def store(run: Path, place: str) -> str:
    """Keep it; where. Raises FileProblem and StoreProblem."""
    profile = read_profile(run)
    name = f"{_slug(profile.name)}/{profile.at.replace(':', '')}-{(profile.commit or 'unknown')[:12]}.json"
    if place.startswith(BRANCH):
        _commit(place.removeprefix(BRANCH), name, run.read_bytes(), f"{profile.name}: {profile.text()}")
        return f"{name} on branch {place.removeprefix(BRANCH)}"
    path = Path(place, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(run.read_bytes())
    except OSError as error:
        raise StoreProblem(f"{path}: {error.strerror}") from error
    return str(path)


def stored(place: str, name: str, folder: Path) -> list[tuple[Path, BenchProfile]]:
    """Runs of this name, the oldest first. folder: takes copies of those on a branch. Raises
    FileProblem and StoreProblem."""
    if place.startswith(BRANCH):
        tip = _tip(place.removeprefix(BRANCH))
        if tip is None:
            raise StoreProblem(f"there is no branch {place.removeprefix(BRANCH)}: `bench store` makes it")
        for file in _git("ls-tree", "-r", "--name-only", "-z", tip, f"{_slug(name)}/").decode().split("\0"):
            if file.endswith(".json"):
                path = folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(_git("show", f"{tip}:{file}"))
    elif not Path(place).is_dir():
        raise StoreProblem(f"{place} is no folder: `bench store` makes it")
    else:
        folder = Path(place)
    files = sorted(folder.glob(f"{_slug(name)}/*.json"))
    return sorted(((path, read_profile(path)) for path in files), key=lambda one: one[1].at)


def _slug(name: str) -> str:
    return _UNFIT.sub("-", name).strip("-.") or "unnamed"


# --- a branch --------------------------------------------------------------------------------------------------------


def _tip(branch: str) -> str | None:
    """Its newest commit, here or where it was fetched from; None where there is none."""
    for ref in (f"refs/heads/{branch}", f"refs/remotes/origin/{branch}"):
        try:
            return _git("rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}").decode().strip()
        except StoreProblem:
            continue
    return None


def _commit(branch: str, name: str, content: bytes, message: str) -> None:
    _git("check-ref-format", "--branch", branch)
    tip = _tip(branch)
    with tempfile.TemporaryDirectory(prefix="rightpool-index-") as folder:
        index = {"GIT_INDEX_FILE": str(Path(folder, "index"))}
        if tip is not None:
            _git("read-tree", tip, env=index)
        blob = _git("hash-object", "-w", "--stdin", content=content).decode().strip()
        _git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", env=index)
        tree = _git("write-tree", env=index).decode().strip()
    parents = [] if tip is None else ["-p", tip]
    made = _git("commit-tree", tree, *parents, "-m", message, env=_author()).decode().strip()
    _git("update-ref", f"refs/heads/{branch}", made)


def _author() -> dict[str, str]:
    """Runners often have none."""
    roles = ("AUTHOR", "COMMITTER")
    usual = {f"GIT_{role}_{part}": value for role in roles for part, value in (("NAME", "rightpool"), ("EMAIL", "-"))}
    return {} if subprocess.run(["git", "config", "user.email"], capture_output=True).returncode == 0 else usual


def _git(*words: str, content: bytes | None = None, env: dict[str, str] | None = None) -> bytes:
    try:
        done = subprocess.run(
            ["git", *words], input=content, capture_output=True, check=True, env={**os.environ, **(env or {})}
        )
    except OSError as error:
        raise StoreProblem(f"git does not run: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise StoreProblem(f"git {words[0]}: {lines[-1] if lines else f'exit code {error.returncode}'}") from error
    return done.stdout

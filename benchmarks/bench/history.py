"""A repository with a small program whose commits are known: some slow it, one makes it faster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

SAME: Final = "no worse"
WORSE: Final = "worse"
BETTER: Final = "better"


class Commit(NamedTuple):
    """A change of one place in one file."""

    subject: str
    """Its first line."""
    file: str
    """Where."""
    before: str
    """What is replaced."""
    after: str
    """By what."""
    verdict: str = SAME
    """What it is in truth, in the words of `bench compare`."""
    cause: str = ""
    """What `bench compare` is to name."""


class History(NamedTuple):
    """A program from its first commit on."""

    files: Mapping[str, str]
    """Texts of the first commit, by name."""
    commits: Sequence[Commit]
    """What comes after it, the oldest first."""
    command: Sequence[str]
    """How the program is started, after the interpreter."""


def make(folder: Path, history: History) -> list[str]:
    """A repository there; its commits, the oldest first: one more than the history has."""
    _git(folder, "init", "-q", "-b", "main")
    for name, text in history.files.items():
        (folder / name).write_text(text)
    found = [_commit(folder, "Train a small net")]
    for one in history.commits:
        path = folder / one.file
        text = path.read_text()
        if text.count(one.before) != 1:
            raise ValueError(f"{one.subject}: {one.before!r} is there {text.count(one.before)} times")
        path.write_text(text.replace(one.before, one.after))
        found.append(_commit(folder, one.subject))
    return found


def check_out(folder: Path, commit: str) -> None:
    """Have its files there."""
    _git(folder, "checkout", "-q", commit)


def _commit(folder: Path, subject: str) -> str:
    _git(folder, "add", ".")
    _git(folder, "commit", "-q", "-m", subject)
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *words: str) -> str:
    names = {f"GIT_{role}_{part}": "benchmark" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    command: Sequence[str] = ("git", *words)
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **names}, capture_output=True, text=True, check=True
    ).stdout

"""Runs in pairs: a program several times, and another commit of it beside it or in turns, so that both meet the same
machine."""

from __future__ import annotations

import asyncio
import math
import os
import statistics
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Final

from rightpool.cli.bench.beside import beside
from rightpool.cli.bench.made_profile import bench_profile
from rightpool.cli.bench.profile import BenchProfile

# Of NVIDIA, AMD, Google, AWS and Habana.
_DEVICES: Final = ("nvidiactl", "dxg", "kfd", "accel*", "vfio/[0-9]*", "neuron*", "hl*")


class RevisionProblem(Exception):
    """A commit can't be had; the message is for the user."""


@dataclass(frozen=True, slots=True)
class Contender:
    """What is measured in turn."""

    folder: Path
    """Where the program is started."""
    commit: str | None
    """Of what is there; None: as git says."""


def measured_in_turns(
    command: Sequence[str],
    name: str,
    seconds: float,
    repeat: int,
    contenders: Sequence[Contender],
    *,
    logged: bool = False,
) -> list[BenchProfile]:
    """One profile for each contender, of all its runs. Without accelerators those of a round run at once, since a core
    is shared out fairly, and only then do they meet the same machine: what else runs there comes and goes faster than a
    program starts. Accelerators have a program for themselves, and every other round goes backwards, so that none is
    always the first. logged: as of `beside`. Raises what `beside` and `bench_profile` raise."""
    session = os.urandom(8).hex() if len(contenders) > 1 else ""
    runs: list[list[BenchProfile]] = [[] for _ in contenders]
    places = range(len(contenders))
    turns = [[place] for place in places] if has_accelerators() else [list(places)]
    for turn in range(repeat):
        for at_once in turns if turn % 2 == 0 else reversed(turns):
            folders = [contenders[place].folder for place in at_once]
            seen = asyncio.run(beside(command, seconds, folders, logged=logged))
            for place, one in zip(at_once, seen, strict=True):
                commit, found = contenders[place].commit, bench_profile(one, name)
                runs[place].append(found if commit is None else replace(found, commit=commit))
    return [merged(each, session) for each in runs]


def has_accelerators() -> bool:
    """Whether this machine has one, whether or not a program uses it."""
    return any(True for name in _DEVICES for _ in Path("/dev").glob(name))


def merged(runs: Sequence[BenchProfile], session: str) -> BenchProfile:
    """One of all runs of a program, whose rate is their mean. Its finding is that of the middle one. session: of runs
    that took turns with those of another."""
    middle = sorted(runs, key=lambda run: run.rate)[len(runs) // 2]
    parts = set.intersection(*(set(run.shares) for run in runs))
    return replace(
        middle,
        at=runs[0].at,
        rate=statistics.fmean(run.rate for run in runs),
        taken_by_others=_of_known([run.taken_by_others for run in runs], statistics.fmean),
        runs=tuple(run.rate for run in runs),
        session=session,
        windows=tuple(rate for run in runs for rate in run.windows),
        window_seconds=statistics.fmean(run.window_seconds for run in runs),
        warm_up_seconds=max(run.warm_up_seconds for run in runs),
        shares={part: statistics.fmean(run.shares[part] for run in runs) for part in middle.shares if part in parts},
        flops_utilization=_of_known([run.flops_utilization for run in runs], statistics.fmean),
        memory_bytes=_of_known([run.memory_bytes for run in runs], max),
        joules_per_unit=_of_known([run.joules_per_unit for run in runs], statistics.fmean),
        step_p99_seconds=_of_known([run.step_p99_seconds for run in runs], max),
    )


def _of_known(values: Sequence[float | None], of: Callable[[list[float]], float]) -> float | None:
    """None where one is not known."""
    known = [value for value in values if value is not None]
    return of(known) if len(known) == len(values) and math.isfinite(sum(known)) else None


class Revisions:
    """Commits of the repository that this is run in, each unpacked into a folder that is gone afterwards. The
    repository itself is only read."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rightpool-revisions-")

    def __enter__(self) -> Revisions:
        return self

    def __exit__(self, *_: object) -> None:
        self._folder.cleanup()

    def unpack(self, revision: str) -> Contender:
        """With the place in it that corresponds to the present directory. Raises RevisionProblem."""
        commit = _git("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}").decode().strip()
        prefix = _git("rev-parse", "--show-prefix").decode().strip()
        top = _git("rev-parse", "--show-toplevel").decode().strip()
        there = Path(self._folder.name, commit)
        with tarfile.open(fileobj=BytesIO(_git("-C", top, "archive", "--format=tar", commit))) as archive:
            archive.extractall(there)  # what git has packed of the user's own repository
        folder = there / prefix
        if not folder.is_dir():
            raise RevisionProblem(f"{revision} has no folder {prefix}: start where both commits have the program")
        return Contender(folder, commit)


def _git(*words: str) -> bytes:
    try:
        return subprocess.run(["git", *words], capture_output=True, check=True).stdout
    except OSError as error:
        raise RevisionProblem(f"git does not run: {error.strerror}") from error
    except subprocess.CalledProcessError as error:
        words_of_git = error.stderr.decode(errors="replace").strip().splitlines()
        raise RevisionProblem(f"git {words[0]}: {words_of_git[-1] if words_of_git else error}") from error

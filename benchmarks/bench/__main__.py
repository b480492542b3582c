"""Which commit of a program's history made it slower, by `rightpool bench` on a machine that others use.

    PYTHONPATH=operator:profiler_sidecar python -m benchmarks.bench [--program torch-on-chips]
        [--repeat 3] [--equal 200] [--quiet]

A repository is made in a temporary folder. Each commit takes turns with the one before, and the newest one
with itself, while processes come and go on all cores. Of equal commits every set of `--repeat` pairs of runs is
compared, as many sets as asked for: these share runs, so that 220 comparisons are 12 pairs. Exit code 1 where a
verdict or a cause is wrong, or a commit that changes the pace is not found.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from io import StringIO
from itertools import combinations, count, islice, pairwise
from math import comb
from pathlib import Path
from typing import Any, Final, NamedTuple

from benchmarks.bench.history import SAME, Commit, History, check_out, make
from benchmarks.bench.on_chips import JAX_ON_CHIPS, TORCH_ON_CHIPS
from benchmarks.bench.on_processor import ON_PROCESSOR
from rightpool.cli.main import main as command

_HISTORIES: Final = {
    "torch-on-processor": ON_PROCESSOR,
    "torch-on-chips": TORCH_ON_CHIPS,
    "jax-on-chips": JAX_ON_CHIPS,
}
_SPELLS: Final = (1.0, 8.0)  # seconds that a neighbour works or rests
_OPEN: Final = "not known"
_SENTENCE: Final = re.compile(r"\*\*.*?\*\*: (no worse|worse|better|not known): (.*)")


class Found(NamedTuple):
    """What `bench compare` has printed."""

    verdict: str
    """Its first words."""
    why: str
    """The rest of the sentence."""

    def grade(self, truth: Commit) -> str:
        """Whether it is right, and names the cause. Of equal commits no more may be known."""
        if self.verdict == _OPEN and truth.verdict == SAME:
            return "open"
        return "yes" if self.verdict == truth.verdict and truth.cause in self.why else "no"


def _work(seed: int) -> None:
    draw = random.Random(seed)
    while True:
        end = time.monotonic() + draw.uniform(*_SPELLS)
        while time.monotonic() < end:
            sum(range(1000))
        time.sleep(draw.uniform(*_SPELLS))


@contextlib.contextmanager
def neighbours() -> Iterator[None]:
    """Processes that come and go, as many as there are cores."""
    processes = [
        multiprocessing.Process(target=_work, args=(seed,), daemon=True) for seed in range(os.cpu_count() or 1)
    ]
    for one in processes:
        one.start()
    try:
        yield
    finally:
        for one in processes:
            one.terminate()
            one.join()


def measure(folder: Path, history: History, commit: str, against: str, repeat: int) -> tuple[Path, Path]:
    """Files of `bench run`: the earlier commit's and this one's. Raises RuntimeError."""
    check_out(folder, commit)
    files = folder.parent / "before.json", folder.parent / "after.json"
    turns = ("--repeat", str(repeat), "--against", against, "--baseline", str(files[0]))
    program = ("--name", "net", "-o", str(files[1]), "--", sys.executable, *history.command)
    words = (sys.executable, "-m", "rightpool.cli.main", "bench", "run", "--seconds", "8", *turns, *program)
    here = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(Path(one).resolve()) for one in here if one)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return files


def compare(files: Sequence[Path]) -> Found:
    """By `bench compare`. Raises RuntimeError."""
    with contextlib.redirect_stdout(StringIO()) as printed:
        command(["bench", "compare", *map(str, files)])
    sentence = _SENTENCE.match(printed.getvalue())
    if sentence is None:
        raise RuntimeError(f"bench compare has printed {printed.getvalue()!r}")
    return Found(sentence[1], sentence[2])


def sets_of_pairs(files: Sequence[Path], size: int, most: int) -> Iterator[tuple[Path, Path]]:
    """Files with some pairs of runs of the two. A file of all pairs has the windows one run after the other."""
    both: list[dict[str, Any]] = [json.loads(path.read_text()) for path in files]
    pairs = len(both[0]["runs"])
    for number, chosen in enumerate(islice(combinations(range(pairs), size), most)):
        paths = []
        for path, run in zip(files, both, strict=True):
            runs = [run["runs"][index] for index in chosen]
            paths.append(path.with_name(f"{path.stem}-{number}.json"))
            paths[-1].write_text(json.dumps({**run, "runs": runs, "rate": sum(runs) / size}))
        yield paths[0], paths[1]


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", choices=_HISTORIES, default="torch-on-processor", help="whose commits")
    parser.add_argument("--repeat", type=int, default=3, help="pairs of runs in a comparison")
    parser.add_argument("--equal", type=int, default=200, help="comparisons of equal commits")
    parser.add_argument("--quiet", action="store_true", help="without processes that come and go")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rightpool-bench-") as made:
        folder = Path(made, "work")
        folder.mkdir()
        history = _HISTORIES[options.program]
        commits = make(folder, history)
        with contextlib.nullcontext() if options.quiet else neighbours():
            wrong = _grades(folder, history, commits, options.repeat)
            wrong += _equal(folder, history, commits[-1], options)
    return int(wrong > 0)


def _grades(folder: Path, history: History, commits: Sequence[str], repeat: int) -> int:
    """How many verdicts or causes are wrong."""
    wrong = 0
    print("| commit | is | verdict | why | right |\n|---|---|---|---|---|", flush=True)
    for truth, (before, commit) in zip(history.commits, pairwise(commits), strict=True):
        found = compare(measure(folder, history, commit, before, repeat))
        right = found.grade(truth)
        wrong += right == "no"
        print(f"| {truth.subject} | {truth.verdict} | {found.verdict} | {found.why} | {right} |", flush=True)
    return wrong


def _equal(folder: Path, history: History, commit: str, options: argparse.Namespace) -> int:
    """How many verdicts are false."""
    if not options.equal:
        return 0
    pairs = next(number for number in count(options.repeat) if comb(number, options.repeat) >= options.equal)
    files = measure(folder, history, commit, commit, pairs)
    verdicts = Counter(compare(some).verdict for some in sets_of_pairs(files, options.repeat, options.equal))
    false = sum(number for verdict, number in verdicts.items() if verdict not in (SAME, _OPEN))
    print(f"\n{options.equal} comparisons of a commit with itself, of {pairs} pairs: {false} false, {dict(verdicts)}")
    return false


if __name__ == "__main__":
    raise SystemExit(main())

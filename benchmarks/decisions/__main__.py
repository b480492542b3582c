"""What the operator decides about jobs of which everything is known, by kind of noise, against bars.

    PYTHONPATH=operator python -m benchmarks.decisions [--seed N] [--seeds K] [--noise NAME] [--json FILE]

Jobs in virtual time drive the operator's own profiles, plan and state machine; nothing is decided here. Ends with 1
where a bar does not hold.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.decisions.measures import Row, print_table, row
from benchmarks.decisions.stories import STORIES, Counts
from rightpool.simulation.noise import NOISES

# Jobs of one seed, by story, and its noises where not all. A simulated day of a job costs a CPU second or two, less
# where there are many in a fleet.
JOBS = {
    "saving": 48,
    "worse": 16,
    "hangs": 8,
    "slow start": 8,
    "bad pool": 8,
    "in time": 24,
    "late": 24,
    "crowded": 24,
    "mixed": 200,
    "hourly prices": 2,
    "daily tariffs": 2,
    "cheaper for good": 2,
    "prices meanwhile": 4,
    "fading pool": 12,
    "mistyped price": 8,
    "pool gone": 12,
    "growing batch": 8,
    "jobs that slow each other": 8,
    "learning": 8,
    "spot taken": 12,
    "queue": 30,
    "trials": 200,
}
ONLY = {
    "hangs": ("quiet", "long-eval"),
    "slow start": ("quiet", "ar-10m"),
    "bad pool": ("quiet",),
    "crowded": ("quiet", "blocks-10m"),
    "mixed": ("ar-10m",),
    "hourly prices": ("quiet", "ar-10m"),
    "daily tariffs": ("quiet", "ar-10m"),
    "cheaper for good": ("quiet", "ar-10m"),
    "prices meanwhile": ("quiet", "ar-10m"),
    "fading pool": ("quiet", "ar-10m"),
    "mistyped price": ("quiet",),
    "pool gone": ("quiet",),
    "growing batch": ("quiet", "ar-10m"),
    "jobs that slow each other": ("quiet", "ar-10m"),
    "learning": ("quiet", "ar-10m"),
    "spot taken": ("quiet", "ar-10m"),
    "queue": ("quiet",),
    "trials": ("ar-10m",),
}
WORKERS = 2


def counted(task: tuple[str, str, int, int]) -> tuple[str, str, Counts, float]:
    """One story with one noise and one seed."""
    story, noise, seed, count = task
    began = time.process_time()
    counts = STORIES[story](noise, seed, count)
    return story, noise, counts, time.process_time() - began


def rows(
    noises: list[str], stories: list[str], seed: int, seeds: int, jobs: int | None = None, *, quiet: bool = True
) -> list[Row]:
    """The table."""
    tasks = [
        (story, noise, seed + number, jobs or JOBS[story])
        for story in stories
        for noise in (noises if story not in ONLY else [name for name in ONLY[story] if name in noises])
        for number in range(seeds)
    ]
    found: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    with ProcessPoolExecutor(WORKERS) as workers:
        # The longest first.
        for story, noise, counts, seconds in workers.map(counted, sorted(tasks, key=lambda task: -task[3])):
            if not quiet:
                print(f"{story}, {noise}: {seconds:.1f} s {counts}", flush=True)
            for measure, count in counts.items():
                found[noise, measure].extend(count)
    order = {name: number for number, name in enumerate(NOISES)}
    return [row(*key, found[key]) for key in sorted(found, key=lambda key: (key[1], order[key[0]]))]


def main() -> int:
    """Print the table; 1 where a bar does not hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1, help="how many")
    parser.add_argument("--noise", choices=NOISES, help="this kind alone")
    parser.add_argument("--story", choices=STORIES, help="this story alone")
    parser.add_argument("--jobs", type=int, help="jobs of a seed in each story")
    parser.add_argument("--json", type=Path, help="write the rows here, too")
    parser.add_argument("--verbose", action="store_true", help="print what each run counted")
    options = parser.parse_args()
    began = time.monotonic()
    noises = [options.noise] if options.noise else list(NOISES)
    stories = [options.story] if options.story else list(STORIES)
    table = rows(noises, stories, options.seed, options.seeds, options.jobs, quiet=not options.verbose)
    print_table(table, options.json)
    print(f"{time.monotonic() - began:.0f} s")
    return 0 if all(line.ok for line in table) else 1


if __name__ == "__main__":
    raise SystemExit(main())

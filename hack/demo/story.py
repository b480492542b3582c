"""What a story is, and what all of them check."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from demo.job import Job, StoryFailed
from demo.stage import Stage
from rightpool.api.ledger import LedgerEntry

# On a machine that does much else, importing PyTorch alone may take minutes.
START_SECONDS: Final = 900.0
# A real program beside other work differs from window to window, and a verdict then takes up to 13 minutes.
MOVE_SECONDS: Final = 2400.0

Say = Callable[[str], None]


@dataclass(frozen=True)
class Story:
    """One story: its job and its function. after: the stories that must have ended before. stays: its ProfiledJob is
    there afterwards."""

    title: str
    namespace: str
    name: str
    tell: Callable[[Stage, Say], Job]
    after: tuple[str, ...] = ()
    stays: bool = True


def expect(holds: bool, what: str, job: Job) -> None:
    """Raises StoryFailed with the job's state where it does not hold."""
    if not holds:
        raise StoryFailed(f"{what}\n{job.conditions_text()}\n  history {job.history}")


def wait(what: str, holds: Callable[[], bool]) -> None:
    """Raises StoryFailed where it does not hold in time."""
    deadline = time.monotonic() + START_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise StoryFailed(f"not within {START_SECONDS:.0f} s: {what}")
        time.sleep(1.0)


def placed(job: Job) -> bool:
    """All its pods run."""
    return job.condition("Placed").get("status") == "True"


def paid(job: Job) -> bool:
    """The move was kept because it is better. On a busy machine real processes may get less than predicted."""
    return job.phase is None and bool(job.history) and job.history[-1]["outcome"] == "Verified"


def tell_prices(job: Job, name: str, say: Say, what: str = "samples") -> None:
    """What the last move promised and brought."""
    entry = LedgerEntry.from_dict(job.history[-1])
    predicted, realised = entry.predicted_cost_per_million, entry.realised_cost_per_million
    before = entry.baseline_cost_per_million
    assert predicted and realised and before
    say(
        f"{name}: $ per million {what}: {before:.4g} before, {predicted:.4g} predicted, {realised:.4g} realised "
        f"({realised / predicted - 1:+.0%} against the prediction, {realised / before - 1:+.0%} against before)"
    )
    expect(realised < before, f"a million {what} should cost less than before", job)

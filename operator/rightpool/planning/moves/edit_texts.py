"""How an edited program compares with the one before, in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from rightpool.api.program_edit import ProgramEdit
from rightpool.api.wording import both_ends, number, percent, sentence
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.judge.difference import Difference
from rightpool.planning.judge.moved_texts import PARTS, MeasuredStep, moved_text, percent_of
from rightpool.planning.judge.two_runs import doubt
from rightpool.planning.judge.verdict import BETTER_Z
from rightpool.profiles.service import ServiceWindow
from rightpool.profiles.statistics import median

UNCOUNTED: Final = (
    "steps were counted, and an edit may change how many samples they have: set spec.progress.samplesPerStep"
)
_IMAGE: Final = 26  # so that what moved has room beside two of them


def compared_text(
    edit: ProgramEdit, image: str | None, found: Difference, shares: Sequence[float | None], precision: str | None
) -> str:
    """By how much a unit's rate differs, with an 80% interval, and what moved. image, shares, precision: of what runs
    now."""
    ratio, sd = -found.measured, doubt(found, BETTER_Z)
    low, high = (percent_of(end) for end in (ratio - sd, ratio + sd))
    before = MeasuredStep(found.before.mean, _known(edit.shares), edit.precision)
    after = MeasuredStep(found.after.mean, _known(shares), precision)
    changed = f"{edit.unit.plural}/s {percent_of(ratio)} ({low} to {high}) {_since(edit.image, image)}"
    return sentence(changed, moved_text(before, after, math.copysign(1.0, found.measured)))


def service_text(edit: ProgramEdit, image: str | None, found: Difference) -> str:
    """By how much longer a batch or a token takes, with an 80% interval."""
    longer, sd = found.measured, doubt(found, BETTER_Z)
    low, high = (percent_of(end) for end in (longer - sd, longer + sd))
    what = "token" if edit.unit is WorkUnit.TOKENS else "batch"
    return f"seconds of a {what} {percent_of(longer)} ({low} to {high}) at like load {_since(edit.image, image)}"


def unlike_text(edit: ProgramEdit, image: str | None, windows: Sequence[ServiceWindow]) -> str:
    """That its load is another one."""
    now, before = (number(median(loads)) for loads in ([one.load for one in windows], edit.loads))
    return f"its load does not compare: {now} requests at once, {before} before, {_since(edit.image, image)}"


def failing_text(edit: ProgramEdit, image: str | None, windows: Sequence[ServiceWindow]) -> str:
    """That more requests fail."""
    requests, failed = edit.answered
    share = math.fsum(one.failed for one in windows) / math.fsum(one.requests for one in windows)
    return f"{percent(share)} of requests fail, {percent(failed / requests)} did, {_since(edit.image, image)}"


def does_nothing_text(edit: ProgramEdit, image: str | None) -> str:
    """That it hangs."""
    return sentence(f"the program does nothing {_since(edit.image, image)}", remedy="see the output of its pods")


def _since(before: str | None, image: str | None) -> str:
    """Since which edit."""
    was, there = (None if one is None else both_ends(one, _IMAGE) for one in (before, image))
    if was is None or there is None:
        return "since its template was edited"
    return f"since its template was edited ({there})" if was == there else f"with {there} against {was}"


def _known(shares: Sequence[float | None]) -> dict[str, float]:
    return {name: share for name, share in zip(PARTS, shares, strict=False) if share is not None}

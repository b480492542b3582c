"""How an edited program compares with the one before, in words."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Final

from rightpool.api.program_edit import PartShares, ProgramEdit
from rightpool.api.revision import Revision
from rightpool.api.traits import ModelTraits
from rightpool.api.wording import both_ends, sentence
from rightpool.planning.judge.difference import Difference
from rightpool.planning.judge.moved_texts import MeasuredStep, moved_text, percent_of
from rightpool.planning.judge.two_runs import doubt
from rightpool.planning.judge.verdict import BETTER_Z

UNCOUNTED: Final = (
    "steps were counted, and an edit may change how many samples they have: set spec.progress.samplesPerStep"
)
_IMAGE: Final = 26  # so that what moved has room beside two of them


def compared_text(edit: ProgramEdit, now: Revision, found: Difference, shares: PartShares, model: ModelTraits) -> str:
    """By how much a unit's rate differs, with an 80% interval, and what moved. shares, model: of what runs now."""
    ratio, sd = -found.measured, doubt(found, BETTER_Z)
    low, high = (percent_of(end) for end in (ratio - sd, ratio + sd))
    before = MeasuredStep(found.before.mean, _known(edit.shares), edit.model)
    after = MeasuredStep(found.after.mean, _known(shares), model)
    changed = f"{edit.unit.plural}/s {percent_of(ratio)} ({low} to {high}) {_since(edit.before, now)}"
    return sentence(changed, moved_text(before, after, math.copysign(1.0, found.measured)))


def does_nothing_text(before: Revision, now: Revision) -> str:
    """That it hangs."""
    return sentence(f"the program does nothing {_since(before, now)}", remedy="see the output of its pods")


def _since(before: Revision, now: Revision) -> str:
    """Since which edit."""
    was, there = (None if one.image is None else both_ends(one.image, _IMAGE) for one in (before, now))
    if was is None or there is None:
        return "since its template was edited"
    return f"since its template was edited ({there})" if was == there else f"with {there} against {was}"


def _known(shares: PartShares) -> dict[str, float]:
    values = {field.name: getattr(shares, field.name) for field in fields(shares)}
    return {name: value for name, value in values.items() if value is not None}

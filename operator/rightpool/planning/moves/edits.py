"""Edits of what a job runs, at a place and size that stay: the new program is judged by what the old one did there.

An edit promised nothing, so that its migration does not wait for this. Each edit is compared with what ran before it,
also where that was an edit that had no verdict yet: then with what ran before that.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from rightpool.api.migration import Migration
from rightpool.api.program_edit import EditVerdict, PartShares, ProgramEdit
from rightpool.api.revision import Revision
from rightpool.api.traits import UNKNOWN_TRAITS
from rightpool.api.variation import MAX_RECENT
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.series import FEWEST_WINDOWS, RateSeries
from rightpool.planning.judge.two_runs import OF_TWO_RUNS, difference_of_runs
from rightpool.planning.judge.verdict import Verdict, verdict
from rightpool.planning.moves.edit_texts import UNCOUNTED, compared_text, does_nothing_text
from rightpool.profiles.profile import Profile
from rightpool.profiles.shares import decompose
from rightpool.profiles.slow_start import known_before
from rightpool.profiles.steadiness import SPANS

# Windows at which it is looked at: each look has its own chance to be wrong.
_LOOKS: Final = (FEWEST_WINDOWS, SPANS[-2], SPANS[-1], MAX_RECENT)
_VERDICTS: Final = {
    Verdict.BETTER: EditVerdict.IMPROVED,
    Verdict.SAME: EditVerdict.NO_WORSE,
    Verdict.WORSE: EditVerdict.REGRESSED,
}


def with_edit(job: Job, migration: Migration) -> Job:
    """The job with what it did until its source is left now, where what comes is another program at the same place.
    migration: with its baseline."""
    source, target, known = migration.source, migration.target, job.state.edit
    if migration.rolling_back or source.workload_hash == target.workload_hash:
        return job
    edit = _begun(job, migration) if _same_place(source, target) else None
    if known is not None and not known.judged and _same_place(known.before, target):
        edited = known.before.workload_hash != source.workload_hash
        edit = known if edited or edit is None else edit
    return job if edit == known else job.with_state(replace(job.state, edit=edit))


def _begun(job: Job, migration: Migration) -> ProgramEdit | None:
    """None where too little was measured."""
    rates, profile = migration.baseline_rates, job.observed.profile
    if len(rates) < FEWEST_WINDOWS or not any(rates):
        return None
    shares = PartShares() if profile is None else _shares(profile)
    model = UNKNOWN_TRAITS if profile is None else profile.traits
    return ProgramEdit(migration.source, rates, migration.unit, shares, model)


def edit_to_judge(job: Job) -> ProgramEdit | None:
    """The edit whose program runs now and has no verdict yet; None also where it was taken back."""
    edit, here = job.state.edit, job.state.revision
    if edit is None or edit.judged or here is None or not _same_place(edit.before, here):
        return None
    return None if edit.before.workload_hash == here.workload_hash else edit


def judged_edit(job: Job) -> ProgramEdit | None:
    """The edit that has a verdict which is of what runs now, and where it runs."""
    edit, here = job.state.edit, job.state.revision
    if edit is None or here is None or not _same_place(edit.before, here):
        return None
    return edit if edit.judged == here.workload_hash else None


def with_edit_judged(job: Job) -> Job:
    """The job with the verdict on its last edit, once enough was measured for one."""
    edit, here = edit_to_judge(job), job.state.revision
    profile, variation = job.observed.profile, job.observed.variation
    if edit is None or here is None or profile is None or not profile.complete:
        return job
    if variation is None or variation.revision != here.revision or variation.throttled:
        return job
    start = known_before(variation, here.revision)
    length = job.spec.profiling.window.total_seconds()
    late = variation.recent[0 if start is None else start.in_windows(length) :]
    last = len(variation.recent) == MAX_RECENT
    looked = len(late) if last else max((count for count in _LOOKS if count <= len(late)), default=0)
    if looked < FEWEST_WINDOWS:
        return job
    if not _comparable(edit, profile, variation.unit):
        return _with_verdict(job, edit, here, EditVerdict.UNKNOWN, None, UNCOUNTED)
    before = RateSeries(sum(edit.rates) / len(edit.rates), len(edit.rates), edit.rates, edit.rates, length)
    late = late[:looked]
    after = RateSeries(sum(late) / looked, looked, late, late, length, variation=variation)
    found = difference_of_runs(before, after)
    judged = verdict(found, OF_TWO_RUNS)
    if judged is Verdict.OPEN and not last:
        return job
    if judged is Verdict.IDLE or not after.mean:
        return _with_verdict(job, edit, here, EditVerdict.REGRESSED, 0.0, does_nothing_text(edit.before, here))
    text = compared_text(edit, here, found, _shares(profile), profile.traits)
    if judged is Verdict.OPEN:
        return _with_verdict(job, edit, here, EditVerdict.UNKNOWN, None, text)
    return _with_verdict(job, edit, here, _VERDICTS[judged], after.mean / before.mean, text)


def _with_verdict(
    job: Job, edit: ProgramEdit, here: Revision, judged: EditVerdict, ratio: float | None, text: str
) -> Job:
    """What it was judged by is needed no more."""
    edit = ProgramEdit(
        edit.before, unit=edit.unit, judged=here.workload_hash, verdict=judged, ratio=ratio, message=text
    )
    return job.with_state(replace(job.state, edit=edit))


def _same_place(one: Revision, other: Revision) -> bool:
    return (one.placement, one.chip) == (other.placement, other.chip)


def _comparable(edit: ProgramEdit, profile: Profile, unit: WorkUnit) -> bool:
    """An edit may change how many samples a step has."""
    if unit is not edit.unit:
        return False
    return unit is WorkUnit.SAMPLES or (edit.model.batch is not None and edit.model.batch == profile.traits.batch)


def _shares(profile: Profile) -> PartShares:
    found = decompose(profile)
    if found is None:
        return PartShares()
    return PartShares(found.input, found.saving, found.host, found.communication, found.chip)

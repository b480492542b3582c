"""Edits of what a job runs, at a place and size that stay: the new program is judged by what the old one did there.

An edit promised nothing, so that its migration does not wait for this. Each edit is compared with what ran before it,
also where that was an edit that had no verdict yet: then with what ran before that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from rightpool.api.altered import altered
from rightpool.api.migration import Migration
from rightpool.api.program_edit import MAX_RATES, EditVerdict, ProgramEdit
from rightpool.api.revision import Revision
from rightpool.api.traits import UNKNOWN_TRAITS
from rightpool.api.variation import MAX_RECENT, Variation
from rightpool.api.work_unit import WorkUnit
from rightpool.planning.jobs.job import Job
from rightpool.planning.judge.difference import Difference
from rightpool.planning.judge.moved_texts import PARTS
from rightpool.planning.judge.series import FEWEST_WINDOWS, RateSeries
from rightpool.planning.judge.two_runs import OF_TWO_RUNS, difference_of_runs
from rightpool.planning.judge.verdict import Verdict, verdict
from rightpool.planning.moves.edit_texts import UNCOUNTED, compared_text, does_nothing_text
from rightpool.profiles.profile import Profile
from rightpool.profiles.shares import parts_of_step
from rightpool.profiles.slow_start import known_before, windows_after_start
from rightpool.profiles.steadiness import SPANS

LOOKS: Final = (FEWEST_WINDOWS, SPANS[-2], SPANS[-1], MAX_RECENT)
"""Windows at which it is looked at: each look has its own chance to be wrong."""
_FAR_APART: Final = 1e6  # windows between two runs of which no noise lasts so long
VERDICTS: Final = {
    Verdict.BETTER: EditVerdict.IMPROVED,
    Verdict.SAME: EditVerdict.NO_WORSE,
    Verdict.WORSE: EditVerdict.REGRESSED,
}
"""What follows for an edit; of all else nothing is known."""


def with_edit(job: Job, migration: Migration) -> Job:
    """The job with what it did until its source is left now, where another program comes to the same place. Elsewhere
    nothing is compared. migration: with its baseline."""
    source, target = migration.source, migration.target
    if migration.rolling_back and _same_place(source, target):
        return job
    return _edited(job, source, target, migration.baseline_rates, migration.unit)


def with_edit_of_object(job: Job, source: Revision, target: Revision) -> Job:
    """The same of an object that its owner has edited where it runs, or made anew. What was counted of the program
    before is none of the windows of the new one, which has the same number."""
    variation = job.observed.variation or job.state.variation
    if source.workload_hash == target.workload_hash or variation is None:
        return job if _same_place(source, target) else _edited(job, source, target, (), WorkUnit.SAMPLES)
    window = job.spec.profiling.window.total_seconds()
    known = variation.revision == source.revision and not variation.throttled
    count = windows_after_start(variation, source.since, window) if known else 0
    job = _edited(job, source, target, variation.recent[len(variation.recent) - count :], variation.unit)
    return replace(job, observed=job.observed._replace(variation=replace(variation, recent=(), forgotten=True)))


def _edited(job: Job, source: Revision, target: Revision, rates: tuple[float, ...], unit: WorkUnit) -> Job:
    """rates: of the newest windows at the source."""
    stays = _same_place(source, target)
    return with_begun(job, source, target, lambda: _begun(job, source, rates, unit), stays=stays)


def with_begun(
    job: Job, source: Revision, target: Revision, begin: Callable[[], ProgramEdit | None], *, stays: bool
) -> Job:
    """The job with the edit that its change from one Revision to another is, if it is one. begin: what it did before,
    None where too little was measured. stays: whether it is on the same chips."""
    known = job.state.edit
    if stays and source.workload_hash == target.workload_hash:
        return job
    edit = begin() if stays else None
    if stays and known is not None and not known.judged:
        edited = known.workload_hash != source.workload_hash
        edit = known if edited or edit is None else edit
    return job if edit == known else job.with_state(replace(job.state, edit=edit))


def _same_place(source: Revision, target: Revision) -> bool:
    return (source.placement, source.chip) == (target.placement, target.chip)


def _begun(job: Job, source: Revision, rates: tuple[float, ...], unit: WorkUnit) -> ProgramEdit | None:
    """None where too little was measured."""
    profile = job.observed.profile
    if len(rates) < FEWEST_WINDOWS or not any(rates):
        return None
    model = UNKNOWN_TRAITS if profile is None else profile.traits
    return ProgramEdit(
        source.workload_hash,
        job.state.image,
        rates[-MAX_RATES:],
        unit,
        () if profile is None else _shares(profile),
        model.precision,
        model.batch,
    )


def with_image(job: Job) -> Job:
    """The job with the image of what runs, which nothing else tells once the template is edited."""
    here = job.state.revision
    if here is None or here.workload_hash != job.workload_hash_of(here) or job.state.image == job.image_of(here):
        return job
    return job.with_state(altered(job.state, image=job.image_of(here)))


def with_edit_judged(job: Job) -> Job:
    """The job with the verdict on its last edit, once enough was measured for one."""
    edit, here = job.state.edit_to_judge, job.state.revision
    profile, variation = job.observed.profile, job.observed.variation
    if edit is None or here is None or profile is None or not profile.complete:
        return job
    if variation is None or variation.revision != here.revision or variation.throttled:
        return job
    # Of an object that was edited where it is, the number stays.
    start = variation.slow_start if variation.forgotten else known_before(variation, here.revision)
    length = job.spec.profiling.window.total_seconds()
    late = variation.recent[0 if start is None else start.in_windows(length) :]
    last = len(variation.recent) == MAX_RECENT
    looked = len(late) if last else looked_at(len(edit.rates), len(late))
    if looked < FEWEST_WINDOWS:
        return job
    if not _comparable(edit, profile, variation.unit):
        return with_verdict(job, edit, here, EditVerdict.UNKNOWN, None, UNCOUNTED)
    found = since_edit(edit.rates, late[:looked], variation, length)
    judged, after, before = verdict(found, OF_TWO_RUNS), found.after, found.before
    if judged is Verdict.OPEN and not last:
        return job
    if judged is Verdict.IDLE or not after.mean:
        return with_verdict(job, edit, here, EditVerdict.REGRESSED, 0.0, does_nothing_text(edit, job.state.image))
    text = compared_text(edit, job.state.image, found, _shares(profile), profile.traits.precision)
    if judged is Verdict.OPEN:
        return with_verdict(job, edit, here, EditVerdict.UNKNOWN, None, text)
    return with_verdict(job, edit, here, VERDICTS[judged], after.mean / before.mean, text)


def looked_at(before: int, after: int) -> int:
    """How many of `after` windows count now, with so many before; 0 where there are too few. Some windows that are all
    alike may be of noise that lasts longer than they do: one side must be longer than that."""
    least = FEWEST_WINDOWS if before >= MAX_RATES else SPANS[-1]
    return max((count for count in LOOKS if least <= count <= after), default=0)


def since_edit(
    before: tuple[float, ...], after: tuple[float, ...], variation: Variation | None, seconds: float
) -> Difference:
    """Of windows of so many seconds before and after an edit, units a second. variation: how such windows differ.

    A few windows hardly tell for how long the noise of a job lasts. So they are no surer than for noise that may last
    for any of `step_change.LASTING`, by how likely each makes them, none of which carries over the edit.
    """
    # Commands that read accounts do without NumPy.
    from rightpool.profiles.step_change import step_change

    early, late = (RateSeries(sum(rates) / len(rates), len(rates), rates, rates, seconds) for rates in (before, after))
    found = difference_of_runs(early, replace(late, variation=variation))
    lasting = step_change(before, after, _FAR_APART)
    if lasting is None or lasting.sd < found.sd:
        return found
    return replace(found, sd=lasting.sd, freedom=lasting.freedom)


def with_verdict(
    job: Job, edit: ProgramEdit, here: Revision, judged: EditVerdict, ratio: float | None, text: str
) -> Job:
    """The job whose last edit is judged: what that was judged by is needed no more."""
    edit = ProgramEdit(
        edit.workload_hash,
        edit.image,
        unit=edit.unit,
        judged=here.workload_hash,
        verdict=judged,
        ratio=ratio,
        message=text,
    )
    return job.with_state(replace(job.state, edit=edit))


def _comparable(edit: ProgramEdit, profile: Profile, unit: WorkUnit) -> bool:
    """An edit may change how many samples a step has."""
    if unit is not edit.unit:
        return False
    return unit is WorkUnit.SAMPLES or (edit.batch is not None and edit.batch == profile.traits.batch)


def _shares(profile: Profile) -> tuple[float | None, ...]:
    """Empty where they are not known."""
    known = parts_of_step(profile)
    return tuple(map(known.get, PARTS)) if known else ()

"""Edits of what a server runs: the new program is judged by how long the old one took at like load, and by what fails.

How many requests it answers is its demand. Windows are those of its profiling: they are counted in memory, and begin
anew with another operator.
"""

from __future__ import annotations

import math
from dataclasses import replace

from rightpool.api.migration import Migration
from rightpool.api.program_edit import MAX_RATES, EditVerdict, ProgramEdit
from rightpool.api.revision import Revision
from rightpool.api.variation import MAX_RECENT
from rightpool.planning.jobs.job import Job, unit_of
from rightpool.planning.judge.difference import Difference
from rightpool.planning.judge.series import FEWEST_WINDOWS
from rightpool.planning.judge.traffic import FAILING, Answered, TrafficBlock, TrafficVerdict, judge_traffic
from rightpool.planning.judge.two_runs import OF_TWO_RUNS
from rightpool.planning.judge.verdict import Verdict, verdict
from rightpool.planning.moves.edit_texts import failing_text, service_text, unlike_text
from rightpool.planning.moves.edits import VERDICTS, looked_at, since_edit, with_begun, with_verdict
from rightpool.profiles.service import ServiceWindow, at_like_load, like_windows


def with_server_edit(job: Job, migration: Migration) -> Job:
    """The job with what its server did before, where another program has come to chips that are alike."""
    source, target = migration.source, migration.target
    sides = ((ref.placement.pool, ref.placement.chips_per_replica, ref.chip) for ref in (source, target))
    stays = next(sides) == next(sides)
    return with_begun(job, source, target, lambda: migration.edit or server_before(job, source), stays=stays)


def server_before(job: Job, source: Revision) -> ProgramEdit | None:
    """What a server has done until now. None where too little was measured."""
    windows = job.observed.service[-MAX_RATES:]
    if len(windows) < FEWEST_WINDOWS:
        return None
    answered = tuple(math.fsum(column) for column in list(zip(*windows, strict=True))[2:])
    rates, loads = tuple(1.0 / one.seconds for one in windows), tuple(one.load for one in windows)
    return ProgramEdit(source.workload_hash, job.state.image, rates, unit_of(job), loads=loads, answered=answered)


def with_server_edit_judged(job: Job) -> Job:
    """The job with the verdict on its last edit, once enough was measured for one."""
    edit, here, windows = job.state.edit_to_judge, job.state.revision, job.observed.service
    if edit is None or here is None or not edit.loads:
        return job
    if _fails(edit, windows):
        return with_verdict(job, edit, here, EditVerdict.REGRESSED, None, failing_text(edit, job.state.image, windows))
    last, like = len(windows) == MAX_RECENT, like_windows(edit.loads, windows)
    looked = len(like) if last else looked_at(len(edit.rates), len(like))
    if last and looked < FEWEST_WINDOWS:
        text = unlike_text(edit, job.state.image, windows)
        return with_verdict(job, edit, here, EditVerdict.UNKNOWN, None, text)
    if looked < FEWEST_WINDOWS:
        return job
    found = since_server_edit(edit, like[:looked], job.spec.profiling.window.total_seconds())
    judged = verdict(found, OF_TWO_RUNS)
    if judged is Verdict.OPEN and not last:
        return job
    text = service_text(edit, job.state.image, found)
    if judged is Verdict.OPEN:
        return with_verdict(job, edit, here, EditVerdict.UNKNOWN, None, text)
    return with_verdict(job, edit, here, VERDICTS[judged], math.exp(-found.measured), text)


def since_server_edit(edit: ProgramEdit, windows: tuple[ServiceWindow, ...], seconds: float) -> Difference:
    """By how much longer batches or tokens take. windows: since the edit, of so many seconds."""
    early = [(load, 1.0 / rate) for load, rate in zip(edit.loads, edit.rates, strict=True)]
    like = at_like_load(early, [(one.load, one.seconds) for one in windows])
    found = since_edit(like.before, like.after, None, seconds)
    return replace(found, sd=math.hypot(found.sd, like.sd), usual_sd=math.hypot(found.usual_sd, like.sd))


def _fails(edit: ProgramEdit, windows: tuple[ServiceWindow, ...]) -> bool:
    """Whether surely more requests fail than before, and than may."""
    if len(windows) < FEWEST_WINDOWS:
        return False
    requests, failed = edit.answered
    old = Answered(requests, 0.0, 0.0, failed)
    new = Answered(math.fsum(one.requests for one in windows), 0.0, 0.0, math.fsum(one.failed for one in windows))
    return judge_traffic([TrafficBlock(new, old)], None, FAILING).verdict is TrafficVerdict.FAILING

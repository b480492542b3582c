"""What trials of servers show: one replica elsewhere is read as the server is, and answers sample requests alone.

What its batches take goes into the record of the server, as that of the place where it ran; its requests are no demand.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from rightpool.api.revision import Revision
from rightpool.api.trial_run import TrialRun
from rightpool.api.wording import share
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.jobs.trial_seen import trial_name
from rightpool.planning.offers.servers.recorded import line_through
from rightpool.profiles.loads import Loads
from rightpool.profiles.sample import RevisionKey
from rightpool.profiles.served import RequestCounter, ServedWindow

SETTLE_SECONDS: Final = 10.0
"""From its first answers on, for which nothing is kept: whatever a program does once is done then."""
MOST_FAILED: Final = 0.1
"""Share of its requests that may fail."""


class TrialAnswers(NamedTuple):
    """What a trial has shown."""

    since: float
    """Unix seconds of its first answers."""
    rate: float | None = None
    """Requests a second of batches of one size, one after the other; None as long as it goes on."""
    against: float | None = None
    """The same where the server runs."""
    failed: str = ""
    """Why nothing is shown."""

    @property
    def over(self) -> bool:
        """Whether it has lasted long enough."""
        return self.rate is not None or bool(self.failed)


@dataclass(slots=True)
class _Read:
    """A trial under way."""

    number: int
    answers: TrialAnswers | None = None
    """None until the first ones."""
    seconds: float = 0.0
    """Since then."""
    requests: float = 0.0
    errors: float = 0.0


class TrialTarget(NamedTuple):
    """A trial to be read."""

    job: Job
    """The server that is tried."""
    key: JobKey
    """The trial's own ProfiledJob."""
    number: int
    """Its Revision."""
    run: TrialRun
    """Where, and for how long."""

    @property
    def revision(self) -> RevisionKey:
        """Under which it is read."""
        return RevisionKey(*self.key, self.number)


class ServerTrials:
    """Used by the planner's thread alone."""

    def __init__(self) -> None:
        self._read: dict[JobKey, _Read] = {}

    def follow(self) -> None:
        """This process does not lead."""
        self._read.clear()

    def of(self, job: Job) -> TrialAnswers | None:
        """What the trial has shown that is under way; None until it has answered anything."""
        read, run = self._read.get(job.key), job.state.trial
        return read.answers if read is not None and run is not None and run.number == read.number else None

    def take(
        self,
        targets: Mapping[RevisionKey, TrialTarget],
        windows: Mapping[RevisionKey, ServedWindow],
        loads: Callable[[JobKey], Loads | None],
    ) -> None:
        """What was read of them. targets: all that are under way. loads: what is known of a server's batches."""
        tried = {target.job.key for target in targets.values()}
        self._read = {key: read for key, read in self._read.items() if key in tried}
        for revision, target in targets.items():
            window, known = windows.get(revision), loads(target.job.key)
            if window is not None and known is not None:
                self._extend(target, window, known)

    def _extend(self, target: TrialTarget, window: ServedWindow, loads: Loads) -> None:
        key, run, counters = target.job.key, target.run, window.counts.counters
        read = self._read.get(key)
        if read is None or read.number != run.number:
            read = self._read[key] = _Read(run.number)
        requests, errors = (counters.get(one) or 0.0 for one in (RequestCounter.REQUESTS, RequestCounter.ERRORS))
        if read.answers is None:
            if requests <= 0.0:
                return  # it loads its model
            read.answers = TrialAnswers(window.at - window.seconds)
        read.seconds += window.seconds
        if read.seconds <= SETTLE_SECONDS:
            return
        read.requests, read.errors = read.requests + requests, read.errors + errors
        if errors <= 0.0:
            loads.extend(window, place_in(run), target.job.workload_hash_on(run.vendor))
        if read.seconds - SETTLE_SECONDS >= run.measures and not read.answers.over:
            read.answers = _shown(target, read, read.answers, loads)


def trial_target(job: Job, jobs: Mapping[JobKey, Job]) -> TrialTarget | None:
    """The trial of a server that has pods by now; None where there is none."""
    run = job.state.trial
    if run is None or job.spec.workload.server is None:
        return None
    key = JobKey(job.key.namespace, trial_name(job.key.name, run.number))
    found = jobs.get(key)
    ref = found.state.revision if found is not None and found.on_trial else None
    return None if ref is None else TrialTarget(job, key, ref.revision, run)


def place_in(run: TrialRun) -> str:
    """As `Loads` names it."""
    return f"{run.placement.pool}/{run.placement.chips_per_replica}"


def _shown(target: TrialTarget, read: _Read, before: TrialAnswers, loads: Loads) -> TrialAnswers:
    """As before while the batches of the server itself are not known."""
    failed = read.errors / read.requests if read.requests > 0.0 else 0.0
    if failed > MOST_FAILED:
        return before._replace(failed=f"{share(failed)} of its sample requests failed")
    ref: Revision | None = target.job.state.revision
    there = loads.at(place_in(target.run))
    here = None if ref is None else loads.at(f"{ref.placement.pool}/{ref.placement.chips_per_replica}")
    if there is None:
        return before._replace(failed="its page tells no time of its batches")
    if here is None:
        return before
    load = min(float(there.load.max()), float(here.load.max()))
    rate, against = (load / line_through(points).seconds(load) for points in (there, here))
    return before._replace(rate=rate, against=against)

"""Another kind of work needs only its module, its handover, their rows in the registries, and a field that tells it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import RevisionState
from rightpool.planning.judge.verdict import Verdict
from rightpool.planning.moves import handovers
from rightpool.planning.moves.commands import EndRevision, EnsureRevision, commands
from rightpool.planning.moves.transitions import advance
from rightpool.planning.work import registry
from rightpool.planning.work.outlook import ends_at, outlook
from rightpool.planning.work.verification import verify
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.invented_work import Serving, ServingSpec, StartThenStop
from tests.unit.planning.jobs import AUTO, NOW, changed, judged, running, spec
from tests.unit.prediction.fixtures import A100, profile

HOURS = 3600.0


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows in the registries."""
    monkeypatch.setattr(registry, "WORKS", (Serving(), *registry.WORKS))
    monkeypatch.setattr(handovers, "HANDOVERS", {**handovers.HANDOVERS, Serving: StartThenStop()})


def serving(requests: float, **ratios: float | None) -> Job:
    """A job that serves so many requests a second on chips that could serve more, and that scales perfectly."""
    made = ServingSpec.model_validate(spec().model_dump(by_alias=True) | {"requests": requests})
    return running(made=made, ratios={"exposed_communication": None, **ratios})


def training(**ratios: float | None) -> Job:
    """The same that trains."""
    return running(ratios={"exposed_communication": None, **ratios})


def test_what_is_not_asked_for_is_worth_nothing() -> None:
    """A quarter of the chips serves a quarter of what these can, and costs a quarter; a unit costs as much on both."""
    pool = {"a100": A100}
    few, many = judged(serving(200.0), pool), judged(serving(1000.0), pool)
    assert few.decision.target == Placement("a100", 1, 1)
    assert many.decision.target is None and judged(training(), pool).decision.target is None
    candidate = few.decision.candidate
    assert candidate is not None and candidate.cost_per_million is not None and candidate.cost_per_hour is not None
    assert candidate.cost_per_million.median == pytest.approx(candidate.cost_per_hour / HOURS / 200.0 * 1e6)


def test_nothing_is_decided_before_what_it_is_measured_by_is_known() -> None:
    assert judged(serving(200.0, chip_busy=None)).decision.reason is Reason.PARTIAL_TELEMETRY
    assert judged(training(chip_busy=None)).decision.reason is not Reason.PARTIAL_TELEMETRY


def test_it_moves_without_a_save() -> None:
    """What never saves and loses all by a stop is moved by its user alone."""
    assert judged(serving(200.0)).decision.reason is not Reason.NOT_CHECKPOINTABLE
    assert outlook(serving(200.0), 1000.0, NOW).restart == 0.0


def test_two_revisions_are_there_until_the_new_one_runs() -> None:
    """The other way round, what is left would be ended first."""
    job = serving(200.0)
    states = dict(job.observed.revisions)
    begun: list[Phase] = []
    assessment = judged(job)
    for _ in range(3):
        job = advance(job, assessment, AUTO, NOW, decision_text)
        migration = job.state.migration
        assert migration is not None and job.state.revision is not None
        begun.append(migration.phase)
        if migration.phase is Phase.DRAINING:
            wanted = [command.ref.revision for command in commands(job) if isinstance(command, EnsureRevision)]
            assert wanted == [1, 2] and not any(isinstance(command, EndRevision) for command in commands(job))
            states[2] = RevisionState(2, True, active=1, running=migration.target.placement.replicas)
            job = changed(job, revisions=states)
    assert begun == [Phase.PLANNED, Phase.DRAINING, Phase.WARMING_UP]
    assert EndRevision(1) in commands(job)


def test_it_never_ends() -> None:
    ended = {1: RevisionState(1, True, succeeded=True)}
    server, job = changed(serving(200.0), revisions=ended), changed(training(), revisions=ended)

    def after(one: Job) -> Job:
        return advance(one, None, AUTO, NOW, decision_text)

    assert after(job).state.finished == "Completed" and after(server).state.finished is None
    assert ends_at(server, NOW) is None and outlook(server, 1000.0, NOW).work_left != 0.0


def test_a_verdict_is_of_its_own_series() -> None:
    """Its chips are half as busy as before, and each second has fewer samples: it is better, and training would be
    worse."""
    here, there = Placement("a100", 4, 1), Placement("a10g", 4, 1)
    move = Migration(
        id="d-1",
        action=Action.MOVE,
        phase=Phase.VERIFYING,
        source=Revision(1, here, "h", 4, 1, NOW, 4.0, NOW),
        target=Revision(2, there, "h", 4, 1, NOW, 4.0, NOW),
        created_at=NOW,
        phase_since=NOW,
        reason=Reason.CHEAPER_POOL_MEETS_TARGETS,
        message="",
        baseline=0.4,
        baseline_windows=12,
    )
    seen = profile(4, 0.2, 0.01, chip_busy=0.2)
    seen = replace(seen, key=seen.key._replace(revision=2))
    found = verify(move, seen, serving(200.0).spec)
    assert (found.verdict, found.throughput) == (Verdict.BETTER, pytest.approx(0.8))
    assert verify(move, seen, training().spec, last=True).verdict is Verdict.WORSE


def test_each_kind_of_work_has_its_handover() -> None:
    assert {type(work) for work in registry.WORKS} == set(handovers.HANDOVERS)

"""What holds back a move that pays."""

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.conditions import Reason
from rightpool.api.policy import PlacementPolicySpec
from rightpool.planning.decision import Action
from rightpool.planning.hysteresis import FleetLimits, job_refusal
from rightpool.planning.ledger import LedgerEntry, Outcome
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.plan import plan
from rightpool.planning.snapshot import JobState
from rightpool.planning.survey import Intent
from tests.unit.planning.jobs import AUTO, NOW, entry, fleet, running, spec


def under_way(name: str, began: float = NOW - 10) -> JobState:
    job = running(name=name)
    assert job.ref is not None
    target = replace(job.ref, revision=2)
    return replace(
        job, migration=Migration("d-1", Action.MOVE, Phase.DRAINING, job.ref, target, began, began, Reason.MOVING, "m")
    )


def policy(**fields: Any) -> PlacementPolicySpec:
    return PlacementPolicySpec.model_validate({"defaultAdaptationMode": "Auto"} | fields)


@pytest.mark.parametrize(
    ("fields", "sections", "reason", "said"),
    [
        ({"last_move_at": NOW - 60}, {}, Reason.COOLING_DOWN, "adaptation.cooldown is 15 min"),
        ({"moves": 4}, {}, Reason.MOVE_LIMIT_REACHED, "adaptation.maxMoves is 4"),
        ({}, {"adaptation": {"maxMoves": 0}}, Reason.MOVE_LIMIT_REACHED, "adaptation.maxMoves is 0"),
    ],
)
def test_a_jobs_own_limits(fields: dict[str, Any], sections: dict[str, Any], reason: Reason, said: str) -> None:
    job = running(made=spec(**sections), **fields)
    decision = plan(fleet([job])).assessments[job.key].decision
    assert (decision.action, decision.reason) == (Action.HOLD, reason)
    assert said in decision.message and "50% less than now" in decision.message
    assert decision.candidate is not None and decision.candidate.placement.chips == 1
    assert job_refusal(job, Intent.LEAVE, AUTO, NOW) is None


def test_a_revision_runs_for_a_while_first() -> None:
    job = running()
    assert job.ref is not None
    job = replace(job, ref=replace(job.ref, since=NOW - 299))
    assert plan(fleet([job])).assessments[job.key].decision.reason is Reason.MINIMUM_RUN_TIME
    assert plan(fleet([job], now=NOW + 1)).assessments[job.key].decision.action is Action.RESIZE


def test_so_many_at_once() -> None:
    limits = FleetLimits([under_way("a"), under_way("b")], policy(maxConcurrentMigrations=3), NOW)
    assert limits.refusal(Intent.SAVE) is None
    limits.admit(demanded=False)
    for intent in (Intent.SAVE, Intent.LEAVE):
        refusal = limits.refusal(intent)
        assert refusal is not None and refusal.reason is Reason.MIGRATION_LIMIT_REACHED
        assert "3 jobs" in refusal.message


def test_so_many_an_hour() -> None:
    jobs = [
        under_way("a"),
        under_way("b", NOW - 7200),
        running(name="c", history=(entry(Outcome.VERIFIED, NOW - 600), entry(Outcome.HELD, NOW - 500))),
        running(
            name="d", history=(entry(Outcome.VERIFIED, NOW - 5000), entry(Outcome.CARRIED_OUT, NOW, action="Update"))
        ),
    ]
    limits = FleetLimits(jobs, policy(maxMovesPerHour=2), NOW)
    refusal = limits.refusal(Intent.SAVE)
    assert refusal is not None and refusal.reason is Reason.MOVE_RATE_LIMIT_REACHED
    assert limits.refusal(Intent.LEAVE) is None
    assert FleetLimits(jobs, policy(maxMovesPerHour=3), NOW).refusal(Intent.SAVE) is None


def ledger(*outcomes: Outcome, age: float = 7200.0) -> list[JobState]:
    entries: list[LedgerEntry] = [entry(outcome, NOW - age + number) for number, outcome in enumerate(outcomes)]
    return [running(name=str(number), history=(made,)) for number, made in enumerate(entries)]


GOOD, BAD = Outcome.VERIFIED, Outcome.ROLLED_BACK


@pytest.mark.parametrize(
    ("outcomes", "opens"),
    [
        ((BAD,), False),
        ((BAD, BAD, BAD), False),
        ((BAD, BAD, BAD, GOOD), True),
        ((BAD, BAD, GOOD, GOOD), False),
        ((BAD,) * 6 + (GOOD,) * 10, False),
        ((GOOD,) * 10 + (BAD,) * 6, True),
        ((BAD, BAD, BAD, Outcome.HELD), False),
    ],
)
def test_the_breaker_opens_on_a_pattern(outcomes: tuple[Outcome, ...], opens: bool) -> None:
    limits = FleetLimits(ledger(*outcomes), policy(), NOW)
    refusal = limits.refusal(Intent.SAVE)
    assert (refusal is not None) is limits.breaker_open is opens
    if refusal is not None:
        assert refusal.reason is Reason.CIRCUIT_BREAKER_OPEN
        assert "maxRolledBackShare 50%" in refusal.message


def test_the_breaker_forgets() -> None:
    assert FleetLimits(ledger(*[BAD] * 8, age=90_000.0), policy(), NOW).refusal(Intent.SAVE) is None

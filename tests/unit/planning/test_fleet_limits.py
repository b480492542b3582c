"""The fleet's plan counts on nobody whom a limit of the fleet does not let move now."""

from __future__ import annotations

from dataclasses import replace

import pytest

from rightpool.api.action import Action
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.moves.beginning import with_decision
from rightpool.reporting.decision_texts import decision_text
from tests.unit.planning.jobs import NOW, changed, entry, fleet, fresh, plan, running, spec
from tests.unit.planning.test_fleet_allocator import HOME, Watching, job, pools_of, wide
from tests.unit.planning.test_plan import FREE
from tests.unit.prediction.fixtures import A100_CHIP, pool


@pytest.mark.parametrize("limit", [{}, {"max_moves_per_hour": 0}, {"max_concurrent_migrations": 0}], ids=str)
def test_nobody_waits_for_chips_of_who_may_not_be_moved_now(limit: dict[str, int]) -> None:
    """Or a job would wait for as long as an hour beside chips that it could have."""
    waits = fresh("new", spec(chips=4, elasticity={"minChips": 2, "maxChips": 4, "batch": "Global"}))
    pools = {"only": pool("only", A100_CHIP, 2.0, total=10, free=2, per_node=10)}
    made = plan(fleet([wide(), waits], pools, FREE.model_copy(update=limit)), allocator=FleetAllocator())
    decision = made.assessments[waits.key].decision
    if not limit:
        assert (decision.action, decision.reason) == (Action.HOLD, Reason.WAITING_FOR_CAPACITY)
    else:
        assert (decision.action, decision.target) == (Action.START, Placement("only", 2, 1))


@pytest.mark.parametrize(("namespace", "who"), [("ns", "wide"), ("theirs", "another job")])
def test_a_job_waits_for_chips_that_another_one_saves_to_give_up(namespace: str, who: str) -> None:
    """Nobody gains more from them, and no user reads names of others' jobs."""
    waits = fresh("new", spec(chips=4, elasticity={"minChips": 2, "maxChips": 4, "batch": "Global"}))
    pools = {"only": pool("only", A100_CHIP, 2.0, total=10, free=2, per_node=10)}
    gives = replace(wide(), key=JobKey(namespace, "wide"))
    made = plan(fleet([gives, waits], pools, FREE), allocator=FleetAllocator())
    begun = with_decision(gives, made.assessments[gives.key], NOW, lambda *_: "")
    assert begun.state.migration is not None
    began = changed(begun, migration=replace(begun.state.migration, phase=Phase.CHECKPOINTING))
    later = plan(fleet([began, waits], pools, FREE), made, FleetAllocator()).assessments[waits.key]
    text = decision_text(waits, later, NOW)
    assert later.decision.reason is Reason.WAITING_FOR_CAPACITY
    assert text == f"{who} is giving up 4 chips of only; after that starts on 4 chips of only"


@pytest.mark.parametrize("undone", [0, 6])
def test_no_job_that_gives_way_is_to_go_where_moves_had_to_be_undone(undone: int) -> None:
    """Or others would leave the chips for it, and it may not come."""
    history = [
        replace(
            job(f"undone-{number}", "cheap"),
            key=JobKey(f"team-{number // 2}", f"undone-{number}"),
            uid=f"undone-{number}",
            state=replace(
                job("undone").state,
                history=(entry(Outcome.ROLLED_BACK, NOW - 600.0 + number, target=Placement("cheap", 4, 1)),),
            ),
        )
        for number in range(undone)
    ]
    made = spec(
        chips=4,
        elasticity={"minChips": 4, "maxChips": 4, "batch": "Global"},
        placement={"pools": {"allow": ["home", "cheap"]}},
        adaptation={"mode": "Auto", "yield": "Move"},
    )
    one, allocator = running(HOME, 100.0, "one", made, pools=pools_of(4)), Watching()
    plan(
        fleet([one, *history], pools_of(4), FREE.model_copy(update={"max_rolled_back_share": 0.5})), allocator=allocator
    )
    assert (Placement("cheap", 4, 1) in allocator.rates["one"]) is not bool(undone)

"""Waves: what the plan does, in the order in which it can be done."""

from __future__ import annotations

from dataclasses import replace

from rightpool.api.choices import AdaptationMode
from rightpool.api.migration import Phase
from rightpool.api.placement import Placement
from rightpool.planning.allocate.allocator import Allocator
from rightpool.planning.allocate.fleet_allocator import FleetAllocator
from rightpool.planning.allocate.plan import Plan
from rightpool.planning.jobs.approval import recommendation_id
from rightpool.planning.jobs.fleet import Fleet
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.moves.beginning import with_decision
from rightpool.simulation.waves import PlannedMove, foreseen
from tests.unit.planning.jobs import GREEDY, NOW, changed, fleet, fresh, plan, spec
from tests.unit.planning.test_fleet_allocator import contested, job, new, only, pools_of, wide
from tests.unit.planning.test_plan import FREE


def ordered(asked: Fleet, allocator: Allocator = GREEDY) -> list[list[PlannedMove]]:
    def planned(one: Fleet) -> Plan:
        return plan(one, allocator=allocator)

    return [list(wave) for wave in foreseen(asked, planned).waves]


def names(found: list[list[PlannedMove]]) -> list[dict[str, str]]:
    return [{move.key.name: move.target.placement.pool for move in wave} for wave in found]


def test_who_waits_for_chips_that_a_move_leaves_comes_after_it() -> None:
    """Four chips at home are all that the one that waits may have."""
    alone = {"minChips": 4, "maxChips": 4}
    waits = fresh("waits", spec(chips=4, elasticity=alone, placement={"pools": {"allow": ["home"]}}))
    found = ordered(fleet([job("able", "cheap"), waits], pools_of(4), FREE))
    assert names(found) == [{"able": "cheap"}, {"waits": "home"}]
    ((first,), (second,)) = found
    assert (first.source is not None and first.source.placement.pool, first.after) == ("home", ())
    assert first.rate is not None and first.target_rate is not None
    assert (second.source, second.after) == (None, (first.key,))


def test_chips_that_a_job_takes_are_nobody_elses_afterwards() -> None:
    jobs = [job(name, "cheap") for name in ("one", "two", "three")]
    assert [len(wave) for wave in ordered(fleet(jobs, pools_of(4), FREE))] == [1]
    assert [len(wave) for wave in ordered(fleet(jobs, pools_of(8), FREE))] == [2]


def test_it_is_what_the_plan_itself_decides() -> None:
    assert names(ordered(contested()))[0] == {"able": "cheap"}
    assert names(ordered(contested(), FleetAllocator())) == [{"able": "fair", "choosy": "cheap"}]


def test_a_job_that_gives_way_comes_before_who_takes_its_chips() -> None:
    found = ordered(fleet([wide(), new()], only(0), FREE), FleetAllocator())
    assert [[(move.key.name, move.target.placement.chips) for move in wave] for wave in found] == [
        [("wide", 4)],
        [("new", 4)],
    ]
    assert found[1][0].after == (JobKey("ns", "wide"),)


def test_who_waits_for_chips_of_a_move_under_way_is_seen() -> None:
    """The plan does nothing more until the chips are free, and is not at its end."""
    one, two = wide(), new()
    whole = fleet([one, two], only(0), FREE)

    def planned(asked: Fleet) -> Plan:
        return plan(asked, allocator=FleetAllocator())

    began = with_decision(one, planned(whole).assessments[one.key], NOW, lambda *_: "")
    assert began.state.migration is not None
    began = changed(began, migration=replace(began.state.migration, phase=Phase.CHECKPOINTING))
    found = foreseen(replace(whole, jobs={began.key: began, two.key: two}), planned)
    assert [(move.key.name, move.target.placement.chips) for move in found.under_way] == [("wide", 4)]
    ((start,),) = found.waves
    assert (start.key, start.after) == (two.key, (one.key,))
    assert not found.held


def test_what_is_recommended_alone_is_done_where_it_is_approved() -> None:
    one = job("able", "cheap")
    adaptation = one.spec.adaptation.model_copy(update={"mode": AdaptationMode.RECOMMEND})
    asks = replace(one, spec=one.spec.model_copy(update={"adaptation": adaptation}))
    asked = fleet([asks], pools_of(4), FREE)
    assert ordered(asked) == []
    approved = replace(asks, approved=recommendation_id(asks, Placement("cheap", 4, 1)))
    assert names(ordered(replace(asked, jobs={approved.key: approved}))) == [{"able": "cheap"}]

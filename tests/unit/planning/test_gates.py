"""Which gate rules which placement out, and with which words."""

from dataclasses import replace
from typing import Any

import pytest

from rightpool.api.action import Action
from rightpool.api.avoided import AvoidedPlacement
from rightpool.api.conditions import Reason
from rightpool.api.ledger import Outcome
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.policy import PlacementPolicySpec
from rightpool.api.traits import ModelTraits
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.node_needs import NodeShape
from rightpool.hardware.pool import Pool
from rightpool.hardware.vendors.nvidia import NVIDIA
from rightpool.planning.allocate.room import Room
from rightpool.planning.jobs.abilities import Abilities
from rightpool.planning.offers.pool_gates import no_room, pool_gate
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.planning.offers.shape import Shape
from rightpool.reporting.candidate_texts import verdict_text
from tests.unit.planning.jobs import (
    AUTO,
    NOW,
    changed,
    decision_and_text,
    entry,
    find,
    fresh,
    judged,
    reason,
    running,
    spec,
)
from tests.unit.prediction.fixtures import A10G, A100, A100_CHIP, pool


@pytest.mark.parametrize(
    ("sections", "where", "why", "message"),
    [
        ({"placement": {"pools": {"deny": ["a10g"]}}}, "a10g", RejectionReason.POOL_DENIED, "placement.pools.deny"),
        ({"placement": {"pools": {"allow": ["a100"]}}}, "a10g", RejectionReason.POOL_DENIED, "placement.pools.allow"),
        ({}, "tpu", RejectionReason.VENDOR_NOT_DECLARED, "placement.pools.allow"),
        ({"placement": {"capacity": "Spot"}}, "a10g", RejectionReason.CAPACITY_TYPE, "no spot"),
        (
            {"elasticity": {"minChips": 5, "maxChips": 6, "batch": "PerChip"}},
            "a10g",
            RejectionReason.SIZE_NOT_OFFERED,
            "5 to 6",
        ),
    ],
)
def test_gates(sections: dict[str, Any], where: str, why: RejectionReason, message: str) -> None:
    result = judged(running(made=spec(**sections)))
    assert reason(result, where) is why
    assert message in verdict_text(find(result, where))


@pytest.mark.parametrize(
    ("selection", "selected"),
    [
        ({}, True),
        ({"allow": ["a10g"]}, True),
        ({"allow": ["a100"]}, False),
        ({"deny": ["a10g"]}, False),
        ({"selector": {"matchLabels": {"tier": "cheap"}}}, True),
        ({"selector": {"matchLabels": {"tier": "fast"}}}, False),
        ({"allow": ["a10g"], "selector": {"matchLabels": {"tier": "fast"}}}, False),
    ],
)
def test_pools_are_selected_by_name_and_label(selection: dict[str, Any], selected: bool) -> None:
    shape = Shape.of(fresh(made=spec(placement={"pools": selection})))
    assert (pool_gate(shape, replace(A10G, labels={"tier": "cheap"}), NVIDIA) is None) is selected


def test_a_job_of_several_chips_has_no_place_on_slices_of_one() -> None:
    parts = load_catalog().get("A100-SXM4-80GB-MIG-1g.10gb")
    pools = {"a100": A100, "mig": pool("mig", parts, 0.1)}
    for low, high in ((4, 4), (2, 8)):
        elastic = {"minChips": low, "maxChips": high, "batch": "PerChip"}
        result = judged(running(made=spec(elasticity=elastic)), pools)
        assert reason(result, "mig") is RejectionReason.SIZE_NOT_OFFERED
        assert "of which a job gets one" in verdict_text(find(result, "mig"))
    result = judged(running(made=spec(elasticity=elastic | {"minChips": 1})), pools)
    assert {c.placement.chips for c in result.candidates if c.placement.pool == "mig"} == {1}


@pytest.mark.parametrize(
    ("targets", "why", "message"),
    [
        ({"maxCostPerHour": "10"}, RejectionReason.COST_PER_HOUR, "$10"),
        ({"maxCostPerMillionSamples": "3"}, RejectionReason.COST_PER_SAMPLE, "$3"),
    ],
)
def test_a_target_that_holds_elsewhere_rules_out_what_misses_it(
    targets: dict[str, str], why: RejectionReason, message: str
) -> None:
    result = judged(running(made=spec(targets=targets)))
    assert reason(result, "a100", 8) is why
    assert message in verdict_text(find(result, "a100", 8))


def test_a_selector_names_what_is_missing() -> None:
    made = spec(placement={"pools": {"selector": {"matchLabels": {"zone": "b"}}}})
    assert "zone=b" in verdict_text(find(judged(running(made=made)), "a10g"))


def test_pools_that_are_allowed_and_not_there_are_named_with_those_that_are() -> None:
    decision, text = decision_and_text(judged(fresh(made=spec(placement={"pools": {"allow": ["h100", "A100"]}}))))
    assert decision.reason is Reason.NO_FEASIBLE_POOL
    assert "placement.pools.allow names h100, A100, and there are only a100, a10g" in text
    one = judged(fresh(made=spec(placement={"pools": {"allow": ["h100", "a10g"]}}))).decision
    assert one.target is not None and one.target.pool == "a10g"


def selecting(**labels: str) -> Any:
    template = {"spec": {"nodeSelector": labels, "containers": [{"name": "trainer", "image": "x"}]}}
    return spec(workload={"job": {"chipsPerReplica": 4, "replicas": 1, "template": template}})


def labelled(made: Pool, *nodes: dict[str, str], **fields: Any) -> Pool:
    return replace(made, shapes={NodeShape(frozenset(node.items())): 8 for node in nodes}, **fields)


def test_a_pool_without_the_nodes_that_the_template_selects_is_ruled_out() -> None:
    ssd, b = {"disk": "ssd"}, {"zone": "b"}
    pools = {"a100": labelled(A100, ssd, b), "a10g": labelled(A10G, ssd | b)}
    either = judged(fresh(made=selecting(disk="ssd")), pools)
    assert either.decision.action is Action.START and len({c.placement.pool for c in either.candidates}) == 2
    both = judged(fresh(made=selecting(disk="ssd", zone="b")), pools)
    assert both.decision.target is not None and both.decision.target.pool == "a10g", "on one and the same node"
    assert reason(both, "a100") is RejectionReason.NODE_SELECTOR
    none, text = decision_and_text(judged(fresh(made=selecting(disk="tape")), pools))
    assert (none.action, none.reason) == (Action.HOLD, Reason.NO_FEASIBLE_POOL)
    assert "no node of a100 has disk=tape, which template.spec.nodeSelector asks for: label them" in text


def test_only_chips_of_nodes_that_the_template_selects_are_free_for_the_job() -> None:
    ssd, tape = frozenset({("disk", "ssd")}), frozenset({("disk", "tape")})
    pools = {
        "a100": replace(
            A100, free=10, shapes={NodeShape(ssd): 2, NodeShape(ssd | {("zone", "b")}): 1, NodeShape(tape): 7}
        )
    }
    made = selecting(disk="ssd")
    waits = judged(fresh(made=made), pools)
    rejection = find(waits, "a100", 4).rejection
    assert rejection is not None and rejection.reason is RejectionReason.NO_CAPACITY
    assert "no room for 4 chips now on nodes that the template selects" in verdict_text(find(waits, "a100", 4))
    assert judged(fresh(made=selecting(disk="tape")), pools).decision.target == Placement("a100", 4, 1)
    three = {"a100": replace(A100, free=10, shapes={NodeShape(ssd): 3, NodeShape(tape): 7})}
    job = running(Placement("a100", 1, 1), made=made)
    sizes = [Placement("a100", n, n) for n in range(1, 6)]
    assert Room(three).fits(job, sizes) == (True, True, True, True, False), "its own chip counts too"


def test_a_pool_without_room_is_told_in_the_same_words_however_little_is_left() -> None:
    """Else an assessment that is kept would go on saying how much was free once."""
    shape, asked = Shape.of(fresh()), Placement("a100", 4, 1)
    none, some = (no_room(shape, asked, replace(A100, free=free)) for free in (0, 3))
    assert none == some


def test_labels_that_are_not_known_rule_nothing_out() -> None:
    made = selecting(disk="tape")
    assert judged(fresh(made=made)).decision.action is Action.START
    grows = {"a100": labelled(A100, {"disk": "ssd"}, growable=8)}
    assert judged(fresh(made=made), grows).decision.action is Action.START


def test_a_selector_that_contradicts_the_pools_own_is_ruled_out_by_it() -> None:
    product = {"nvidia.com/gpu.product": "A100"}
    own = {"a100": replace(A100, node_selector=product, growable=8), "a10g": A10G}
    decision = judged(fresh(made=selecting(**{"nvidia.com/gpu.product": "L4"})), own)
    rejection = find(decision, "a100").rejection
    assert rejection is not None and rejection.reason is RejectionReason.NODE_SELECTOR
    assert "asks for nvidia.com/gpu.product=L4" in verdict_text(find(decision, "a100"))


def test_a_job_that_runs_is_not_moved_where_its_template_does_not_let_it() -> None:
    pools = {"a100": labelled(A100, {"disk": "ssd"}), "a10g": labelled(A10G, {"disk": "tape"})}
    job = running(Placement("a100", 1, 1), 100.0, made=selecting(disk="ssd"))
    assert reason(judged(job, pools), "a10g") is RejectionReason.NODE_SELECTOR
    relabelled = {"a100": labelled(A100, {"disk": "tape"})}
    assert judged(job, relabelled).decision.action is Action.KEEP, "what runs stays, as Kubernetes has it"


def test_another_vendor_is_crossed_to_by_the_users_word() -> None:
    made = spec(placement={"pools": {"allow": ["a100", "tpu"]}})
    assert reason(judged(running(made=made)), "tpu", 4) is not RejectionReason.VENDOR_NOT_DECLARED


def test_memory_must_fit_with_some_to_spare() -> None:
    tight = running(ratios={"memory_used": 23e9})
    assert reason(judged(tight), "a10g", 4) is RejectionReason.MEMORY
    assert reason(judged(running(ratios={"memory_used": 22e9})), "a10g", 4) is not RejectionReason.MEMORY
    text = verdict_text(find(judged(tight), "a10g", 4))
    assert "21.4 GiB" in text and "measured" in text and "and 5% to spare" in text, "or 21.4 would seem to fit in 22.4"


def test_a_frozen_base_takes_memory_however_small_its_adapters_are() -> None:
    """23 GB of a chip: a base of 20 GB, adapters of a hundredth of that, and activations."""
    profile = running(ratios={"memory_used": 23e9}).observed.profile
    assert profile is not None
    lora = replace(profile, traits=ModelTraits(parameter_bytes=200_000_000, model_bytes=20_200_000_000))
    assert reason(judged(changed(running(), profile=lora)), "a10g", 4) is RejectionReason.MEMORY


def test_fewer_chips_of_a_smaller_kind_may_not_hold_what_is_split() -> None:
    job = running(ratios={"memory_used": 10e9})
    assert reason(judged(job), "a10g", 1) is RejectionReason.MEMORY
    assert reason(judged(job), "a100", 1) is not RejectionReason.MEMORY
    seen = changed(
        job,
        history=(
            entry(
                Outcome.VERIFIED,
                NOW - 9e4,
                target=Placement("a10g", 1, 1),
                baseline_throughput=1000.0,
                realised_throughput=90.0,
            ),
        ),
    )
    assert reason(judged(seen), "a10g", 1) is not RejectionReason.MEMORY


def test_unknown_memory_goes_to_no_smaller_chip() -> None:
    unknown = running(ratios={"memory_used": None})
    assert reason(judged(unknown), "a10g", 4) is RejectionReason.MEMORY
    declared = running(made=spec(placement={"memoryPerChip": "14Gi"}), ratios={"memory_used": None})
    assert reason(judged(declared), "a10g", 4) is not RejectionReason.MEMORY


def test_unknown_prices_are_never_free() -> None:
    free = pool("a10g", A10G.accelerator, None, per_node=4)
    assert reason(judged(running(), {"a100": A100, "a10g": free}), "a10g", 4) is RejectionReason.PRICE_UNKNOWN
    hold = judged(running(), {"a100": pool("a100", A100_CHIP, None), "a10g": A10G})
    assert (hold.decision.action, hold.decision.reason) == (Action.HOLD, Reason.PRICE_UNKNOWN)
    assert all(c.rejection is not None for c in hold.candidates)


def test_an_undone_move_is_not_repeated() -> None:
    there = AvoidedPlacement("a100", 1, "RolledBack", "worse", NOW + 3600)
    assert reason(judged(running(avoid=(there,))), "a100", 1) is RejectionReason.AVOIDED
    assert reason(judged(running(avoid=(replace(there, until=NOW - 1),))), "a100", 1) is None


def test_chips_that_others_were_promised_are_not_taken() -> None:
    made = spec(chips=1, targets={"objective": "MinimizeTime"}, placement={"pools": {"allow": ["a100"]}})
    job = running(Placement("a100", 1, 1), 100.0, made=made)
    little = {"a100": pool("a100", A100_CHIP, 4.0, free=3)}
    assert judged(job, little).decision.target == Placement("a100", 4, 4)
    full = {"a100": pool("a100", A100_CHIP, 4.0, free=0)}
    held = judged(job, full)
    assert (held.decision.action, held.decision.reason) == (Action.HOLD, Reason.WAITING_FOR_CAPACITY)
    assert reason(held, "a100", 8) is RejectionReason.NO_CAPACITY
    grown = {"a100": pool("a100", A100_CHIP, 4.0, free=0, growable=64)}
    assert judged(job, grown).decision.target == Placement("a100", 8, 8)


def test_spot_is_a_candidate_of_its_own() -> None:
    sold = {"a100": pool("a100", A100_CHIP, 4.0, spot=1.0)}
    decision = judged(running(made=spec(placement={"capacity": "Any"})), sold).decision
    assert decision.target == Placement("a100", 1, 1, CapacityType.SPOT)


def spot(price: float, often: float | None = None, policy: PlacementPolicySpec = AUTO, restart: float = 900.0) -> Any:
    """A job that takes a quarter of an hour to restart, offered its own chips as spot."""
    sold = pool("a100", A100_CHIP, 4.0, spot=price)
    sold = replace(sold, price=replace(sold.price, interruptions=often))
    made = spec(placement={"capacity": "Any"}, elasticity={"minChips": 4, "maxChips": 4})
    moved = entry(Outcome.VERIFIED, NOW - 90_000.0, lost_seconds=restart, target=Placement("t4", 4, 1))
    return judged(running(made=made, history=(moved,)), {"a100": sold}, policy)


def test_a_spot_offer_carries_what_interruptions_cost() -> None:
    """At 12 a day of a quarter of an hour an eighth of the time is lost, and 12% less is no saving."""
    often = {"spotInterruptionsPerDay": "12"}
    many = PlacementPolicySpec.model_validate({"defaultAdaptationMode": "Auto", **often})
    calm, busy = spot(3.5), spot(3.5, policy=many)
    assert calm.decision.target == Placement("a100", 4, 1, CapacityType.SPOT)
    assert busy.decision.action is not Action.MOVE and busy.decision.action is not Action.RESIZE
    assert spot(3.5, often=12.0).decision.action is busy.decision.action, "a pool's own rate"
    assert spot(3.5, often=0.0, policy=many).decision.target == calm.decision.target
    assert spot(3.5, policy=many, restart=30.0).decision.target == calm.decision.target, "who restarts quickly"
    dear = next(c for c in busy.candidates if c.placement.capacity is CapacityType.SPOT)
    free = next(c for c in spot(3.5, often=0.0).candidates if c.placement.capacity is CapacityType.SPOT)
    assert dear.cost_per_million is not None and free.cost_per_million is not None
    assert dear.cost_per_million.median == pytest.approx(free.cost_per_million.median / 0.875)
    assert "12% of the time lost to interruptions" in verdict_text(dear)


# --- objects that somebody else has made -----------------------------------------------------------------------------

STIFF = Abilities("JobSet", resize=False, affinity=False)


def test_an_adopted_object_that_keeps_its_size_is_offered_no_other() -> None:
    result = judged(replace(running(made=spec()), able=STIFF))
    sizes = {c.placement.chips: c for c in result.candidates if c.placement.pool == "a10g"}
    assert "keeps" not in verdict_text(sizes[4]) and len(sizes) > 1
    for chips, candidate in sizes.items():
        if chips != 4:
            assert candidate.rejection is not None
            assert candidate.rejection.reason is RejectionReason.SIZE_NOT_OFFERED
            assert "a JobSet keeps its 1 pod of 4 chips where it is adopted" in verdict_text(candidate)
    small = replace(A10G, chips_per_node=2, total=64)
    result = judged(replace(running(made=spec()), able=STIFF), {"a100": A100, "a10g": small})
    assert {c.rejection.reason for c in result.candidates if c.placement.pool == "a10g" and c.rejection} == {
        RejectionReason.SIZE_NOT_OFFERED
    }
    able = replace(running(made=spec()), able=STIFF._replace(resize=True))
    assert all(c.rejection is None or "keeps" not in verdict_text(c) for c in judged(able).candidates)


@pytest.mark.parametrize(
    ("selector", "spot", "able", "rejected"),
    [
        ({}, 0.5, STIFF, True),
        ({"cloud.google.com/gke-spot": "true"}, 0.5, STIFF, False),
        ({}, None, STIFF, False),
        ({}, 0.5, STIFF._replace(affinity=True), False),
        ({}, 0.5, None, False),
    ],
)
def test_a_pool_of_both_capacities_is_none_for_what_takes_no_affinity(
    selector: dict[str, str], spot: float | None, able: Abilities | None, rejected: bool
) -> None:
    there = replace(A10G, node_selector=selector, price=replace(A10G.price, spot=spot))
    job = replace(running(made=spec()), able=able)
    result = judged(job, {"a100": replace(A100, price=replace(A100.price, spot=0.5)), "a10g": there})
    found = reason(result, "a10g")
    assert (found is RejectionReason.CAPACITY_NOT_SELECTABLE) is rejected
    if rejected:
        assert "a JobSet can't tell apart" in verdict_text(find(result, "a10g"))
    assert result.current is not None, "where it is it may stay"

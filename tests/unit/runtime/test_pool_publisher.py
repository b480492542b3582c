"""The status of pools, also where several operators with disjoint namespaces write it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from rightpool.api.kubernetes import Resource
from rightpool.api.outcome import JobSize, MoveOutcome
from rightpool.api.units import read_unix_time
from rightpool.cluster.client import Listing
from rightpool.cluster.errors import Conflict, Forbidden
from rightpool.cluster.events import EventRecorder
from rightpool.cluster.resources import EVENTS, PODS
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.chart_values import with_values
from rightpool.hardware.node import NodeFacts, Taint
from rightpool.planning.offers.evidence import BreakerOpen, Limit, Suspected
from rightpool.planning.offers.rejection import RejectionReason
from rightpool.runtime.act.pool_publisher import PoolPublisher, pool_status
from rightpool.runtime.act.status_publisher import StatusPublisher
from rightpool.runtime.observe.facts import pod_facts
from rightpool.runtime.observe.pool_inventory import PoolInventory, kept_outcomes, kept_prices, take_inventory
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from tests.unit.runtime.makers import Body, pod

NOW = 1_800_000_000.0
SPEC = {
    "accelerator": "A100-SXM4-80GB",
    "chipsPerNode": 8,
    "resourceName": "nvidia.com/gpu",
    "nodeSelector": {"team": "ml"},
}
NODES = [NodeFacts(f"node-{n}", {"team": "ml"}, chips={"nvidia.com/gpu": 8}) for n in (1, 2)]


class Lister:
    """Other pods by namespace; under None those of all namespaces."""

    def __init__(self, pods: dict[str | None, list[Body]]) -> None:
        self.pods = pods

    def pages(self, resource: Resource, namespace: str | None = None, **_: Any) -> Iterable[Listing]:
        yield Listing(self.pods[namespace] if resource is PODS else [], "1", "")


def inventory_of(status: Mapping[str, Any], namespaces: Sequence[str], pods: list[Body]) -> PoolInventory:
    """The inventory of an operator that watches these namespaces, in which one job has these pods."""
    usage = ChipUsage(Lister({None: [], **{name: [] for name in namespaces}}), interval=0.0, namespaces=namespaces)
    usage.refresh({"nvidia.com/gpu"})
    stored = {"metadata": {"name": "a100", "uid": "u", "generation": 3}, "spec": SPEC, "status": status}
    facts = [found for body in pods if (found := pod_facts(body)) is not None]
    return take_inventory([stored], NODES, facts, usage, load_catalog())


def test_an_operator_of_all_namespaces_reports_allocated_chips() -> None:
    status = pool_status("a100", inventory_of({}, (), [pod()]), NOW)
    assert status["chips"] == {"total": 16, "allocated": 4, "free": 12}


def test_an_operator_of_some_namespaces_reports_total_chips_only() -> None:
    fleet = inventory_of({}, ("research",), [pod()])
    assert fleet.inventory.pools["a100"].free == 12, "planning uses the best known number"
    assert pool_status("a100", fleet, NOW)["chips"] == {"total": 16}


def test_two_operators_with_disjoint_namespaces_write_the_same_status() -> None:
    """Otherwise they would overwrite each other's status in every cycle."""
    status: Mapping[str, Any] = {}
    written = 0
    for moment in range(6):
        one = moment % 2 == 0
        fleet = inventory_of(status, ("research",) if one else ("prod",), [pod()] if one else [])
        new = pool_status("a100", fleet, NOW + moment)
        written += new != status
        status = new
    assert written == 1


@pytest.mark.parametrize(
    ("namespaces", "closed", "verdict"),
    [
        ((), {"a100": (RejectionReason.POOL_DENIED,)}, ("False", "NobodyAllowed")),
        ((), {}, ("True", "JobsAllowed")),
        ((), None, ("Unknown", "NoJobsSeen")),
        (("research",), {"a100": (RejectionReason.POOL_DENIED,)}, ("Unknown", "NoJobsSeen")),
    ],
)
def test_a_pool_says_that_nobody_may_use_it(
    namespaces: Sequence[str], closed: dict[str, tuple[RejectionReason, ...]] | None, verdict: tuple[str, str]
) -> None:
    status = pool_status("a100", inventory_of({}, namespaces, []), NOW, closed=closed)
    found = next(each for each in status["conditions"] if each["type"] == "Allowed")
    assert (found["status"], found["reason"]) == verdict
    assert ("PoolDenied" in found["message"]) is (verdict[0] == "False")


def test_what_keeps_everybody_from_a_taint_is_in_ready() -> None:
    """Whom a taint keeps away is no matter of the jobs: the pool says which pods tolerate it."""
    tainted = [replace(node, taints=(Taint("team", "NoSchedule", "other"),)) for node in NODES]
    usage = ChipUsage(Lister({None: []}), interval=0.0, namespaces=())
    stored = {"metadata": {"name": "a100", "uid": "u", "generation": 3}, "spec": SPEC, "status": {}}
    status = pool_status("a100", take_inventory([stored], tainted, [], usage, load_catalog()), NOW, closed={})
    found = {each["type"]: each for each in status["conditions"]}
    assert (found["Ready"]["status"], found["Ready"]["reason"]) == ("False", "NodesNotReady")
    assert "team" in found["Ready"]["message"]
    assert (found["Allowed"]["status"], found["Allowed"]["reason"]) == ("Unknown", "NoNodes")


def test_a_pool_says_that_moves_to_it_are_held_back() -> None:
    def trusted(against: Limit | None) -> tuple[str, str, str]:
        status = pool_status("a100", inventory_of({}, (), []), NOW, (), against)
        (found,) = (one for one in status["conditions"] if one["type"] == "Trusted")
        return found["status"], found["reason"], found["message"]

    assert trusted(None) == ("True", "BreakerClosed", "")
    suspected = trusted(Suspected("a100", None, False, 2, 3, NOW + 600.0))
    assert suspected[:2] == ("False", "PoolSuspected")
    assert suspected[2].startswith("2 of the last 3 moves to a100 had to be undone; one job may try it from ")
    assert trusted(BreakerOpen(4, 5, 0.5, NOW + 600.0))[:2] == ("False", "CircuitBreakerOpen")


def test_outcomes_of_moves_are_kept_in_the_status_and_read_back() -> None:
    outcomes = (
        MoveOutcome("m1", "t1", NOW - 660, NOW - 60, JobSize.ONE_POD, undone=True),
        MoveOutcome("m2", "t2", NOW - 630, NOW - 30, JobSize.SEVERAL_PODS, undone=False),
    )
    fleet = inventory_of({}, (), [])
    status = pool_status("a100", fleet, NOW, outcomes)
    again = inventory_of(status, (), [])
    assert kept_outcomes(again.objects) == {"a100": outcomes}
    assert pool_status("a100", again, NOW + 10, outcomes) == status, "nothing to write"
    assert kept_outcomes({"a100": {"status": {"outcomes": [{"undone": "maybe"}]}}}) == {}


def test_prices_are_kept_in_the_status_and_a_change_is_added() -> None:
    def after(status: Mapping[str, Any], dollars: str, now: float, **spec: str) -> Mapping[str, Any]:
        stored = {
            "metadata": {"name": "a100", "uid": "u", "generation": 3},
            "spec": {**SPEC, "price": {"perChipHour": dollars}, **spec},
            "status": status,
        }
        fleet = take_inventory([stored], NODES, [], ChipUsage(Lister({None: []}), interval=0.0), load_catalog())
        return pool_status("a100", fleet, now)

    first = after({}, "3.50", NOW)
    assert [price["perChipHour"] for price in first["prices"]] == ["3.50"]
    assert after(first, "3.50", NOW + 10) == first, "nothing to write"
    assert after(first, "3.60", NOW + 10)["prices"] == first["prices"], "the same price"
    second = after(first, "2.50", NOW + 20)
    assert [price["perChipHour"] for price in second["prices"]] == ["3.50", "2.50"]
    assert kept_prices({"a100": {"status": second}})["a100"][1].since == NOW + 20
    assert after(second, "9.00", NOW + 30, accelerator="X1")["prices"] == second["prices"], "it can't be used"
    assert kept_prices({"a100": {"status": {"prices": [{"since": "yesterday"}]}}}) == {}


def test_operators_that_see_two_prices_of_a_pool_do_not_fill_its_history_in_turn() -> None:
    values = [json.dumps({"prices": {SPEC["accelerator"]: {"perChipHour": price}}}) for price in ("2", "3")]
    status: Mapping[str, Any] = {}
    for cycle in range(200):
        stored = {"metadata": {"name": "a100", "uid": "u", "generation": 3}, "spec": SPEC, "status": status}
        usage = ChipUsage(Lister({None: []}), interval=0.0)
        fleet = take_inventory([stored], NODES, [], usage, with_values(load_catalog(), values[cycle % 2]))
        status = pool_status("a100", fleet, NOW + 8.0 * cycle)
        begun = [read_unix_time(price["since"]) for price in status["prices"]]
        assert all(later - earlier >= 300.0 for earlier, later in pairwise(begun[1:]))
    assert 3 < len(status["prices"]) < 8


def figures(spec: Mapping[str, Any]) -> tuple[str, str, str]:
    """Status, reason and message of FiguresVerified."""
    stored = {"metadata": {"name": "pool", "uid": "u", "generation": 1}, "spec": {**SPEC, **spec}}
    usage = ChipUsage(Lister({None: []}), interval=0.0)
    status = pool_status("pool", take_inventory([stored], NODES, [], usage, load_catalog()), NOW)
    (found,) = (one for one in status["conditions"] if one["type"] == "FiguresVerified")
    return found["status"], found["reason"], found["message"]


def test_how_sure_the_figures_of_a_chip_are_is_a_condition() -> None:
    status, reason, message = figures({})
    assert (status, reason) == ("True", "TwoSources")
    assert "data sheet" in message
    status, reason, message = figures({"accelerator": "A10G-24GB"})
    assert (status, reason) == ("False", "OneSource")
    assert message.startswith("no second source confirms the figures of A10G-24GB; ")
    chip = {"memory": "48e9", "memoryGigabytesPerSecond": "864", "teraflops": {"bf16": "119.5"}}
    status, reason, message = figures({"accelerator": "L30-48GB", "chip": chip})
    assert (status, reason) == ("False", "ChipDeclared")
    assert message.startswith("spec.chip of AcceleratorPool pool says what L30-48GB can do")
    status, reason, message = figures({"accelerator": "L30-48GB"})
    assert (status, reason, message) == ("Unknown", "AcceleratorUnknown", "see Ready about L30-48GB")


def conditions(spec: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> dict[str, tuple[str, str, str]]:
    """Status, reason and message by type, where the chart has these values."""
    stored = {"metadata": {"name": "pool", "uid": "u", "generation": 1}, "spec": {**SPEC, **spec}}
    catalog = with_values(load_catalog(), json.dumps(values or {}))
    fleet = take_inventory([stored], NODES, [], ChipUsage(Lister({None: []}), interval=0.0), catalog)
    made = pool_status("pool", fleet, NOW)["conditions"]
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in made}


def test_a_chip_that_nobody_knows_is_estimated_and_says_the_remedy() -> None:
    found = conditions({"accelerator": "X1", "chip": {"memory": "48Gi"}, "price": {"perChipHour": "2"}})
    assert found["Ready"][:2] == ("True", "NodesReady")
    for kind in ("Calibrated", "FiguresVerified"):
        status, reason, message = found[kind]
        assert (status, reason) == ("False", "PoolUncalibrated")
        assert "estimated from 48 GiB of memory and $2 a chip-hour" in message
        assert "`rightpool calibrate pool`" in message and "spec.chip" in message
    status, reason, message = conditions({"accelerator": "X1", "chip": {"watts": "300"}})["Ready"]
    assert (status, reason) == ("False", "ChipContradictory") and message.startswith("spec.chip.memory: ")


def test_what_the_charts_values_say_is_in_the_conditions() -> None:
    key = SPEC["accelerator"]
    found = conditions({}, {"chips": {key: {"watts": "300"}}, "prices": {key: {"perChipHour": "2"}}})
    assert found["FiguresVerified"][:2] == ("False", "ChipFromValues")
    assert found["FiguresVerified"][2].startswith(f"catalog.chips.{key} of the chart's values says what")
    message = "$2 for a chip-hour, by catalog.prices of the chart's values"
    assert found["PriceKnown"] == ("True", "PriceFromValues", message)


def test_a_mistake_in_the_charts_values_stops_no_pool_and_is_told() -> None:
    key = SPEC["accelerator"]
    found = conditions({}, {"chips": {key: {"watts": "lots"}}, "prices": {key: {"perChipHour": "free"}}})
    assert found["Ready"] == ("True", "NodesReady", "2 nodes with 16 chips")
    assert found["FiguresVerified"][:2] == ("False", "ValuesInvalid")
    assert found["FiguresVerified"][2].startswith(f"catalog.chips.{key}.watts of the chart's values: 'lots' is not")
    assert found["PriceKnown"][:2] == ("True", "ValuesInvalid")
    assert found["PriceKnown"][2].startswith(f"catalog.prices.{key}.perChipHour of the chart's values: 'free' is not")
    declared = conditions({"price": {"perChipHour": "2"}}, {"prices": {key: {"perChipHour": "free"}}})
    assert declared["PriceKnown"][:2] == ("True", "PriceDeclared")
    unread = conditions({}, {"chips": []})
    assert unread["Ready"][0] == "True" and unread["FiguresVerified"][:2] == ("False", "ValuesInvalid")
    lost = conditions({"accelerator": "X1"}, {"chips": {"X1": {"vendor": "NVIDIA", "memory": "48 gigs"}}})
    assert lost["Ready"][:2] == ("False", "AcceleratorUnknown") and "catalog.chips.X1.memory" in lost["Ready"][2]


CALIBRATION = {
    "accelerator": "A100-SXM4-80GB",
    "measuredAt": "2026-11-22T21:00:00Z",
    "reason": "Measured",
    "message": "NVIDIA A100-SXM4-80GB: 260 TFLOP/s in bf16",
    "device": "NVIDIA A100-SXM4-80GB",
    "software": "PyTorch 2.7.1, CUDA 12.6",
    "node": "node-1",
    "chips": 8,
    "teraflops": {"bf16": "260"},
}


def calibrated(calibration: Any, accelerator: str = "A100-SXM4-80GB") -> dict[str, tuple[str, str, str]]:
    """The conditions about what the chips can do, by type: status, reason and message."""
    spec = {**SPEC, "accelerator": accelerator}
    stored = {"metadata": {"name": "pool", "uid": "u", "generation": 1}, "spec": spec}
    stored["status"] = {"calibration": calibration}
    usage = ChipUsage(Lister({None: []}), interval=0.0)
    status = pool_status("pool", take_inventory([stored], NODES, [], usage, load_catalog()), NOW)
    assert "calibration" not in status, "the operator does not own what it has not measured"
    return {
        one["type"]: (one["status"], one["reason"], one["message"])
        for one in status["conditions"]
        if one["type"] in ("FiguresVerified", "Calibrated")
    }


def test_what_was_measured_is_in_the_conditions() -> None:
    found = calibrated(CALIBRATION)
    assert found["Calibrated"] == ("True", "Measured", CALIBRATION["message"])
    assert found["FiguresVerified"] == ("True", "Measured", f"measured 2026-11-22: {CALIBRATION['message']}")
    assert calibrated(None)["Calibrated"][:2] == ("Unknown", "NotMeasured")


def test_a_calibration_is_void_when_the_chip_changes() -> None:
    found = calibrated(CALIBRATION, "A10G-24GB")
    assert found["Calibrated"][:2] == ("False", "CalibrationVoid")
    assert found["FiguresVerified"][:2] == ("False", "OneSource")


def test_a_refused_calibration_says_why() -> None:
    found = calibrated({**CALIBRATION, "reason": "AbovePeak", "message": "bf16 at 900 TFLOP/s"})
    assert found["Calibrated"] == ("False", "AbovePeak", "bf16 at 900 TFLOP/s")
    assert found["FiguresVerified"][:2] == ("True", "TwoSources")


def test_a_calibration_that_nobody_can_read_stops_nothing() -> None:
    for broken in ({"accelerator": 3}, {**CALIBRATION, "reason": "OfTheFuture"}, [], "yes"):
        found = calibrated(broken)
        assert found["Calibrated"][:2] == ("Unknown", "CalibrationUnreadable"), broken
        assert found["FiguresVerified"][:2] == ("True", "TwoSources")


class Server:
    """One pool of an API server, whose Events may be forbidden."""

    def __init__(self, spec: Mapping[str, Any], *, forbidden: bool = False) -> None:
        self.pool: Body = {"metadata": {"name": "a100", "uid": "u", "generation": 1, "resourceVersion": "1"}}
        self.pool["spec"] = dict(spec)
        self.forbidden = forbidden
        self.posted: list[Body] = []

    def apply(self, resource: Resource, body: Body, *, subresource: str | None = None) -> Body:
        version = self.pool["metadata"]["resourceVersion"]
        if body["metadata"].get("resourceVersion", version) != version:
            raise Conflict("the object has been modified", status=409)
        about = {**self.pool["metadata"], "resourceVersion": str(int(version) + 1)}
        self.pool = {**self.pool, "metadata": about, "status": body["status"]}
        return self.pool

    def submit(self, function: Any, /, *arguments: Any) -> None:
        function(*arguments)

    def create(self, resource: Resource, body: Body) -> Body:
        assert resource is EVENTS
        self.posted.append(body)
        if self.forbidden:
            raise Forbidden("events is forbidden", status=403)
        return body

    def statements(self) -> list[tuple[str, str]]:
        return [(body["type"], body["reason"]) for body in self.posted]


class Forbidding(Lister):
    """Pods may not be listed."""

    def pages(self, resource: Resource, namespace: str | None = None, **selectors: Any) -> Iterable[Listing]:
        raise Forbidden("pods is forbidden")


def publisher_of(server: Any) -> PoolPublisher:
    recorder = EventRecorder(server, leads=lambda: True, term=lambda: 0, instance="a", clock=lambda: 0.0)
    store = Store()
    return PoolPublisher(server, store, StatusPublisher(server, store, recorder.post))


def seen(server: Server) -> PoolInventory:
    return take_inventory([server.pool], NODES, [], ChipUsage(Lister({None: []}), interval=0.0), load_catalog())


def test_chips_of_pods_that_may_not_be_listed_are_missing_and_ready_says_why() -> None:
    usage, objects = ChipUsage(Forbidding({}), interval=0.0), [Server(SPEC).pool]
    before = take_inventory(objects, NODES, [], usage, load_catalog())
    assert usage.refresh({"nvidia.com/gpu"})
    fleet = take_inventory(objects, NODES, [], usage, load_catalog(), before)
    status = pool_status("a100", fleet, NOW)
    assert status["chips"] == {"total": 16}
    assert fleet.whole, "jobs are seen"
    ready = next(one for one in status["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("True", "PodsNotCounted")
    assert ready["message"] == (
        "2 nodes with 16 chips, and those that other pods use count as free, because the operator may not list pods: "
        "give its ServiceAccount that right"
    )


def test_operators_of_some_namespaces_write_the_same_whichever_may_list_pods() -> None:
    """Else they would write the status of each pool in turn, cycle by cycle."""
    objects = [Server(SPEC).pool]
    written = []
    for lister in (Lister({"vision": []}), Forbidding({})):
        usage = ChipUsage(lister, interval=0.0, namespaces=["vision"])
        usage.refresh({"nvidia.com/gpu"})
        written.append(pool_status("a100", take_inventory(objects, NODES, [], usage, load_catalog()), NOW))
    assert written[0] == written[1]


CONTRADICTORY = {
    **SPEC,
    "nodeSelector": {"karpenter.sh/capacity-type": "on-demand"},
    "price": {"perChipHour": "3.5", "spotPerChipHour": "1.25"},
}


def test_a_contradictory_price_is_told_once_also_by_a_new_process_and_so_is_its_correction() -> None:
    server = Server(CONTRADICTORY)
    publisher = publisher_of(server)
    assert [publisher.publish(seen(server), NOW + second) for second in range(3)] == [1, 0, 0]
    assert server.statements() == [("Warning", "PriceContradictory")]
    [body] = server.posted
    assert body["metadata"]["namespace"] == "default", "where Events of objects without a namespace are"
    assert body["message"].startswith("spec.price")
    assert "remove the spot price" in body["message"]
    ready = next(one for one in server.pool["status"]["conditions"] if one["type"] == "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "PriceContradictory")
    assert publisher_of(server).publish(seen(server), NOW + 10) == 0
    server.pool["spec"] = SPEC
    assert publisher_of(server).publish(seen(server), NOW + 20) == 1
    assert server.statements()[1:] == [("Normal", "NodesReady")]


def test_that_nobody_may_use_a_pool_is_told_once_and_so_is_its_end() -> None:
    server = Server(SPEC)
    closed = {"a100": (RejectionReason.POOL_DENIED,)}
    publisher = publisher_of(server)
    assert [publisher.publish(seen(server), NOW + second, closed=closed) for second in range(3)] == [1, 0, 0]
    assert server.statements() == [("Warning", "NobodyAllowed")]
    assert publisher_of(server).publish(seen(server), NOW + 10, closed={}) == 1
    assert server.statements()[1:] == [("Normal", "JobsAllowed")]


def test_of_two_operators_that_see_the_same_turn_one_says_it() -> None:
    server = Server(CONTRADICTORY)
    before = seen(server)
    assert publisher_of(server).publish(before, NOW) == 1
    assert publisher_of(server).publish(before, NOW) == 0, "it saw the pool as it was"
    assert server.statements() == [("Warning", "PriceContradictory")]


def test_without_the_right_to_events_the_status_is_written_and_one_event_is_tried() -> None:
    server = Server(CONTRADICTORY, forbidden=True)
    publisher = publisher_of(server)
    assert [publisher.publish(seen(server), NOW + second) for second in range(5)] == [1, 0, 0, 0, 0]
    assert len(server.posted) == 1

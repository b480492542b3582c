"""Nothing that the operator goes on from is lost by writing it into the status and reading it back."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from rightpool.api.account import Account
from rightpool.api.action import Action
from rightpool.api.avoided import AvoidedPlacement
from rightpool.api.conditions import Reason
from rightpool.api.counterfactual import Counterfactual
from rightpool.api.estimate import Estimate
from rightpool.api.interruption import Interruption
from rightpool.api.ledger import LedgerEntry, Outcome
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import CapacityType, Placement
from rightpool.api.premise import Premise, PremiseKind
from rightpool.api.progress import JobProgress
from rightpool.api.revision import Revision
from rightpool.api.state import JobState
from rightpool.api.status import ProfileStatus
from rightpool.api.units import (
    Dollars,
    Figure,
    Quantity,
    Seconds,
    Share,
    read_unix_time,
    write_unix_time,
    write_unix_time_up,
    write_whole_unix_time,
)
from rightpool.api.work_unit import WorkUnit

times = st.floats(1.6e9, 2.1e9)
rates = st.floats(1e-3, 1e7)
dollars = st.floats(0, 1e6)
words = st.text("abc 0.1%$", max_size=20)


@st.composite
def placements(draw: st.DrawFn) -> Placement:
    replicas = draw(st.integers(1, 16))
    capacity = draw(st.sampled_from(CapacityType))
    return Placement(draw(st.sampled_from(("a100", "a10g"))), replicas * draw(st.integers(1, 8)), replicas, capacity)


@st.composite
def revisions(draw: st.DrawFn) -> Revision:
    return Revision(
        revision=draw(st.integers(1, 9999)),
        placement=draw(placements()),
        workload_hash=draw(st.text("0123456789abcdef", min_size=16, max_size=16)),
        requested_chips=draw(st.none() | st.integers(1, 64)),
        requested_replicas=draw(st.none() | st.integers(1, 16)),
        created_at=draw(times),
        cost_per_hour=draw(st.none() | rates),
        since=draw(st.none() | times),
        generation=draw(st.none() | st.integers(1, 10**6)),
    )


loadings = st.dictionaries(st.sampled_from(("window", "host", "chips of a10g")), st.floats(-2, 2))
premises = st.builds(
    Premise,
    kind=st.sampled_from(PremiseKind),
    names=st.none() | st.lists(words, min_size=1, max_size=2).map(tuple),
    number=st.none() | rates,
)
estimates = st.builds(
    Estimate,
    rates | st.just(0.0),
    st.floats(0, 2),
    basis=st.lists(premises, max_size=3).map(tuple),
    shared=loadings.map(lambda made: tuple(sorted(made.items()))),
)
counterfactuals = st.builds(
    Counterfactual,
    unit=st.sampled_from(WorkUnit),
    placement=placements(),
    cost_per_hour=st.none() | rates,
    per_hour=st.just(0.0) | rates,
    since=st.none() | times,
    dollars=dollars,
    speed=st.none() | rates,
    baseline=st.none() | rates,
    baseline_at=st.none() | times,
    rate=st.none() | rates,
    rate_at=st.none() | times,
    rate_windows=st.integers(0, 24),
    readings=st.integers(0, 9),
    spent_before=dollars,
    saved_before=st.floats(-1e6, 1e6),
)
interruptions = st.builds(
    Interruption,
    id=st.just("d-1"),
    since=times,
    spent_before=dollars,
    repeats=st.integers(0, 10**12),
    unit=st.sampled_from(WorkUnit),
    demanded=st.booleans(),
    counterfactual=st.none() | counterfactuals,
)
progresses = st.builds(
    JobProgress,
    unit=st.sampled_from(WorkUnit),
    done=st.integers(0, 10**15),
    since=st.none() | times,
    revision=st.none() | st.integers(1, 99),
    counter=st.none() | st.integers(0, 10**15),
    rate=st.none() | rates,
    useful_seconds=st.floats(0, 1e7),
    rated=st.integers(0, 10**15),
)
migrations = st.builds(
    Migration,
    id=st.integers(1, 999).map("d-{}".format),
    unit=st.sampled_from(WorkUnit),
    action=st.sampled_from(Action),
    phase=st.sampled_from(Phase),
    source=revisions(),
    target=revisions(),
    created_at=times,
    phase_since=times,
    reason=st.sampled_from(Reason),
    message=words,
    predicted=st.none() | estimates,
    baseline=st.none() | rates,
    healthy_baseline=st.none() | rates,
    throttled=st.booleans(),
    doubt=st.none() | rates,
    rolling_back=st.booleans(),
    abandoned=st.none() | revisions(),
    saved_before=st.none() | times,
    saved_at=st.none() | times,
    stopped_at=st.none() | times,
    running_at=st.none() | times,
    left=st.none() | counterfactuals,
    lost_seconds=st.floats(0, 1e5),
    cost=dollars,
    realised=st.none() | rates,
    failure=st.none() | st.sampled_from(Reason),
    failure_message=st.none() | words,
)
entries = st.builds(
    LedgerEntry,
    id=st.just("d-1"),
    unit=st.sampled_from(WorkUnit),
    action=st.sampled_from(Action),
    source=placements(),
    target=placements(),
    predicted_throughput=st.none() | rates,
    source_cost_per_hour=st.none() | rates,
    target_cost_per_hour=st.none() | rates,
    baseline_throughput=st.none() | rates,
    healthy_baseline_throughput=st.none() | rates,
    throttled=st.booleans(),
    doubt=st.none() | rates,
    realised_throughput=st.none() | rates,
    started_at=times,
    finished_at=times,
    outcome=st.sampled_from(Outcome),
    reason=st.sampled_from(Reason).map(str),
    message=words,
    lost_seconds=st.floats(0, 1e5),
    cost=dollars,
)
accounts = st.builds(
    Account,
    spent=dollars,
    saved=st.floats(-1e6, 1e6),
    since=st.none() | times,
    cost_per_hour=st.none() | rates,
    cost_per_million=st.none() | rates,
    saving_per_hour=st.floats(-1e4, 1e4),
    unpriced_seconds=st.floats(0, 1e7),
    chips=st.integers(0, 1000),
    chip_seconds=st.floats(0, 1e8),
    counterfactual=st.none() | counterfactuals,
)
migrations = migrations.filter(lambda migration: not migration.rolling_back or migration.abandoned is not None)
avoided = st.builds(
    AvoidedPlacement,
    st.just("a10g"),
    st.integers(1, 64),
    st.sampled_from(Reason).map(str),
    words,
    st.none() | times,
    words,
)


states = st.builds(
    JobState,
    revision=st.none() | revisions(),
    migration=st.none() | migrations,
    moves=st.integers(0, 99),
    decisions=st.integers(0, 999),
    last_move_at=st.none() | times,
    avoid=st.lists(avoided, max_size=3).map(tuple),
    history=st.lists(entries, max_size=3).map(tuple),
    account=accounts,
    progress=st.none() | progresses,
    interruption=st.none() | interruptions,
)


@given(states)
def test_what_is_read_back_is_what_was_written(state: JobState) -> None:
    written = state.to_dict()
    read = JobState.from_dict(written)
    assert close(state, read)
    assert read.to_dict() == written, "writing what was read changes nothing"
    assert JobState.from_dict(read.to_dict()) == read


CENTS = {"spent", "saved", "cost", "dollars", "spent_before", "saved_before"}
WHOLE = {"started_at", "finished_at"}
BRIEF = {"doubt", "lost_seconds"}
ABOUT = {"lost_seconds", "unpriced_seconds", "chip_seconds", "useful_seconds"}


def close(one: object, two: object, name: str = "", *, brief: bool = False) -> bool:
    """Equal but for what six digits, cents and milliseconds lose, and in the ledger three digits and seconds."""
    if isinstance(one, float) and isinstance(two, int | float):
        if name in WHOLE:
            return -0.0006 <= one - two < 1.0
        if one > 1e9:
            return abs(one - two) < 0.0011  # a moment
        if brief:
            return math.isclose(one, two, rel_tol=0.00501, abs_tol=1e-9)
        return math.isclose(
            one, two, rel_tol=1e-5, abs_tol=0.0051 if name in CENTS else 1e-3 if name in ABOUT else 1e-9
        )
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(two) and all(
            close(getattr(one, name), getattr(two, name), name, brief=type(one) is LedgerEntry and name in BRIEF)
            for name in one.__dataclass_fields__
        )
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(close(a, b, name) for a, b in zip(one, two, strict=True))
    return one == two


@given(times, st.floats(0.0, 10.0))
def test_a_ledger_keeps_the_order_of_moments(first: float, later: float) -> None:
    """As with the Revision that a move has created, and a move that began when another one failed."""
    one, two = (read_unix_time(write_whole_unix_time(moment)) for moment in (first, first + later))
    assert one <= two
    assert one <= read_unix_time(write_unix_time(first)), "nor is it after what is told of by the millisecond"


@given(estimates)
def test_nothing_of_an_estimate_is_lost(estimate: Estimate) -> None:
    body = estimate.to_dict()
    back = Estimate.from_dict(body)
    assert [(one.kind, one.names) for one in back.basis] == [(one.kind, one.names) for one in estimate.basis]
    assert [name for name, _ in back.shared] == [name for name, _ in estimate.shared]
    assert close(estimate, back)
    assert math.isclose(float(body["low"]), estimate.low, rel_tol=3e-5)
    assert math.isclose(float(body["high"]), estimate.high, rel_tol=3e-5)


def test_an_estimate_on_the_wire() -> None:
    estimate = Estimate(
        1150.0,
        0.1,
        (Premise(PremiseKind.BOUNDARY, ("NVLink", "PCIe")), Premise(PremiseKind.DEMAND, number=0.71)),
        (("chips of a10g", 0.05), ("window", 0.02)),
    )
    assert estimate.to_dict() == {
        "median": "1150",
        "low": "1011.67",
        "high": "1307.24",
        "sd": "0.1",
        "basis": [{"kind": "Boundary", "names": ["NVLink", "PCIe"]}, {"kind": "Demand", "number": "0.71"}],
        "shared": {"chips of a10g": "0.05", "window": "0.02"},
    }


@pytest.mark.parametrize("premise", ["measured now", {"kind": "OfALaterVersion"}, {"names": ["a"]}, 7, None])
def test_a_premise_that_is_not_known_is_left_out_of_an_estimate(premise: object) -> None:
    """It only explains. The number that a running move is judged by is there without it."""
    body = {"median": "1150", "sd": "0.1", "basis": [premise, {"kind": "MeasuredNow"}]}
    assert Estimate.from_dict(body) == Estimate(1150.0, 0.1, (Premise(PremiseKind.MEASURED_NOW),))


def test_chips_that_cost_nothing_have_an_estimate_too() -> None:
    """A pool of one's own may have a price of 0."""
    body = Estimate(0.0, 0.3).to_dict()
    assert body == {"median": "0", "low": "0", "high": "0", "sd": "0.3"}
    assert Estimate.from_dict(body) == Estimate(0.0, 0.3)


@given(times)
def test_a_save_never_looks_newer_than_itself(at: float) -> None:
    written = read_unix_time(write_unix_time_up(at))
    assert written >= at - 1e-6
    assert written - at < 0.0011
    assert read_unix_time(write_unix_time_up(written)) == written


@pytest.mark.parametrize("account", [Account(), Account(saved=6e-20), Account(saving_per_hour=-1e-30)])
def test_what_is_nothing_when_written_is_not_written(account: Account) -> None:
    assert account.empty == (Account.from_dict(account.to_dict()) == Account())
    assert ("cost" in JobState(account=account).to_dict()) is not account.empty


@given(st.integers(1, 999_999), st.lists(st.integers(1, 60_000), min_size=1, max_size=100))
def test_money_is_neither_lost_nor_made_by_writing_it_often(price: int, waits: list[int]) -> None:
    """price: in hundredths of a cent an hour. waits: milliseconds from one write to the next."""
    began = now = 1_800_000_000.0
    account = Account(saving_per_hour=price / 10_000).started(price / 10_000, now)
    for wait in waits:
        now = round(now + wait / 1000, 3)
        before, account = account, Account.from_dict(account.settled(now).to_dict())
        assert account.spent >= before.spent
    once = price / 10_000 * (now - began) / 3600
    assert account.spent == pytest.approx(once, abs=1e-6)
    assert account.saved == pytest.approx(once, abs=1e-6)


@pytest.mark.parametrize(
    ("dollars", "text"), [(12.5, "12.50"), (-0.000000001, "0.00"), (-0.03, "-0.03"), (1e-8, "0.00000001"), (3, "3.00")]
)
def test_money_on_the_wire(dollars: float, text: str) -> None:
    assert Account(saved=dollars).to_dict()["saved"] == text


def test_a_revision_stands_beside_its_placement_on_the_wire() -> None:
    revision = Revision(2, Placement("a10g", 8, 2, CapacityType.SPOT), "h", 8, 2, 1.7e9)
    assert revision.to_dict() == {
        "revision": 2,
        "pool": "a10g",
        "chips": 8,
        "replicas": 2,
        "capacity": "Spot",
        "workloadHash": "h",
        "requestedChips": 8,
        "requestedReplicas": 2,
        "createdAt": "2023-11-14T22:13:20Z",
    }


def test_what_was_asked_for_is_what_is_placed_where_the_status_does_not_say() -> None:
    assert Revision(1, Placement("a10g", 8, 2)).requested == (8, 2)


def test_fields_are_found_by_their_unit() -> None:
    assert LedgerEntry.names_of(Dollars) == {"cost"}
    assert Revision.names_of(Quantity) == {"costPerHour"}
    assert Account.names_of(Quantity) == {"perHour", "perMillion"}
    assert ProfileStatus.names_of(Share) == {
        "chipBusy",
        "computeActive",
        "matrixActive",
        "memoryBandwidth",
        "modelFlopsUtilization",
        "exposedCommunication",
        "inputWait",
        "saving",
        "throttle",
        "others",
        "clock",
        "scalingEfficiency",
    }


def test_the_end_of_a_job_is_not_a_field_of_the_status() -> None:
    assert JobState(finished="Completed").to_dict() == JobState().to_dict()
    assert JobState.from_dict({"finished": "Completed"}) == JobState()


@pytest.mark.parametrize("kind", [Quantity, Figure, Dollars, Seconds])
@given(value=st.floats(-1e12, 1e12))
def test_what_is_written_can_be_read_whatever_clocks_were_compared(kind: Any, value: float) -> None:
    """A leader whose clock is behind the one before measures durations below 0."""
    adapter: TypeAdapter[float] = TypeAdapter(kind)
    again = adapter.validate_python(adapter.dump_python(value, mode="json"))
    assert again >= 0.0 and (value > 0.0 or again == 0.0)

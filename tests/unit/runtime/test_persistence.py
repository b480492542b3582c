"""Nothing that the state machine needs is lost by writing it into the status and reading it back."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rightpool.api.conditions import Reason
from rightpool.api.status import ProfiledJobStatus
from rightpool.hardware.placement import CapacityType, Placement
from rightpool.planning.account import Account
from rightpool.planning.decision import Action
from rightpool.planning.ledger import AvoidedPlacement, LedgerEntry, Outcome
from rightpool.planning.migration import Migration, Phase
from rightpool.planning.revision import RevisionRef
from rightpool.planning.snapshot import JobState
from rightpool.prediction.estimate import Estimate
from rightpool.runtime.conditions import Circumstances
from rightpool.runtime.difference import Difference
from rightpool.runtime.jobs import read_job
from rightpool.runtime.persistence import (
    account_from_wire,
    account_to_wire,
    estimate_from_wire,
    estimate_to_wire,
    from_time,
    persisted_fields,
    restored_fields,
    to_time_not_before,
)
from rightpool.runtime.status import draft_status
from tests.unit.runtime.makers import profiled_job

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
def revisions(draw: st.DrawFn) -> RevisionRef:
    return RevisionRef(
        revision=draw(st.integers(1, 9999)),
        placement=draw(placements()),
        workload_hash=draw(st.text("0123456789abcdef", min_size=16, max_size=16)),
        requested=(draw(st.integers(1, 64)), draw(st.integers(1, 16))),
        created_at=draw(times),
        cost_per_hour=draw(st.none() | rates),
        since=draw(st.none() | times),
        generation=draw(st.none() | st.integers(1, 10**6)),
    )


estimates = st.builds(Estimate, rates, st.floats(0, 2))
migrations = st.builds(
    Migration,
    id=st.integers(1, 999).map("d-{}".format),
    action=st.sampled_from(Action),
    phase=st.sampled_from(Phase),
    source=revisions(),
    target=revisions(),
    created_at=times,
    phase_since=times,
    reason=st.sampled_from(Reason),
    message=words,
    predicted=st.none() | estimates,
    predicted_cost=st.none() | estimates,
    baseline=st.none() | rates,
    baseline_cost=st.none() | rates,
    rolling_back=st.booleans(),
    abandoned=st.none() | revisions(),
    saved_before=st.none() | times,
    saved_at=st.none() | times,
    stopped_at=st.none() | times,
    running_at=st.none() | times,
    lost_seconds=st.floats(0, 1e5),
    realised=st.none() | rates,
    realised_cost=st.none() | rates,
    failure=st.none() | st.sampled_from(Reason),
    failure_message=st.none() | words,
)
entries = st.builds(
    LedgerEntry,
    id=st.just("d-1"),
    action=st.sampled_from(Action).map(str),
    source=placements(),
    target=placements(),
    predicted_samples_per_second=st.none() | rates,
    predicted_cost_per_million=st.none() | rates,
    baseline_samples_per_second=st.none() | rates,
    baseline_cost_per_million=st.none() | rates,
    realised_samples_per_second=st.none() | rates,
    realised_cost_per_million=st.none() | rates,
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
    saving_per_hour=st.floats(-1e4, 1e4),
    unpriced_seconds=st.floats(0, 1e7),
)
migrations = migrations.filter(lambda migration: not migration.rolling_back or migration.abandoned is not None)
avoided = st.builds(
    AvoidedPlacement, st.just("a10g"), st.integers(1, 64), words.map(lambda w: w or "x"), st.none() | times
)


@st.composite
def jobs(draw: st.DrawFn) -> JobState:
    state = read_job(profiled_job()).state
    return replace(
        state,
        ref=draw(st.none() | revisions()),
        migration=draw(st.none() | migrations),
        moves=draw(st.integers(0, 99)),
        decisions=draw(st.integers(0, 999)),
        last_move_at=draw(st.none() | times),
        avoid=tuple(draw(st.lists(avoided, max_size=3))),
        history=tuple(draw(st.lists(entries, max_size=3))),
        account=draw(accounts),
    )


def wire_of(job: JobState) -> dict[str, object]:
    return ProfiledJobStatus(**persisted_fields(job)).to_dict()


@settings(max_examples=150)
@given(jobs())
def test_what_is_read_back_is_what_was_written(job: JobState) -> None:
    back = restored_fields(ProfiledJobStatus.model_validate(wire_of(job)))
    for name, value in back.items():
        assert close(getattr(job, name), value), name


@settings(max_examples=150)
@given(jobs())
def test_writing_what_was_read_changes_nothing(job: JobState) -> None:
    first = wire_of(job)
    again = replace(job, **restored_fields(ProfiledJobStatus.model_validate(first)))
    assert wire_of(again) == first


@given(times)
def test_a_save_never_looks_newer_than_itself(at: float) -> None:
    assert from_time(to_time_not_before(at)) >= at - 1e-6
    assert from_time(to_time_not_before(at)) - at < 0.0011


@given(estimates)
def test_an_estimate_keeps_its_interval(estimate: Estimate) -> None:
    back = estimate_from_wire(estimate_to_wire(estimate))
    assert back is not None
    assert math.isclose(back.high, estimate.high, rel_tol=1e-5)
    assert math.isclose(back.low, estimate.low, rel_tol=3e-5)


def test_chips_that_cost_nothing_have_an_estimate_too() -> None:
    """A pool of one's own may have a price of 0."""
    wire = estimate_to_wire(Estimate(0.0, 0.3))
    assert wire is not None and (wire.median, wire.low, wire.high) == ("0", "0", "0")
    assert estimate_from_wire(wire) == Estimate(0.0, 0.0)


def test_a_status_of_a_newer_operator_stops_the_job_and_says_so() -> None:
    body = profiled_job()
    body["status"] = ProfiledJobStatus(**persisted_fields(read_job(body).state)).to_dict()
    body["status"]["migration"] = {"id": "d-1", "phase": "Teleporting"}
    stored = read_job(body)
    assert stored.state.unreadable is not None
    assert "another version of the operator" in stored.state.unreadable


@pytest.mark.parametrize("how", ["Completed", "Failed"])
def test_a_terminal_condition_is_the_memory_of_the_end(how: str) -> None:
    body = profiled_job()
    body["status"] = {"conditions": [{"type": how, "status": "True", "reason": "X", "message": ""}]}
    assert read_job(body).state.finished == how


CENTS = {"spent", "saved", "cost"}
ABOUT = {"lost_seconds", "unpriced_seconds"}


def close(one: object, two: object, name: str = "") -> bool:
    """Equal but for what six digits, cents and milliseconds lose."""
    if isinstance(one, float) and isinstance(two, int | float):
        if one > 1e9:
            return abs(one - two) < 0.0011  # a moment
        return math.isclose(
            one, two, rel_tol=1e-5, abs_tol=0.0051 if name in CENTS else 1e-5 if name in ABOUT else 1e-9
        )
    if isinstance(one, Estimate) and isinstance(two, Estimate):
        return math.isclose(one.median, two.median, rel_tol=1e-5) and math.isclose(one.sd, two.sd, abs_tol=1e-4)
    if hasattr(one, "__dataclass_fields__"):
        return type(one) is type(two) and all(
            close(getattr(one, name), getattr(two, name), name) for name in one.__dataclass_fields__
        )
    if isinstance(one, tuple) and isinstance(two, tuple):
        return len(one) == len(two) and all(close(a, b, name) for a, b in zip(one, two, strict=True))
    return one == two


@pytest.mark.parametrize("account", [Account(), Account(saved=6e-20), Account(saving_per_hour=-1e-30)])
def test_what_is_nothing_when_written_is_not_written(account: Account) -> None:
    assert account_to_wire(account) is None or account_from_wire(account_to_wire(account)) != Account()


@settings(max_examples=100)
@given(st.integers(1, 999_999), st.lists(st.integers(1, 60_000), min_size=1, max_size=100))
def test_money_is_neither_lost_nor_made_by_writing_it_often(price: int, waits: list[int]) -> None:
    """price: in hundredths of a cent an hour. waits: milliseconds from one write to the next."""
    began = now = 1_800_000_000.0
    account = Account(saving_per_hour=price / 10_000).started(price / 10_000, now)
    for wait in waits:
        now = round(now + wait / 1000, 3)
        before, account = account, account_from_wire(account_to_wire(account.settled(now)))
        assert account.spent >= before.spent
    once = price / 10_000 * (now - began) / 3600
    assert account.spent == pytest.approx(once, abs=1e-6)
    assert account.saved == pytest.approx(once, abs=1e-6)


@pytest.mark.parametrize(
    ("dollars", "text"), [(12.5, "12.50"), (-0.000000001, "0.00"), (-0.03, "-0.03"), (1e-8, "0.00000001"), (3, "3.00")]
)
def test_money_on_the_wire(dollars: float, text: str) -> None:
    cost = account_to_wire(Account(saved=dollars, since=1.0))
    assert cost is not None and cost.saved == text


def forged(**changes: Any) -> dict[str, Any]:
    """A job that runs, whose status somebody has written to."""
    body = profiled_job()
    ref = RevisionRef(1, Placement("a100", 4, 1), "h", (4, 1), 1.7e9, 5.0, 1.7e9, 1)
    state = replace(read_job(body).state, ref=ref, account=Account(spent=3.0, since=1.7e9, cost_per_hour=5.0))
    body["status"] = wire_of(state)
    for path, value in changes.items():
        at = body["status"]
        *above, last = path.split("__")
        for key in above:
            at = at.setdefault(key, {})
        at[last] = value
    return body


PLACED = {"pool": "a100", "chips": 4, "replicas": 1, "revision": 1}
MIGRATION = {
    "id": "d-1",
    "action": "Move",
    "phase": "Draining",
    "reason": "Moving",
    "startedAt": "2026-11-21T10:00:00Z",
    "phaseStartedAt": "2026-11-21T10:00:00Z",
    "from": PLACED,
    "to": {**PLACED, "revision": 2},
}
ESTIMATE = {"median": "1", "low": "1", "high": "1"}


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("cost.spent", {"cost__spent": "NaN"}),
        ("cost.spent", {"cost__spent": "-1e9"}),
        ("cost.saved", {"cost__saved": "inf"}),
        ("cost.perHour", {"cost__perHour": "a lot"}),
        ("placement", {"placement__chips": 0}),
        ("placement", {"placement__replicas": 0}),
        ("placement", {"placement__replicas": 10**6, "placement__chips": 10**6}),
        ("placement", {"placement__chips": 5, "placement__replicas": 2}),
        ("placement.revision", {"placement__revision": 2**62}),
        ("placement.revision", {"placement__revision": -1}),
        ("placement.costPerHour", {"placement__costPerHour": "-5"}),
        ("moves", {"moves": 2**63 - 1}),
        ("ledgerCount", {"ledgerCount": -5}),
        ("migration.phase", {"migration": {**MIGRATION, "phase": "Teleporting"}}),
        ("migration.action", {"migration": {**MIGRATION, "action": ""}}),
        ("migration.reason", {"migration": {**MIGRATION, "reason": "Because"}}),
        ("migration.abandoned", {"migration": {**MIGRATION, "rollingBack": True}}),
        ("median", {"migration": {**MIGRATION, "predicted": {**ESTIMATE, "median": "0"}}}),
        ("migration.lostSeconds", {"migration": {**MIGRATION, "lostSeconds": "-1e400"}}),
    ],
)
def test_a_forged_status_is_no_memory_and_is_kept_as_it_is(field: str, changes: dict[str, Any]) -> None:
    body = forged(**changes)
    stored = read_job(body)
    assert stored.state.unreadable is not None and field in stored.state.unreadable
    around = Circumstances(None, None, None, True, 1.8e9)
    draft = draft_status(stored, stored.state, around)
    told = {**draft.body}
    placed = next(c for c in told.pop("conditions") if c["type"] == "Placed")
    assert (placed["status"], placed["reason"]) == ("Unknown", "InvalidStatus")
    before = {key: value for key, value in body["status"].items() if key != "conditions"}
    assert told == {**before, "observedGeneration": 1}, "nothing of it is lost by saying so"
    assert draft.difference is Difference.STATE
    again = draft_status(read_job({**body, "status": dict(draft.body)}), stored.state, replace(around, now=1.9e9))
    assert again.difference is Difference.NONE, "and it is said once"


def test_the_forged_ones_differ_from_one_that_can_be_read() -> None:
    assert read_job(forged()).state.unreadable is None
    assert read_job(forged(migration=MIGRATION)).state.unreadable is None

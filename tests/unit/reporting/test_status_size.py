"""How large a status gets. etcd keeps it, every watch sends it, and ten thousand of them are in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import UnionType
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from annotated_types import MaxLen

from rightpool.api.action import Action
from rightpool.api.ledger import MAX_HISTORY, LedgerEntry
from rightpool.api.migration import Phase
from rightpool.api.state import JobState
from rightpool.planning.job import Job
from rightpool.planning.migration.revision import RevisionState
from rightpool.reporting.conditions.context import Context
from rightpool.reporting.status import draft_status
from rightpool.reporting.stored_job import StoredJob, packed
from tests.unit.planning.jobs import NOW, POOLS, changed, fleet, plan, running, spec
from tests.unit.planning.world import A10G, A100, candidate, decide, on_a100

KIB: Final = 1024
# 10 of them a usual one with a full ledger: the rest is what is seldom there, and never all at once.
LARGEST: Final = 16 * KIB
LARGEST_TRACE: Final = 6 * KIB
DEFAULT_MOVES: Final = 4  # of adaptation.maxMoves, as many as can be avoided at once
# Names as clouds give them, and digits as measurements have them.
TEXTS: Final = {
    "pool": "a100-80gb-us-central1-b",
    "pod": "language-model-r12-17-x7k2p",
    "node": "gke-a100-pool-4f2c-xk7d",
}
NAME: Final = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn_kernel_of_cutlass_80"


def full(hint: Any, name: str = "", longest: int = 1) -> Any:
    """A value of this type with every field of it set, and every list as long as it may be."""
    origin = get_origin(hint)
    if origin is Annotated:
        kind, *notes = get_args(hint)
        lengths = [note.max_length for at in notes for note in getattr(at, "metadata", ()) if isinstance(note, MaxLen)]
        return full(kind, name, min(lengths, default=longest))
    if name == "shared":
        return (("chip", 0.123456), ("model", 0.123456), ("window", 0.123456))
    if origin in (Union, UnionType):
        return full(next(kind for kind in get_args(hint) if kind is not type(None)), name, longest)
    if origin is tuple:
        return tuple(full(get_args(hint)[0], name) for _ in range(longest))
    if is_dataclass(hint) and isinstance(hint, type):
        hints = get_type_hints(hint, include_extras=True)
        return hint(**{field.name: full(hints[field.name], field.name) for field in fields(hint) if field.init})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return max(hint, key=lambda member: len(str(member.value)))
    if hint is bool:
        return True
    if hint is int:
        return 1_234
    if hint is float:
        if name in ("sd", "doubt", "predicted_doubt"):
            return 0.123456
        return NOW + 0.123 if name.endswith(("_at", "since", "before", "until", "as_of")) else 1234.56789
    if hint is str:
        return TEXTS.get(name, NAME if name in ("name", "message") else "d-1234")
    raise NotImplementedError(hint)


def ledger() -> tuple[LedgerEntry, ...]:
    """Ten moves, half of them undone, in the words of the state machine."""
    world = on_a100()
    while len(world.job.state.history) < MAX_HISTORY:
        ref = world.job.state.revision
        assert ref is not None
        target = A10G if ref.placement == A100 else A100
        world.rates = {"a100": 1000.0, "a10g": 150.0}
        world.cycle(decide(Action.MOVE, target, 900.0, candidate(ref.placement, 1000.0, 0.02)))
        world.settle(60)
    return tuple(replace(entry, cost=12.345678, lost_seconds=345.678) for entry in world.job.state.history)


def written(job: Job) -> Mapping[str, Any]:
    """The status as the operator writes it."""
    assessment = plan(fleet([job])).assessments[job.key]
    price = POOLS["a100"].price
    return draft_status(StoredJob(job, packed({}), None, ""), job, Context(assessment, price, True, NOW)).body


def size(body: Mapping[str, Any]) -> int:
    """Bytes of JSON, as the API server sends it."""
    return len(json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode())


def crowded(*, moving: bool) -> Job:
    """A job with everything in its status that can be there at once. moving: whether it is on a way back from a move,
    or could be moved."""
    job = running(made=spec(progress={"totalSamples": 10**9}), history=ledger())
    assert job.state.revision is not None
    hints = get_type_hints(JobState, include_extras=True)
    values = {field.name: full(hints[field.name], field.name) for field in fields(JobState) if field.name != "finished"}
    there = job.state.revision
    migration = replace(
        values["migration"],
        action=Action.MOVE,
        phase=Phase.VERIFYING,
        source=replace(there, revision=1),
        abandoned=replace(there, revision=2),
        target=replace(there, revision=3),
    )
    state = replace(
        JobState(**values),
        history=job.state.history,
        avoid=values["avoid"][:DEFAULT_MOVES],
        revision=replace(there, revision=3) if moving else there,
        migration=migration if moving else None,
        pause=values["pause"] if moving else None,
        variation=replace(values["variation"], revision=3 if moving else 1),
    )
    seen = RevisionState(3, True, active=1, running=1)
    return changed(job.with_state(state), **({"revisions": {3: seen}} if moving else {}))


def test_a_status_with_everything_in_it_is_small() -> None:
    for moving in (True, False):
        whole = written(crowded(moving=moving))
        assert len(whole["history"]) == MAX_HISTORY
        assert not any(condition["reason"] == "InvalidStatus" for condition in whole["conditions"])
        expected = {"cost", "progress", "interruption", "rescue", "trace", "avoid", "variation", "conditions"}
        assert expected | ({"migration", "pause"} if moving else {"profile"}) <= whole.keys()
        assert size({key: value for key, value in whole.items() if key != "trace"}) <= LARGEST
        assert size(whole["trace"]) <= LARGEST_TRACE, "which a user has asked for"


def test_the_usual_status_is_far_smaller() -> None:
    job = running(history=ledger())
    assert size(written(job)) <= 12 * KIB
    assert size(written(running())) <= 4 * KIB

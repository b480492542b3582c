"""The breaker over weeks of virtual time: what a bad pool costs, and how soon one that is mended is used again.

As many jobs as may want to move all the time; verdicts take a quarter of an hour to three hours. Every cycle is made
by an operator that was started anew: it knows what pools have kept of the outcomes, and no job that has shown them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from rightpool.api.outcome import JobSize, MoveOutcome
from rightpool.api.units import DAY, HOUR
from rightpool.planning.allocate.breaker import LONGEST_TRIAL_SECONDS, Breaker, Going, outcomes_of
from tests.unit.planning.jobs import NOW, POOLS, auto_policy

TICK = 1200.0
WEEK = 7 * DAY
LONGEST_VERDICT = 3 * HOUR
# A pool that others use, of which a few chips more are little.
USED = {"a10g": replace(POOLS["a10g"], total=64, free=32)}
AT_ONCE = 10  # the default of maxConcurrentMigrations
Delivers = Callable[[str, float], bool]
"""Whether a move of a tenant that is judged at this time is found good."""


@dataclass
class Move:
    """One move to the pool."""

    going: Going
    began: float
    ends: float


def moves(
    weeks: float, tenants: int, seed: int, delivers: Delivers, sizes: Sequence[JobSize] = tuple(JobSize)
) -> list[tuple[Move, bool]]:
    """Moves to one pool that were judged, and whether they were undone."""
    draw, policy = Random(seed), auto_policy()
    under_way: list[Move] = []
    judged: list[tuple[Move, bool]] = []
    kept: dict[str, tuple[MoveOutcome, ...]] = {}
    now = NOW
    while now < NOW + weeks * WEEK:
        now += TICK
        for move in [move for move in under_way if move.ends <= now]:
            under_way.remove(move)
            undone = not delivers(move.going.tenant, move.ends)
            judged.append((move, undone))
            name = f"m{len(judged)}"
            made = MoveOutcome(name, move.going.tenant, move.began, move.ends, move.going.size, undone)
            kept["a10g"] = (*kept.get("a10g", ()), MoveOutcome.from_dict(made.to_dict()))
        kept = outcomes_of([], kept, now)
        breaker = Breaker(kept, USED, policy, [move.going for move in under_way], now)
        for _ in range(AT_ONCE):
            going = Going("a10g", draw.choice(sizes), f"t{draw.randrange(tenants)}", chips=1)
            if len(under_way) < AT_ONCE and breaker.limit_on(going) is None:
                breaker.admit(going)
                under_way.append(Move(going, now, now + draw.uniform(HOUR / 4, LONGEST_VERDICT)))
    return judged


@settings(max_examples=2, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32))
def test_a_pool_that_stays_bad_harms_fewer_and_fewer_jobs(tenants: int, seed: int) -> None:
    judged = moves(5, tenants, seed, lambda tenant, at: False)
    weeks = [0] * 5
    for move, undone in judged:
        assert undone
        weeks[int((move.began - NOW) / WEEK)] += 1
    assert weeks[0] <= 16, "three or so at once, then one after 1, 2, 4 … 64 hours"
    assert max(weeks[1:]) <= 2, "then one a week; two where the first of them is late in its week"


@settings(max_examples=2, deadline=None)
@given(st.integers(1, 6), st.integers(0, 2**32), st.floats(0.1, 20.0))
def test_a_pool_that_is_mended_is_used_again_after_no_longer_than_it_was_bad(
    tenants: int, seed: int, days: float
) -> None:
    mended = NOW + days * DAY
    judged = moves(days / 7 + 1.5, tenants, seed, lambda tenant, at: at >= mended)
    good = min(move.ends for move, undone in judged if not undone)
    assert good - mended <= min(days * DAY + HOUR, LONGEST_TRIAL_SECONDS) + 2 * LONGEST_VERDICT
    free = [move for move, _ in judged if good < move.began < good + 6 * HOUR]
    assert len(free) > 6, "and freely from then on"


def test_a_pool_that_delivers_is_waited_for_until_its_first_verdict_and_not_afterwards() -> None:
    judged = moves(0.1, 3, 1, lambda tenant, at: True, [JobSize.ONE_POD])
    first = min(move.ends for move, _ in judged)
    before = [move for move, _ in judged if move.began <= first]
    assert len(before) == 3
    assert len([move for move, _ in judged if first < move.began <= first + TICK]) >= 6


@settings(max_examples=2, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32))
def test_a_tenant_whose_jobs_slow_themselves_keeps_no_other_out(tenants: int, seed: int) -> None:
    judged = moves(1, tenants, seed, lambda tenant, at: tenant != "t0")
    own = [move for move, undone in judged if undone]
    others = [move for move, undone in judged if not undone]
    assert len(own) <= 40, "with many tenants a pool keeps few outcomes of each"
    gaps = pairwise(sorted([NOW, *(move.began for move in others), NOW + WEEK]))
    assert all(later - earlier <= 2 * LONGEST_VERDICT for earlier, later in gaps)
    assert len(others) > 200

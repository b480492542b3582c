"""Room: which placements a job could have, with what is free, can grow, is promised to others, and is its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from rightpool.api.conditions import Reason
from rightpool.api.migration import Migration, Phase
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.hardware.node_needs import NO_NEEDS, NodeNeeds
from rightpool.hardware.pool import Pool
from rightpool.planning.allocate.openings import Openings
from rightpool.planning.jobs.contradiction import contradiction
from rightpool.planning.jobs.job import Job, JobKey
from rightpool.planning.work.registry import work_of

_TARGET_DUE: Final = frozenset(
    {Phase.PLANNED, Phase.CHECKPOINTING, Phase.DRAINING, Phase.STARTING, Phase.SURGING, Phase.SHARING}
)

Nodes = Mapping[str, frozenset[str]]
"""Names of nodes by pool."""
NO_NODES: Final[Nodes] = {}

# Which placements are asked for, with what the templates for their chips ask of nodes, and whether what is kept free
# counts.
_Asked = tuple[int, NodeNeeds, tuple[tuple[str, NodeNeeds], ...], bool]


class Room:
    """Chips of each pool in one cycle, by node and slice; `take` uses them up.

    What pods hold is not free; what was promised to a job is taken when the room is made, or with `promise`. Both are
    a job's own: it has room for what fits with them. Nodes that lack what its template asks for have none for it.
    """

    __slots__ = ("_kept", "_newcomers", "_openings", "_pools", "_promised", "_version", "touched")

    def __init__(self, pools: Mapping[str, Pool], jobs: Iterable[Job] = ()) -> None:
        """jobs: whose promised chips are taken at once, the oldest first."""
        self._pools = pools
        self._openings: dict[str, Openings] = {}
        self._promised: dict[JobKey, dict[str, dict[str, int]]] = {}
        self._kept: dict[str, tuple[JobKey, dict[str, int]]] = {}
        self._version = 0
        self._newcomers: dict[_Asked, tuple[int, Sequence[Placement], tuple[bool, ...]]] = {}
        self.touched: set[str] = set()
        """Pools of which chips have been taken."""
        promised = [job for job in jobs if reservation(job)]
        for job in sorted(promised, key=lambda job: (job.created_at, job.key)):
            self.promise(job)

    def supply(self) -> dict[str, tuple[Pool, Mapping[JobKey, Mapping[str, int]]]]:
        """All that `fits` depends on beside the job, by pool: the pool, and which of its chips are promised to whom."""
        promised: dict[str, dict[JobKey, Mapping[str, int]]] = {name: {} for name in self._pools}
        for key, pools in self._promised.items():
            for pool, taken in pools.items():
                if pool in promised:
                    promised[pool][key] = dict(taken)
        return {name: (pool, promised[name]) for name, pool in self._pools.items()}

    def free(self, pool: str) -> dict[str, int]:
        """Chips of a pool by node that nobody holds or was promised; those of nodes that can be added under `+`."""
        openings = self._of(pool)
        return {} if openings is None else openings.free()

    def fits(self, job: Job, places: Sequence[Placement]) -> tuple[bool, ...]:
        """Which of the placements the job could have now, each by itself."""
        return self._asked(job, places, kept=False)

    def kept(self, job: Job, places: Sequence[Placement]) -> tuple[bool, ...]:
        """Which of them it could have, were they not kept free for an older job that waits."""
        if not self._kept:
            return (False,) * len(places)
        return self._asked(job, places, kept=True)

    def take(self, job: Job, target: Placement) -> None:
        """The chips are promised; on its own pool a job takes only what it does not have."""
        openings = self._of(target.pool)
        if openings is None:
            return
        pods, each = _in_units(self._pools[target.pool], target)
        taken = openings.take(pods, each, _needs(job, self._pools[target.pool]), self._own(job, target, openings))
        _add(self._promised.setdefault(job.key, {}).setdefault(target.pool, {}), taken)
        self._version += 1
        self.touched.add(target.pool)

    def promise(self, job: Job) -> None:
        """Take what is promised to a job and no pod of it holds yet."""
        touched = set(self.touched)
        for place in reservation(job):
            self.take(job, place)
        self.touched = touched

    def withdraw(self, job: Job) -> None:
        """Give back all that is promised to a job."""
        self._version += 1
        for pool, taken in self._promised.pop(job.key, {}).items():
            openings = self._of(pool)
            if openings is not None:
                openings.give(taken)

    def keep_free(self, job: Job, places: Sequence[Placement], before: Nodes = NO_NODES) -> Placement | None:
        """Keep nodes free for a job that waits, so that what ends there adds up to its placement; which one that is.

        The one of which the least is missing, of each pool the first; that of before where there is one. A pool is kept
        for one job at a time. before: nodes that were kept for it in the last cycle, by pool.
        """
        if all(place.pool in self._kept for place in places):
            return None
        best: tuple[bool, int, int, Placement] | None = None
        seen: set[str] = set()
        for rank, place in enumerate(places):
            openings = self._of(place.pool)
            if place.pool in seen or place.pool in self._kept or openings is None:
                continue
            seen.add(place.pool)
            pods, each = _in_units(self._pools[place.pool], place)
            own = self._own(job, place, openings)
            missing = (pods - min(pods, openings.pods(each, _needs(job, self._pools[place.pool]), own))) * each
            new = place.pool not in before
            if best is None or (new, missing, rank) < best[:3]:
                best = (new, missing, rank, place)
        if best is None:
            return None
        place = best[3]
        pods, each = _in_units(self._pools[place.pool], place)
        openings = self._openings[place.pool]
        nodes = -(-pods // max(1, openings.unit // each))
        own, needs = self._own(job, place, openings), _needs(job, self._pools[place.pool])
        self._kept[place.pool] = (job.key, openings.keep(nodes, own, needs, before.get(place.pool, frozenset())))
        self._version += 1
        self.touched.add(place.pool)
        return place

    def kept_nodes(self) -> dict[JobKey, Nodes]:
        """The nodes that are kept free, by job and pool."""
        return {key: {pool: frozenset(nodes)} for pool, (key, nodes) in self._kept.items()}

    def lend(self, job: Job, target: Placement) -> None:
        """The chips are promised, of those that are kept free for another job."""
        key, kept = self._kept[target.pool]
        openings = self._openings[target.pool]
        openings.give(kept)
        self.take(job, target)
        self._kept[target.pool] = (key, openings.keep(len(kept), {}, NO_NEEDS, frozenset(kept)))

    def lacking(self, changes: Sequence[tuple[Job, Placement | None]]) -> frozenset[JobKey]:
        """Who of them would find no nodes, were all of it carried out at once: chips that several leave on several
        nodes are no room for one large pod. Who stays in its pool stays on its nodes; large pods come first. None: the
        job leaves, and what it gets has been promised to it."""
        there: dict[str, Openings] = {}
        for name in {place.pool for _, place in changes if place is not None}:
            known = self._of(name)
            if known is not None:
                there[name] = known.copy()
        own: dict[JobKey, dict[str, int]] = {}
        for job, place in changes:
            here = None if place is not None and job.starts_itself(place) else _leaves(job)
            if here is not None and here in there:
                own[job.key] = _held(job, here, there[here])
                there[here].give(own[job.key])
        found = set[JobKey]()
        placed = [(job, place) for job, place in changes if place is not None]
        for job, place in sorted(placed, key=lambda one: _order(*one)):
            if place.pool not in there:
                found.add(job.key)
                continue
            openings, pool = there[place.pool], self._pools[place.pool]
            (pods, each), needs = _in_units(pool, place), _needs(job, pool)
            if openings.pods(each, needs) < pods:
                found.add(job.key)
                continue
            stays = job.key in own and _leaves(job) == place.pool
            openings.take(pods, each, needs, dict.fromkeys(own[job.key], 0) if stays else None)
        return frozenset(found)

    # --- one job -----------------------------------------------------------------------------------------------------

    def _asked(self, job: Job, places: Sequence[Placement], *, kept: bool) -> tuple[bool, ...]:
        """Jobs without chips of their own that ask for the very same placements get the same answer: thousands wait."""
        key: _Asked | None = None
        if job.state.revision is None and job.key not in self._promised:
            key = (id(places), job.needs, tuple((variant.vendor, variant.needs) for variant in job.variants), kept)
            known = self._newcomers.get(key)
            if known is not None and known[0] == self._version and known[1] is places:
                return known[2]
        own: dict[str, Mapping[str, int]] = {}
        found = tuple(
            (not kept or place.pool in self._kept) and self._fits(job, place, own, kept=kept) for place in places
        )
        if key is not None:
            self._newcomers[key] = (self._version, places, found)
        return found

    def _fits(self, job: Job, place: Placement, known: dict[str, Mapping[str, int]], *, kept: bool) -> bool:
        """known: the job's own chips of pools that were asked about before."""
        openings = self._of(place.pool)
        if openings is None:
            return False
        alone = job.starts_itself(place)
        own = None if alone else known.get(place.pool)
        if own is None:
            own = self._own(job, place, openings)
            if kept:
                own = dict(own)
                _add(own, self._kept[place.pool][1])
            if not alone:
                known[place.pool] = own
        pods, each = _in_units(self._pools[place.pool], place)
        needs = _needs(job, self._pools[place.pool]) if job.variants else job.needs
        return openings.pods(each, needs, own) >= pods

    def _of(self, pool: str) -> Openings | None:
        openings = self._openings.get(pool)
        if openings is None and pool in self._pools:
            openings = self._openings[pool] = Openings(self._pools[pool])
        return openings

    def _own(self, job: Job, place: Placement, openings: Openings) -> Mapping[str, int]:
        """Chips of a pool that are the job's, by node: held by its pods, or promised to it."""
        promised = self._promised.get(job.key, {}).get(place.pool, {})
        # What Kubernetes starts there is beside what the job has.
        held = {} if job.starts_itself(place) else _held(job, place.pool, openings)
        if not held:
            return promised
        _add(held, promised)
        return held


def after_moves(
    pools: Mapping[str, Pool], moves: Iterable[tuple[Job, Placement]]
) -> tuple[dict[str, Pool], dict[JobKey, dict[str, int]]]:
    """The pools once these jobs are where they go and nothing is held for their way back; and what each has there, by
    node."""
    moves = [(job, place) for job, place in moves if place.pool in pools]
    openings = {name: Openings(pool) for name, pool in pools.items()}
    touched: set[str] = {place.pool for _, place in moves}
    for job, _ in moves:
        for name, there in openings.items():
            held = _held(job, name, there)
            if held:
                there.give(held)
                touched.add(name)
    has = {}
    for job, place in sorted(moves, key=lambda one: _order(*one)):
        pods, each = _in_units(pools[place.pool], place)
        has[job.key] = openings[place.pool].take(pods, each, _needs(job, pools[place.pool]))
    return {name: _with_room(pool, openings[name]) if name in touched else pool for name, pool in pools.items()}, has


def _with_room(pool: Pool, openings: Openings) -> Pool:
    nodes = openings.nodes
    shapes = dict.fromkeys(pool.shapes, 0)
    for node in nodes:
        if node.shape is not None:
            shapes[node.shape] = shapes.get(node.shape, 0) + node.free
    free = sum(node.free for node in nodes)
    return replace(pool, free=free, growable=openings.growable, shapes=shapes, open_nodes=nodes)


def reservation(job: Job) -> tuple[Placement, ...]:
    """What is promised to a job that its pods may not hold yet, so that it still counts as free: one placement a pool.

    A first start whose pods are not there yet; the target of a migration that has not come up; and the place that a
    move has left, until its verdict: the job may have to go back. A migration that waits for its user's approval has
    no promise: that may take days. Nor has a move without return one of what it left.
    """
    state = job.state
    if state.revision is None:
        return ()
    if state.migration is None and state.revision.since is not None:
        # Between two attempts of a program that fails, no pod holds the chips that the next one needs.
        child = job.revision(state.revision.revision)
        if child.crash is None or child.suspended:
            return ()
    if state.finished or job.deleting or job.stops or contradiction(job):
        return ()
    migration = state.migration
    if migration is None:
        # What waits for quota holds no chips up: that may take days, and others have quota now.
        return () if job.queued or job.revision(state.revision.revision).blocked else (state.revision.placement,)
    if job.awaits_approval:
        return ()
    due: dict[str, Placement] = {}
    if migration.phase in _TARGET_DUE and not migration.given_up:
        due[migration.target.placement.pool] = migration.target.placement
    if holds_source(migration) and work_of(job.spec).one_writer:  # else its pods are there
        left = migration.source.placement
        there = due.get(left.pool)
        if there is None or there.chips < left.chips:
            due[left.pool] = left
    return tuple(due.values())


def _leaves(job: Job) -> str | None:
    """The pool whose chips a job gives up where it gets others; None where it has none."""
    state = job.state
    if state.migration is not None:
        return state.migration.source.placement.pool
    return None if state.revision is None else state.revision.placement.pool


def _order(job: Job, place: Placement) -> tuple[bool, int, JobKey]:
    return _leaves(job) != place.pool, -place.chips_per_replica, job.key


def holds_source(migration: Migration) -> bool:
    """Whether the place that a move has left is held for it. Where its user does not let it be, no verdict sends it."""
    if migration.reason is Reason.PLACEMENT_DISALLOWED and migration.phase in (Phase.WARMING_UP, Phase.VERIFYING):
        return False
    return migration.returns and migration.without_return is None


def _held(job: Job, pool: str, openings: Openings) -> dict[str, int]:
    """Chips of a pool that the job's pods hold, by node."""
    state = job.state
    found: dict[str, int] = {}
    if state.revision is None or state.finished:
        return found
    unknown, whole = 0, openings.whole
    for ref in _revisions(job):
        if ref.placement.pool != pool:
            continue
        child, each = job.revision(ref.revision), ref.placement.chips_per_replica
        if child.nodes is None or whole:
            unknown = max(unknown, min(child.active - child.others, ref.placement.replicas) * each)
        else:
            _add(found, {name: pods * each for name, pods in child.nodes.items()})
    if unknown:
        _add(found, openings.spread(unknown))
    return found


def _revisions(job: Job) -> tuple[Revision, ...]:
    """The Revisions that may have pods."""
    state = job.state
    assert state.revision is not None
    refs = {state.revision.revision: state.revision}
    if not work_of(job.spec).one_writer:
        # What is left stays until the target runs, which so needs chips of its own.
        return () if state.migration is None and state.revision.since is not None else _coming(job)
    if state.migration is not None:
        refs |= {ref.revision: ref for ref in (state.migration.moving, state.migration.target)}
    return tuple(refs.values())


def _coming(job: Job) -> tuple[Revision, ...]:
    """The Revision that is coming up."""
    state = job.state
    return tuple(ref for ref in (state.revision if state.migration is None else state.migration.target,) if ref)


def _in_units(pool: Pool, place: Placement) -> tuple[int, int]:
    """Pods and chips of each; of a pool with slices, slices and their chips."""
    if pool.slice is not None:
        return -(-place.chips // pool.slice.chips), pool.slice.chips
    return place.replicas, place.chips_per_replica


def _needs(job: Job, pool: Pool) -> NodeNeeds:
    """What the job's template for a pool's chips asks of nodes."""
    return job.needs_on(pool.accelerator.vendor.name)


def _add(chips: dict[str, int], more: Mapping[str, int]) -> None:
    for name, count in more.items():
        chips[name] = chips.get(name, 0) + count

"""Faults of the operators themselves, of their Lease, and of what they measure by."""

from __future__ import annotations

from typing import Final

from chaos.arena import REPLICAS, Arena, Fault, Mend
from chaos.ground import SYSTEM
from chaos.operators import LEASE_SECONDS, Replica
from chaos.telemetry import Mood
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import LEASES

LEASE: Final = "rightpool-operator"


def _replica(arena: Arena) -> Replica:
    return arena.choose([arena.replicas[name] for name in REPLICAS if arena.replicas[name].able])


def _leader(arena: Arena) -> Replica:
    """The one that the Lease names; any where it names none that lives."""
    try:
        holder = str(arena.client.get(LEASES, LEASE, SYSTEM)["spec"].get("holderIdentity"))
    except NotFound:
        holder = ""
    leading = [arena.replicas[name] for name in REPLICAS if arena.replicas[name].identity == holder]
    able = [replica for replica in leading if replica.able]
    return able[0] if able else _replica(arena)


def leader_killed(arena: Arena) -> None:
    """SIGKILL to the leader, at whatever it is doing."""
    _leader(arena).kill()


def all_killed(arena: Arena) -> None:
    """SIGKILL to both."""
    for replica in arena.replicas.values():
        replica.kill()


def dies_at_write(arena: Arena) -> None:
    """The leader is replaced by one that dies right before or right after one of its first writes."""
    when = arena.chance.choice(["before", "after"])
    die = f"{when}:{arena.chance.randint(1, 12)}"
    leader = _leader(arena)
    name = next(name for name in REPLICAS if arena.replicas[name] is leader)
    leader.kill()
    arena.nursery.wait(leader, 5)
    arena.raise_replica(name, die)


def leader_stopped(arena: Arena) -> tuple[float, Mend]:
    """SIGSTOP for longer than the Lease, then SIGCONT: it must find itself replaced."""
    leader = _leader(arena)
    leader.freeze()
    return LEASE_SECONDS + arena.chance.uniform(1, 5), leader.thaw


def leader_hiccups(arena: Arena) -> tuple[float, Mend]:
    """SIGSTOP for about as long as the Lease lasts: the moment at which leadership is least certain."""
    leader = _leader(arena)
    leader.freeze()
    return LEASE_SECONDS * arena.chance.uniform(0.7, 1.1), leader.thaw


def terminated(arena: Arena) -> None:
    """SIGTERM, as a rollout does."""
    _replica(arena).signal(15)


def lease_deleted(arena: Arena) -> None:
    """Somebody deletes the Lease: both may believe that they can have it."""
    try:
        arena.client.delete(LEASES, LEASE, SYSTEM)
    except NotFound:
        pass


def lease_stolen(arena: Arena) -> None:
    """Somebody who never renews holds the Lease until it runs out."""
    lease = arena.client.get(LEASES, LEASE, SYSTEM)
    lease["spec"] = {**lease["spec"], "holderIdentity": "a-stranger"}
    arena.client.replace(LEASES, lease)


def _mood(mood: Mood, seconds: float) -> Fault:
    def change(arena: Arena) -> tuple[float, Mend]:
        arena.hold("prometheus")
        arena.telemetry.mood = mood

        def mend() -> None:
            arena.telemetry.mood = Mood.WELL
            arena.taken.discard("prometheus")

        return seconds, mend

    return Fault(f"prometheus-{mood.value}", "telemetry", 2, change, offline=True)


def sidecars_silent(arena: Arena) -> tuple[float, Mend]:
    """No profiler answers, to nobody."""
    arena.hold("simulation")
    arena.ground.simulate(all={"silent": True})

    def mend() -> None:
        arena.ground.simulate()
        arena.taken.discard("simulation")

    return arena.chance.uniform(2, 8), mend


def pool_slow(arena: Arena) -> tuple[float, Mend]:
    """A pool delivers less than half of what it did: moves to it do not pay and are undone."""
    arena.hold("simulation")
    pool = arena.chance.choice(["a100", "a10g"])
    arena.ground.simulate(**{pool: {"throughput": arena.chance.uniform(0.1, 0.5)}})

    def mend() -> None:
        arena.ground.simulate()
        arena.taken.discard("simulation")

    return arena.chance.uniform(10, 25), mend


FAULTS: Final = (
    Fault("operator-leader-killed", "operator", 1.5, leader_killed),
    Fault("operator-both-killed", "operator", 0.5, all_killed, offline=True),
    Fault("operator-dies-at-write", "operator", 3, dies_at_write),
    Fault("operator-stopped-beyond-lease", "operator", 0.8, leader_stopped),
    Fault("operator-stopped-for-a-lease", "operator", 0.8, leader_hiccups),
    Fault("operator-terminated", "operator", 0.6, terminated, offline=True),
    Fault("lease-deleted", "operator", 0.5, lease_deleted),
    Fault("lease-stolen", "operator", 0.3, lease_stolen),
    _mood(Mood.GONE, 5),
    _mood(Mood.SLOW, 12),
    _mood(Mood.GARBAGE, 6),
    _mood(Mood.NOT_FINITE, 8),
    Fault("sidecars-silent", "telemetry", 2, sidecars_silent),
    Fault("pool-slow", "telemetry", 4, pool_slow),
)

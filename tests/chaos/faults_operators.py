"""Faults of the operators, of their Lease, and of their telemetry."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Final

from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import LEASES
from tests.chaos.api_proxy import ApiMode, ApiProxy
from tests.chaos.context import REPLICAS, Fault, FaultContext
from tests.chaos.environment import SYSTEM
from tests.chaos.operators import LEASE_SECONDS, Replica
from tests.chaos.prometheus_proxy import ProxyMode

LEASE: Final = "rightpool-operator"
RETRY_SECONDS: Final = 10.0  # most that an operator waits between two attempts to reach the API server


def _replica(context: FaultContext) -> Replica:
    return context.choose([context.replicas[name] for name in REPLICAS if context.replicas[name].can_act])


def _leader(context: FaultContext) -> Replica:
    """The replica that holds the Lease, or any replica if the holder does not run."""
    try:
        holder = str(context.client.get(LEASES, LEASE, SYSTEM)["spec"].get("holderIdentity"))
    except NotFound:
        holder = ""
    leading = [context.replicas[name] for name in REPLICAS if context.replicas[name].identity == holder]
    running = [replica for replica in leading if replica.can_act]
    return running[0] if running else _replica(context)


def leader_killed(context: FaultContext) -> None:
    """SIGKILL to the leader at an arbitrary moment."""
    _leader(context).kill()


def all_killed(context: FaultContext) -> None:
    """SIGKILL to all replicas."""
    for replica in context.replicas.values():
        replica.kill()


def crashes_at_write(context: FaultContext) -> None:
    """The leader is replaced by one that crashes right before or right after one of its first writes."""
    when = context.rng.choice(["before", "after"])
    crash = f"{when}:{context.rng.randint(1, 12)}"
    leader = _leader(context)
    name = next(name for name in REPLICAS if context.replicas[name] is leader)
    leader.kill()
    context.process_pool.wait(leader, 5)
    context.start_replica(name, crash)


def leader_stopped(context: FaultContext) -> None:
    """SIGSTOP for longer than the Lease, then SIGCONT: it must notice that it was replaced."""
    leader = _leader(context)
    context.repair_later(LEASE_SECONDS + context.rng.uniform(1, 5), leader.thaw)
    leader.freeze()


def leader_paused(context: FaultContext) -> None:
    """SIGSTOP for about the duration of the Lease, when it is least certain who leads."""
    leader = _leader(context)
    context.repair_later(LEASE_SECONDS * context.rng.uniform(0.7, 1.1), leader.thaw)
    leader.freeze()


def terminated(context: FaultContext) -> None:
    """SIGTERM, as a rollout does."""
    _replica(context).signal(15)


def _started_before_the_api(mode: ApiMode) -> Fault:
    def restart(context: FaultContext) -> None:
        """Both replicas are replaced while the API server answers like this, and must find their watches later."""
        context.reserve("api proxy")
        # It stays between the API server and these replicas for as long as they live.
        proxy = ApiProxy(context.environment.kubeconfig, Path(tempfile.mkdtemp(prefix="rightpool-proxy-")), mode)
        all_killed(context)
        seconds = context.rng.uniform(3, 20)
        for name in REPLICAS:
            context.process_pool.wait(context.replicas[name], 5)
            replica = context.start_replica(name, RIGHTPOOL_KUBECONFIG=str(proxy.kubeconfig))
            replica.since = time.monotonic() + seconds + RETRY_SECONDS

        def repair() -> None:
            proxy.mode = ApiMode.NORMAL
            context.reserved.discard("api proxy")

        context.repair_later(seconds, repair)

    return Fault(f"operators-start-at-{mode.value}", "operator", 0.3, restart)


def lease_deleted(context: FaultContext) -> None:
    """The Lease is deleted: both replicas may try to acquire it."""
    try:
        context.client.delete(LEASES, LEASE, SYSTEM)
    except NotFound:
        pass


def lease_stolen(context: FaultContext) -> None:
    """A holder that never renews has the Lease until it expires."""
    lease = context.client.get(LEASES, LEASE, SYSTEM)
    lease["spec"] = {**lease["spec"], "holderIdentity": "another-holder"}
    context.client.replace(LEASES, lease)


def _proxy_mode(mode: ProxyMode, seconds: float) -> Fault:
    def change(context: FaultContext) -> None:
        context.reserve("prometheus")

        def repair() -> None:
            context.prometheus.mode = ProxyMode.NORMAL
            context.reserved.discard("prometheus")

        context.repair_later(seconds, repair)
        context.prometheus.mode = mode

    return Fault(f"prometheus-{mode.value}", "telemetry", 2, change, offline=True)


def sidecars_silent(context: FaultContext) -> None:
    """No simulated profiler answers."""
    context.reserve("simulation")

    def repair() -> None:
        context.environment.simulate()
        context.reserved.discard("simulation")

    context.repair_later(context.rng.uniform(2, 8), repair)
    context.environment.simulate(all={"silent": True})


def pool_slow(context: FaultContext) -> None:
    """A pool delivers less than half of its throughput: moves there do not pay and are rolled back."""
    context.reserve("simulation")
    pool = context.rng.choice(["a100", "a10g"])

    def repair() -> None:
        context.environment.simulate()
        context.reserved.discard("simulation")

    context.repair_later(context.rng.uniform(10, 25), repair)
    context.environment.simulate(**{pool: {"throughput": context.rng.uniform(0.1, 0.5)}})


FAULTS: Final = (
    Fault("operator-leader-killed", "operator", 1.5, leader_killed),
    Fault("operator-both-killed", "operator", 0.5, all_killed, offline=True),
    Fault("operator-crashes-at-write", "operator", 3, crashes_at_write),
    Fault("operator-stopped-beyond-lease", "operator", 0.8, leader_stopped),
    Fault("operator-stopped-for-a-lease", "operator", 0.8, leader_paused),
    Fault("operator-terminated", "operator", 0.6, terminated, offline=True),
    *(_started_before_the_api(mode) for mode in ApiMode if mode is not ApiMode.NORMAL),
    Fault("lease-deleted", "operator", 0.5, lease_deleted),
    Fault("lease-stolen", "operator", 0.3, lease_stolen),
    _proxy_mode(ProxyMode.GONE, 5),
    _proxy_mode(ProxyMode.SLOW, 12),
    _proxy_mode(ProxyMode.GARBAGE, 6),
    _proxy_mode(ProxyMode.NOT_FINITE, 8),
    Fault("sidecars-silent", "telemetry", 2, sidecars_silent),
    Fault("pool-slow", "telemetry", 4, pool_slow),
)

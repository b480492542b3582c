"""What an adopted object waits for: chips where Kubernetes would start it, as its user has made it.

The operator does not start it, so that nothing of its spec but the template says where that may be: `placement` and
`targets` are what it is moved by once it runs.
"""

from collections.abc import Iterable, Mapping

from rightpool.api.choices import Capacity, Objective
from rightpool.hardware.node import REPELLING, Taint, tolerates
from rightpool.hardware.node_needs import NodeNeeds
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.adopted import AwaitedChips
from rightpool.planning.offers.shape import Shape, Terms
from rightpool.planning.offers.start_order import Start


def awaited_start(shape: Shape, awaits: AwaitedChips, objective: Objective) -> Start:
    """The very pods that it asks for, wherever its template lets them."""
    own = shape._replace(
        chips_per_replica=awaits.chips // awaits.replicas,
        replicas=awaits.replicas,
        low=awaits.chips,
        high=awaits.chips,
        counts=None,
        capacity=Capacity.ON_DEMAND,
        allow=(),
        deny=(),
        labels=(),
        fixed=True,
        variants=(),
        tensor=1,
        pipeline=1,
        able=None,
    )
    return Start(own, Terms(objective, None, (), None, sharded=False), None)


def pools_with(pools: Iterable[Pool], awaits: AwaitedChips, needs: NodeNeeds) -> tuple[Pool, ...]:
    """The pools that have such chips, and whose taints its template tolerates: nobody adds tolerations to its pods, but
    Kubernetes that of the taint which has the name of their resource (ExtendedResourceToleration)."""
    own = [dict(toleration) for toleration in needs.tolerations]
    return tuple(
        pool
        for pool in pools
        if awaits.resource in (None, pool.resource_name)
        and awaits.pool in (None, pool.name)
        and all(
            awaits.resource is None or taint.key == awaits.resource or tolerates(own, taint)
            for toleration in pool.tolerations
            if (taint := _taint(toleration)) is not None
        )
    )


def _taint(toleration: Mapping[str, object]) -> Taint | None:
    """What nodes of a pool with this toleration have; None where it names nothing."""
    key = str(toleration.get("key") or "")
    effect = str(toleration.get("effect") or min(REPELLING))
    return Taint(key, effect, str(toleration.get("value") or "")) if key else None

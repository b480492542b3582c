"""Whether an operator leads: by its Lease, which it renews every few seconds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

from rightpool.api.kubernetes import Resource
from rightpool.api.units import unix_time_of
from rightpool.api.wording import span
from rightpool.cluster.errors import ClusterError
from rightpool.cluster.resources import LEASES

_NAME: Final = "rightpool"
# Between two renewals, and what the clocks of two machines may differ by.
_GRACE_SECONDS: Final = 15.0


class Leases(Protocol):
    """The part of ClusterClient that is used."""

    def list_all(self, resource: Resource, namespace: str | None = None) -> list[dict[str, Any]]: ...


def no_leader_text(client: Leases, namespace: str, now: float) -> str | None:
    """A sentence where no operator leads; None where one does, or the Lease can't be read."""
    try:
        leases = client.list_all(LEASES, namespace)
    except ClusterError:
        return None
    specs = [lease.get("spec") or {} for lease in leases if _NAME in str((lease.get("metadata") or {}).get("name"))]
    if not specs or any(_held(spec, now) for spec in specs):
        return None
    renewed = max((at for spec in specs if (at := unix_time_of(spec.get("renewTime"))) is not None), default=None)
    since = "" if renewed is None else f" since {span(max(0.0, now - renewed))}"
    return (
        f"no operator leads{since}: what is shown is what it wrote last, and nothing is started or moved. "
        f"See `kubectl -n {namespace} get lease,pods`"
    )


def _held(spec: Mapping[str, Any], now: float) -> bool:
    renewed = unix_time_of(spec.get("renewTime"))
    if not spec.get("holderIdentity") or renewed is None:
        return False
    return now < renewed + float(spec.get("leaseDurationSeconds") or 0) + _GRACE_SECONDS

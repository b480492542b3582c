"""The ConfigMap that holds what pools have cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rightpool.api.units import read_unix_time, write_unix_time
from rightpool.contract import LABEL_POOL_COSTS
from rightpool.planning.books.pool_costs import PoolCosts

NAME: Final = "rightpool-pool-costs"
TABLE: Final = "costs.csv"
UNTIL: Final = "until"


def is_pool_costs(body: Mapping[str, Any]) -> str | None:
    """Its name, if this is the object; None of any other."""
    name = (body.get("metadata") or {}).get("name")
    return NAME if name == NAME else None


def pool_costs_object(own: str, name: str, costs: PoolCosts, version: str | None) -> dict[str, Any]:
    """The object. own: the operator's namespace."""
    about: dict[str, Any] = {"name": name, "namespace": own, "labels": {LABEL_POOL_COSTS: "true"}}
    if version is not None:
        about["resourceVersion"] = version
    data = {TABLE: costs.table()}
    if costs.until is not None:
        data[UNTIL] = write_unix_time(costs.until)
    return {"metadata": about, "data": data}


def read_pool_costs(body: Mapping[str, Any]) -> PoolCosts:
    """What the object holds. Raises ValueError where it can't be read."""
    data = body.get("data") or {}
    if TABLE not in data:
        raise ValueError(f"data has no {TABLE}")
    until = data.get(UNTIL)
    return PoolCosts.read(data[TABLE], None if until is None else read_unix_time(until))

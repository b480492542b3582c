"""The records of demand of all servers, in one ConfigMap each in the operator's namespace.

A record is extended by each reading, and stored half an hour after it was stored last, a few in each cycle: what is
lost when the process dies is read again from Prometheus, where there is one. Where they can't be read at the start,
nothing is stored over them. The record of a ProfiledJob that is gone goes, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import NotFound
from rightpool.cluster.resources import PROFILED_JOBS
from rightpool.contract import LABEL_DEMAND
from rightpool.planning.jobs.job import JobKey
from rightpool.profiles.demand import DemandRecord
from rightpool.profiles.served import ServedWindow
from rightpool.reporting.demand_object import demand_object, read_demand, recorded_server
from rightpool.runtime.act.config_maps import ConfigMaps, Form, MapEntry
from rightpool.runtime.act.fence import Fence

SAVE_SECONDS: Final = 1800.0
"""Between two writes of one record."""
SAVES_AT_ONCE: Final = 4
_RETRY_SECONDS: Final = 60.0
_FORM: Final = Form(
    "the record of demand", LABEL_DEMAND, recorded_server, demand_object, read_demand, anew=DemandRecord
)


class DemandRecords:
    """Used by the planner's thread alone; writes run on the client's threads."""

    def __init__(self, client: ClusterClient, fence: Fence, namespace: str) -> None:
        self._client = client
        self._maps: ConfigMaps[JobKey, DemandRecord] = ConfigMaps(
            client, fence, namespace, _FORM, writes_at_once=SAVES_AT_ONCE
        )
        self._load_at = -math.inf

    def follow(self) -> None:
        """This process does not lead: another one records."""
        self._maps.follow()
        self._load_at = -math.inf

    def of(self, key: JobKey) -> DemandRecord | None:
        """What is known of a server; None before the records were read."""
        return None if self._maps.kept is None else self._maps.kept.setdefault(key, MapEntry(DemandRecord())).value

    def cycle(self, servers: AbstractSet[JobKey], windows: Mapping[JobKey, ServedWindow], now: float) -> None:
        """Extend the records by what was read, and store those that are due. servers: all that there are."""
        was_read = self._maps.kept is not None
        self._maps.collect()
        if self._maps.kept is None and (was_read or now >= self._load_at):
            self._load_at = now + _RETRY_SECONDS
            self._maps.load(now)
        kept = self._maps.kept
        if kept is None:
            return
        for key in kept.keys() - servers:
            self._maps.end(key, lambda key=key: self._is_gone(key))  # type: ignore[misc]
        for key, window in windows.items():
            if key in servers and window.complete:
                one = kept.setdefault(key, MapEntry(DemandRecord(), saved_at=now))  # of what is young nothing is lost
                one.value.extend(window)
                one.dirty = True
        due = {key: one.saved_at for key, one in self._maps.waiting().items() if now - one.saved_at >= SAVE_SECONDS}
        self._maps.save(sorted(due, key=lambda key: (due[key], key)), now)

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self._maps.flush()

    def _is_gone(self, key: JobKey) -> bool:
        """Not whether it is looked after: it may have ended, be broken, or another release's, which may be forbidden to
        ask."""
        try:
            self._client.get(PROFILED_JOBS, key.name, key.namespace)
        except NotFound:
            return True
        return False

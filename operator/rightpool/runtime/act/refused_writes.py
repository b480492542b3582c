"""Statuses that the API server refused for what they hold: the answer to the same would be the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rightpool.cluster.errors import UNDECLARED
from rightpool.reporting.stored_job import StoredJob

# After which one is sent again: the definition may have been replaced.
REFUSED_SECONDS: Final = 60.0
OLDER_DEFINITION: Final = "the definition of ProfiledJobs in the cluster is older than the operator"


class RefusedWrites:
    """By job. Another version of the object is another status."""

    def __init__(self) -> None:
        self._refused: dict[str, tuple[str, float]] = {}

    def waits(self, stored: StoredJob, now: float) -> bool:
        """Whether a status of this object was refused a moment ago."""
        version, until = self._refused.get(stored.job.uid, ("", 0.0))
        return version == stored.resource_version and now < until

    def refuse(self, stored: StoredJob, message: str, now: float) -> str:
        """Note it; what to say of it. message: the API server's."""
        self._refused[stored.job.uid] = (stored.resource_version, now + REFUSED_SECONDS)
        if UNDECLARED in message:
            field = message[: message.index(UNDECLARED)].rstrip(": ").rpartition(".")[2]
            return f"{OLDER_DEFINITION} and lacks {field}, so that nothing is done: apply the chart's"
        return f"the status can't be written, and nothing is done before it is: {message}"

    def forget(self, uids: Iterable[str]) -> None:
        """These were written, or are gone."""
        for uid in uids:
            self._refused.pop(uid, None)

"""The records of jobs that have ended: what `rightpool simulate` plays again.

Each job is recorded once, from its stored status, so that whoever leads next records what the last one has not stored.
Records are kept in parts, one ConfigMap each; the newest part is written once in a minute in which jobs have ended.
When there are more than so many, the oldest part goes.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from itertools import islice
from typing import Final

from rightpool.cluster.client import ClusterClient
from rightpool.contract import LABEL_ENDED_JOBS
from rightpool.reporting.ended_job import ended_job
from rightpool.reporting.ended_jobs_object import EndedJobsPart, part_number, part_object, read_part
from rightpool.reporting.stored_job import StoredJob
from rightpool.runtime.act.config_maps import ConfigMaps, Form, MapEntry
from rightpool.runtime.act.fence import Fence

PART: Final = 500
"""Records of one part."""
PART_BYTES: Final = 700_000
"""Of a part, unpacked, before the next one is begun: an object of the API server has room for it however badly it
packs."""
PARTS: Final = 20
SAVE_SECONDS: Final = 60.0
AT_ONCE: Final = 100
"""Records that are made in one cycle: a status is read for each."""
_RETRY_SECONDS: Final = 60.0
_FORM: Final = Form(
    "the records of ended jobs", LABEL_ENDED_JOBS, part_number, part_object, read_part, anew=EndedJobsPart
)

logger = logging.getLogger(__name__)


class EndedJobs:
    """Used by the planner's thread alone; writes run on the client's threads."""

    def __init__(self, client: ClusterClient, fence: Fence, namespace: str) -> None:
        self._maps: ConfigMaps[int, EndedJobsPart] = ConfigMaps(client, fence, namespace, _FORM, writes_at_once=1)
        self._looked: set[str] = set()
        self._load_at = -math.inf

    def follow(self) -> None:
        """This process does not lead: another one records."""
        self._maps.follow()
        self._looked.clear()
        self._load_at = -math.inf

    def cycle(self, stored: Iterable[StoredJob], now: float) -> None:
        """Record who has ended, and write the newest part if that is due. stored: all jobs that there are."""
        self._maps.collect()
        if self._maps.kept is None and now >= self._load_at:
            self._load_at = now + _RETRY_SECONDS
            self._looked.clear()
            self._maps.load(now)
        kept = self._maps.kept
        if kept is None:
            return
        self._record(kept, stored, now)
        due = [number for number, one in self._maps.waiting().items() if now - one.saved_at >= SAVE_SECONDS]
        self._maps.save(due, now)

    def flush(self) -> None:
        """Store what is not stored yet, at the end of the process."""
        self._maps.flush()

    def _record(self, kept: dict[int, MapEntry[EndedJobsPart]], stored: Iterable[StoredJob], now: float) -> None:
        jobs = (entry for entry in stored if not entry.job.on_trial)
        ended = {entry.job.uid: entry for entry in jobs if entry.job.state.finished is not None}
        self._looked &= ended.keys()
        news = [entry for uid, entry in ended.items() if uid not in self._looked]
        for entry in islice(news, AT_ONCE):
            self._looked.add(entry.job.uid)
            if any(entry.job.uid in one.value.uids for one in kept.values()):
                continue
            try:
                record = ended_job(entry)
            except Exception:  # of what others have written into a status: one job less in the records
                logger.exception("no record is kept of a job that has ended", extra={"job": str(entry.job.key)})
                continue
            if record is None or (len(kept) >= PARTS and record.ended < kept[min(kept)].value.newest):
                continue
            number = max(kept, default=0)
            if number == 0 or kept[number].value.full(PART, PART_BYTES):
                number += 1
                kept[number] = MapEntry(EndedJobsPart())
            kept[number].value.add(record)
            kept[number].dirty = True
        for number in sorted(kept)[:-PARTS]:
            self._maps.end(number, lambda: True)

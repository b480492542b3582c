"""Objects that are made anew: while one is deleted, what the status of its ProfiledJob says of it stands in for it."""

from __future__ import annotations

import json
from collections.abc import Collection

from rightpool.planning.jobs.job import Job, JobKey
from rightpool.runtime.observe.facts import ChildFacts, child_facts
from rightpool.workloads.kinds.registry import kind_named


class StandIns:
    """Those of all ProfiledJobs, by key."""

    def __init__(self) -> None:
        self._known: dict[JobKey, tuple[str, ChildFacts]] = {}  # with the manifest that it is read from

    def see(self, job: Job) -> bool:
        """Read what the status says; whether that is something else than before."""
        adopted, known = job.state.adopted, self._known.get(job.key)
        text = None if adopted is None else adopted.remade
        if adopted is None or text is None:
            return self._known.pop(job.key, None) is not None
        if known is not None and known[0] == text:
            return False
        facts = _read(job, text, adopted.uid)
        if facts is not None:
            self._known[job.key] = (text, facts)
        return facts is not None

    def forget(self, key: JobKey) -> None:
        """The ProfiledJob is gone."""
        self._known.pop(key, None)

    def among(self, key: JobKey, children: Collection[ChildFacts]) -> Collection[ChildFacts]:
        """The children of a ProfiledJob, with what stands in for its object while that is not there, or is being
        deleted."""
        known = self._known.get(key)
        if known is None:
            return children
        stand_in = known[1]
        there = [child for child in children if not (child.uid == stand_in.uid and child.deleting)]
        back = any(child.adopted is not None and child.owner == stand_in.owner for child in there)
        return there if back else [*there, stand_in]


def _read(job: Job, text: str, uid: str) -> ChildFacts | None:
    """It is the object that it was, until that has another uid. None: not what the operator has written."""
    try:
        body = json.loads(text)
        kind = kind_named(body["apiVersion"], body["kind"])
        about = {**body["metadata"], "namespace": job.key.namespace, "uid": uid}
        return None if kind is None else child_facts(kind, {**body, "metadata": about})
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

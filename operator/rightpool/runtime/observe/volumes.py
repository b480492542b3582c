"""Volumes that claims of jobs are bound to, and that some nodes alone can use, such as those of a zone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from rightpool.hardware.node_needs import Terms, terms_of
from rightpool.planning.jobs.job import JobKey
from rightpool.reporting.stored_job import StoredJob


class VolumeFacts(NamedTuple):
    """A PersistentVolume that is bound, or to be bound, to a claim."""

    claim: tuple[str, str]
    """Namespace and name of the PersistentVolumeClaim."""
    terms: Terms
    """Its required node affinity."""


def volume_facts(body: Mapping[str, Any]) -> VolumeFacts | None:
    """None of one that all nodes can use, or that nobody claims any more."""
    spec, phase = body.get("spec") or {}, (body.get("status") or {}).get("phase")
    claim, terms = spec.get("claimRef"), terms_of((spec.get("nodeAffinity") or {}).get("required"))
    if not claim or not terms or phase in ("Released", "Failed"):
        return None
    return VolumeFacts((str(claim.get("namespace")), str(claim.get("name"))), terms)


class BoundJobs:
    """Jobs with what the volumes of their claims ask of nodes. Of a job that is the same, and whose volumes are, it
    gives the very object of before."""

    def __init__(self) -> None:
        self._volumes: Iterable[VolumeFacts] = ()
        self._by_claim: Mapping[tuple[str, str], Terms] = {}
        self._bound: dict[JobKey, tuple[StoredJob, StoredJob]] = {}  # each as it is stored, and bound

    def of(self, jobs: Mapping[JobKey, StoredJob], volumes: Iterable[VolumeFacts]) -> dict[JobKey, StoredJob]:
        """All of the jobs; `volumes` is the very object of before while none has changed."""
        same = volumes is self._volumes
        if not same:
            self._volumes, self._by_claim = volumes, dict(volumes)
        bound: dict[JobKey, tuple[StoredJob, StoredJob]] = {}
        for key, stored in jobs.items():
            if stored.claims:
                known = self._bound.get(key)
                if known is None or known[0] is not stored:
                    known = stored, stored.bound_to(self._by_claim)
                elif not same and _asked(made := stored.bound_to(self._by_claim)) != _asked(known[1]):
                    known = stored, made
                bound[key] = known
        self._bound = bound
        return {**jobs, **{key: made for key, (_, made) in bound.items()}}


def _asked(stored: StoredJob) -> tuple[object, ...]:
    return stored.job.needs, stored.job.variants

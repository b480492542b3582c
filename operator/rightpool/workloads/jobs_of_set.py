"""The Jobs of a JobSet, which its controller does not make anew when the JobSet is resumed.

It lays the node selector of the JobSet over theirs, so that a key which the JobSet has no more stays in them, and names
a pool that it has left. What is deleted of them is made anew, as the JobSet has it by then.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from rightpool.api.kubernetes import Resource

ROLE: Final = "jobset.sigs.k8s.io/replicatedjob-name"


class JobsOfSet(NamedTuple):
    """Which Jobs are those of an object that has been adopted."""

    resource: Resource
    """Of the JobSet."""

    name: str
    """Of the JobSet."""

    label: tuple[str, str]
    """Which its Jobs have, and no others."""

    def outdated(
        self, job_set: Mapping[str, Any], jobs: Iterable[Mapping[str, Any]], keys: Collection[str]
    ) -> Iterator[Mapping[str, Any]]:
        """Those that are to run, of which no pod does, with a key of a node selector that the JobSet has no more. keys:
        those that name pools."""
        kept = {role["name"]: _keys(role["template"]["spec"]) for role in job_set["spec"].get("replicatedJobs") or ()}
        for job in jobs:
            about, spec, status = (job.get(part) or {} for part in ("metadata", "spec", "status"))
            role = (about.get("labels") or {}).get(ROLE)
            idle = about.get("deletionTimestamp") or spec.get("suspend") or status.get("completionTime")
            if role in kept and not idle and not status.get("ready") and (_keys(spec) - kept[role]).intersection(keys):
                yield job


def _keys(spec: Mapping[str, Any]) -> set[str]:
    """Of the node selector in a Job's spec."""
    return set((spec["template"].get("spec") or {}).get("nodeSelector") or ())

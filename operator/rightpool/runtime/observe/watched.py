"""The watched resources: Rightpool's own, nodes, volumes, namespaces, and the children and pods of ProfiledJobs."""

from __future__ import annotations

from collections.abc import Mapping

from rightpool.api.kubernetes import Resource
from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    NAMESPACES,
    NODES,
    PERSISTENT_VOLUMES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
)
from rightpool.contract import LABEL_JOB
from rightpool.workloads.kinds.registry import child_resources


def watched() -> Mapping[Resource, str | None]:
    """The watched resources with the label that selects their objects; None selects all.

    The API server applies the selector, so that all other Jobs and pods of the cluster are not transferred.
    """
    return {
        PROFILED_JOBS: None,
        ACCELERATOR_POOLS: None,
        PLACEMENT_POLICIES: None,
        NODES: None,
        PERSISTENT_VOLUMES: None,
        NAMESPACES: None,
        **dict.fromkeys(child_resources(), LABEL_JOB),
        PODS: LABEL_JOB,
    }

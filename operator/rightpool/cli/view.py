"""What the cluster shows to whoever asks: the operator's own view of it, as far as their permissions go.

The same store, the same survey of the fleet, the same reading of jobs. Where somebody may not list nodes or pods, the
chips that the operator wrote into the pools' status stand in, and a note says so.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from rightpool.api.policy import POLICY_NAME, PlacementPolicySpec
from rightpool.api.pool import AcceleratorPoolSpec, AcceleratorPoolStatus
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound
from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    JOBS,
    NODES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
    Resource,
)
from rightpool.contract import LABEL_JOB
from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.hardware.inventory import Inventory, ProblemKind, build_pools
from rightpool.hardware.node_labels import with_node_labels
from rightpool.hardware.pool import Pool
from rightpool.planning.snapshot import JobKey
from rightpool.runtime.facts import meta
from rightpool.runtime.fleet import Fleet, is_discovered, survey_fleet
from rightpool.runtime.jobs import StoredJob, first_problem
from rightpool.runtime.store import Store
from rightpool.runtime.usage import ChipUsage

# What pools by status cannot know, and must not complain about.
_WITHOUT_NODES: Final = frozenset({ProblemKind.NO_NODES, ProblemKind.PRICE_UNVERIFIED})


@dataclass(frozen=True, slots=True)
class PoolProblem:
    """pool: None where it is about nodes that belong to none."""

    pool: str | None
    message: str


@dataclass(frozen=True, slots=True)
class FleetView:
    """pools: usable ones. problems: of all. notes: what could not be looked at, and what stands in for it."""

    pools: Mapping[str, Pool]
    problems: tuple[PoolProblem, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class ClusterView:
    """Reads what it is asked for once, and keeps it. namespace: of the jobs that are asked about."""

    client: ClusterClient
    namespace: str
    catalog: Catalog = field(default_factory=load_catalog)
    store: Store = field(default_factory=Store)
    notes: list[str] = field(default_factory=list)

    # --- jobs --------------------------------------------------------------------------------------------------------

    def jobs(self, namespace: str | None) -> dict[JobKey, StoredJob]:
        """ProfiledJobs of a namespace; None: of all."""
        self._list(PROFILED_JOBS, namespace)
        return {key: job for key, job in self.store.jobs().items() if namespace in (None, key.namespace)}

    def all_jobs(self) -> dict[JobKey, StoredJob]:
        """Those of the whole cluster, or of the namespace alone where more may not be listed."""
        try:
            return self.jobs(None)
        except Forbidden:
            self.notes.append(
                f"jobs of other namespaces can't be listed: chips promised to them count as free, and limits of the "
                f"fleet are judged by {self.namespace} alone"
            )
            return self.jobs(self.namespace)

    def children(self, key: JobKey) -> None:
        """Put a job's Jobs and pods into the store."""
        labels = f"{LABEL_JOB}={key.name}"
        for resource in (JOBS, PODS):
            try:
                self._list(resource, key.namespace, labels)
            except Forbidden as error:
                self.notes.append(f"whether its pods run is taken from the status: {error.message}")

    # --- machines ----------------------------------------------------------------------------------------------------

    def policy(self) -> PlacementPolicySpec:
        """The fleet's policy, the defaults where there is none."""
        try:
            body = self.client.get(PLACEMENT_POLICIES, POLICY_NAME)
            return PlacementPolicySpec.model_validate(body.get("spec") or {})
        except NotFound:
            return PlacementPolicySpec()
        except Forbidden:
            self.notes.append("the PlacementPolicy can't be read: its defaults are assumed")
        except ValidationError as error:
            self.notes.append(f"the PlacementPolicy can't be read, the defaults hold: {first_problem(error)}")
        return PlacementPolicySpec()

    def fleet(self, selected: Collection[str] = ()) -> FleetView:
        """Pools with what is there and free. selected: label keys that jobs select nodes by."""
        self._list(ACCELERATOR_POOLS, None)
        objects = self.store.objects(ACCELERATOR_POOLS)
        try:
            self._list(NODES, None)
            self._list(PODS, None, LABEL_JOB)
        except Forbidden as error:
            return self._by_status(objects, error)
        return self._by_nodes(objects, selected)

    def _by_nodes(self, objects: list[Mapping[str, Any]], selected: Collection[str]) -> FleetView:
        usage = ChipUsage(self.client, interval=0.0)

        def survey() -> Fleet:
            return survey_fleet(objects, self.store.objects(NODES), self.store.all_pods(), usage, self.catalog)

        fleet = survey()
        if usage.refresh({spec.resource_name for spec in fleet.specs.values()}):
            fleet = survey()
        problems = [PoolProblem(problem.pool, problem.message) for problem in fleet.inventory.problems]
        problems += [PoolProblem(name, message) for name, message in sorted(fleet.unreadable.items())]
        problems += [PoolProblem(None, f"{len(nodes.nodes)} nodes: {nodes.message}") for nodes in fleet.unmapped]
        return FleetView(with_node_labels(fleet.inventory, self.store.objects(NODES), selected), tuple(problems))

    def _by_status(self, objects: list[Mapping[str, Any]], error: ClusterError) -> FleetView:
        """Pools as declared, with the chips that the operator counted."""
        specs: dict[str, AcceleratorPoolSpec] = {}
        counted: dict[str, AcceleratorPoolStatus] = {}
        problems: list[PoolProblem] = []
        for body in objects:
            name = str(meta(body)["name"])
            try:
                specs[name] = AcceleratorPoolSpec.model_validate(body.get("spec") or {})
                counted[name] = AcceleratorPoolStatus.model_validate(body.get("status") or {})
            except ValidationError as problem:
                specs.pop(name, None)
                problems.append(PoolProblem(name, f"spec: {first_problem(problem)}"))
        labels = {str(meta(body)["name"]): meta(body).get("labels") or {} for body in objects}
        inventory: Inventory = build_pools(specs, (), {}, self.catalog, labels=labels)
        found = {str(meta(body)["name"]) for body in objects if is_discovered(body)}
        pools = {
            name: _counted(pool, specs[name], counted[name], name in found) for name, pool in inventory.pools.items()
        }
        for pool_problem in inventory.problems:
            if pool_problem.kind not in _WITHOUT_NODES:
                problems.append(PoolProblem(pool_problem.pool, pool_problem.message))
        for name, status in counted.items():
            problems += [PoolProblem(name, c.message) for c in status.conditions if c.status == "False"]
        notes = [f"free chips are those that the operator counted last: {error.message}"]
        if uncounted := sorted(name for name in pools if counted[name].chips.free is None):
            notes.append(
                f"what is in use of {', '.join(uncounted)} is not counted, because the operator looks after some "
                "namespaces only: all chips are taken for free"
            )
        return FleetView(pools, tuple(problems), tuple(notes))

    def _list(self, resource: Resource, namespace: str | None, labels: str | None = None) -> None:
        # A list is complete for its namespace only; nothing is to be dropped for what another one holds.
        self.store.reconcile(resource, self.client.list_all(resource, namespace, labels=labels), "")


def _counted(pool: Pool, spec: AcceleratorPoolSpec, status: AcceleratorPoolStatus, discovered: bool) -> Pool:
    unit = spec.chips_per_node if spec.slice is None else spec.slice.chips
    return replace(
        pool,
        total=status.chips.total,
        free=status.chips.total if status.chips.free is None else status.chips.free,
        nodes=status.nodes,
        growable=max(0, (spec.max_chips or 0) - status.chips.total) // unit * unit,
        discovered=discovered,
    )

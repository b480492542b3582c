"""The cluster as the operator sees it, read with the user's permissions.

Jobs and pools are read with the operator's own store and inventory. Users who may not list nodes or pods get the chip
counts that the operator wrote into the pools' status, with a note about it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pydantic import ValidationError

from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.api.outcome import MoveOutcome
from rightpool.api.policy import POLICY_NAME, PlacementPolicySpec, PlacementPolicyStatus
from rightpool.api.pool import AcceleratorPoolSpec, AcceleratorPoolStatus
from rightpool.api.value_object import value_object
from rightpool.api.wording import how_many
from rightpool.cli.books import read_all_books
from rightpool.cli.connection import CliError
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound
from rightpool.cluster.resources import (
    ACCELERATOR_POOLS,
    CONFIG_MAPS,
    NODES,
    PERSISTENT_VOLUMES,
    PLACEMENT_POLICIES,
    PODS,
    PROFILED_JOBS,
)
from rightpool.contract import CATALOG_KEY, LABEL_CATALOG, LABEL_JOB
from rightpool.hardware.catalog import Catalog, load_catalog
from rightpool.hardware.chart_values import with_values
from rightpool.hardware.inventory import Inventory, ProblemKind, build_pools
from rightpool.hardware.node_needs import Aspect
from rightpool.hardware.node_shapes import with_node_shapes
from rightpool.hardware.pool import Pool
from rightpool.planning.books.chargeback import deleted_moves
from rightpool.planning.jobs.booked_move import BookedMove
from rightpool.planning.jobs.job import JobKey
from rightpool.planning.offers.experience import MOST_COMPARISONS
from rightpool.reporting.stored_job import StoredJob, first_problem
from rightpool.reporting.stored_policy import StoredPolicy
from rightpool.runtime.observe.facts import meta
from rightpool.runtime.observe.members import Members
from rightpool.runtime.observe.pool_inventory import (
    PoolInventory,
    is_discovered,
    kept_calibrations,
    kept_outcomes,
    kept_prices,
    kept_spot_uses,
    take_inventory,
)
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from rightpool.runtime.observe.volumes import BoundJobs
from rightpool.workloads.kinds.registry import child_resources

# Problems that are reported only when nodes can be listed.
_OF_VALUES: Final = frozenset({Reason.PRICE_FROM_VALUES.value, Reason.CHIP_FROM_VALUES.value})
_WITHOUT_NODES: Final = frozenset({ProblemKind.NO_NODES, ProblemKind.NODES_NOT_READY, ProblemKind.PRICE_UNVERIFIED})


@value_object
class PoolProblem:
    """A problem of a pool, or of nodes."""

    pool: str | None
    """None for nodes that belong to no pool."""
    message: str
    """What is wrong, with the field."""


@value_object
class FleetView:
    """All pools as far as the user may read them."""

    pools: Mapping[str, Pool]
    """Usable pools."""
    problems: tuple[PoolProblem, ...] = ()
    """Problems of all pools."""
    notes: tuple[str, ...] = ()
    """What could not be read, and what is shown instead."""
    worth: Mapping[str, float] = field(default_factory=dict)
    """Dollars an hour that one more chip of a pool would be worth to the fleet beyond its price; of pools alone of
    which more are wanted than there are."""


@dataclass(slots=True)
class ClusterView:
    """Reads objects on request, and stores them."""

    client: ClusterClient
    """Speaks to the API server with the rights of the user."""
    namespace: str
    """The namespace of the command."""
    operator_namespace: str
    """Where the operator is installed. Its books and the chart's values are read there and nowhere else: tenants can
    write ConfigMaps like them."""
    catalog: Catalog = field(default_factory=load_catalog)
    """With the chart's values once `fleet` or `read_values` was called."""
    store: Store = field(default_factory=Store)
    """What was read so far."""
    partial: bool = False
    """Whether the jobs of other namespaces could not be read."""
    notes: list[str] = field(default_factory=list)
    """What could not be read, and what is assumed instead."""
    _members: Members = field(init=False)

    def __post_init__(self) -> None:
        self._members = Members(self.client, self.store, lambda: None)

    # --- jobs --------------------------------------------------------------------------------------------------------

    def jobs(self, namespace: str | None) -> dict[JobKey, StoredJob]:
        """The ProfiledJobs of a namespace, of all namespaces if None."""
        self._list(PROFILED_JOBS, namespace)
        return {key: job for key, job in self.store.jobs().items() if namespace in (None, key.namespace)}

    def all_jobs(self) -> dict[JobKey, StoredJob]:
        """The ProfiledJobs of all namespaces, or of the command's namespace if the user may not list all, with what
        their volumes ask of nodes."""
        jobs = self._all_jobs()
        if any(stored.claims for stored in jobs.values()):
            try:
                self._list(PERSISTENT_VOLUMES, None)
            except Forbidden as error:
                self.notes.append(f"on which nodes volumes can be used is left out: {error.message}")
        return BoundJobs().of(jobs, self.store.objects(PERSISTENT_VOLUMES))

    def _all_jobs(self) -> dict[JobKey, StoredJob]:
        try:
            return self.jobs(None)
        except Forbidden:
            self.partial = True
            self.notes.append(
                f"jobs of other namespaces can't be listed: chips reserved for them count as free, and limits of the "
                f"fleet are applied to {self.namespace} only"
            )
            return self.jobs(self.namespace)

    def children(self, namespace: str | None, name: str | None = None) -> None:
        """Load the children and pods of a job into the store; without a name, those of all jobs of the namespace, and
        without that of all."""
        for resource in (*child_resources(), PODS):
            try:
                self._list(resource, namespace, LABEL_JOB if name is None else f"{LABEL_JOB}={name}")
            except NotFound:
                continue  # a kind that is not installed
            except Forbidden as error:
                self.notes.append(f"whether pods run is taken from the status: {error.message}")
        self._members.refresh()

    # --- pools -------------------------------------------------------------------------------------------------------

    def policy(self) -> PlacementPolicySpec:
        """The PlacementPolicy, with defaults if there is none."""
        try:
            stored = StoredPolicy.of(self.client.get(PLACEMENT_POLICIES, POLICY_NAME))
        except NotFound:
            return PlacementPolicySpec()
        except Forbidden:
            self.notes.append("the PlacementPolicy can't be read: its defaults are assumed")
            return PlacementPolicySpec()
        if stored.problem is not None:
            self.notes.append(stored.problem)
        return stored.spec

    def worth(self) -> Mapping[str, float]:
        """What the plan of the fleet has found of each pool, as the policy's status keeps it."""
        try:
            body = self.client.get(PLACEMENT_POLICIES, POLICY_NAME)
            status = PlacementPolicyStatus.model_validate(body.get("status") or {})
        except (NotFound, Forbidden, ValidationError):
            return {}
        return {chip.pool: float(chip.per_chip_hour) for chip in status.chips}

    def fleet(self, asked: Collection[Aspect] = ()) -> FleetView:
        """The pools with total and free chips. `asked` is what jobs ask of nodes."""
        self._list(ACCELERATOR_POOLS, None)
        objects = self.store.objects(ACCELERATOR_POOLS)
        hidden = self.read_values()
        view = self._fleet(objects, asked)
        known = {spec.accelerator for spec in self.specs().values()}
        unseen = [one for one in self.catalog.problems if one.accelerator not in known]
        unused = [PoolProblem(None, one.message) for one in unseen if one.accelerator or not known]
        notes = (hidden,) if hidden is not None and any(map(_by_values, objects)) else ()
        return replace(view, problems=(*view.problems, *unused), notes=(*view.notes, *notes))

    def read_values(self) -> str | None:
        """Put what the chart's values say of chips and prices over the catalog. A sentence if none were read."""
        catalog = load_catalog()
        where, missing = self.operator_namespace, None
        try:
            found = self.client.list_all(CONFIG_MAPS, where, labels=LABEL_CATALOG)
        except Forbidden as error:
            found, missing = [], f"figures and prices of the chart's values are left out: {error.message}"
        else:
            if not found:
                missing = (
                    f"namespace {where} has no figures and prices of a chart's values, so the catalog's are used. If "
                    "the operator is in another namespace, name it by --operator-namespace"
                )
        for body in sorted(found, key=lambda body: str(meta(body)["name"])):
            catalog = with_values(catalog, str((body.get("data") or {}).get(CATALOG_KEY) or ""))
        self.catalog = catalog
        return missing

    def deleted_moves(self, alive: Collection[str]) -> tuple[BookedMove, ...]:
        """What moves of deleted jobs have shown, by the operator's books: tenants could write others. alive: uids of
        the jobs that are there."""
        try:
            books = read_all_books(self.client, self.operator_namespace, None)
        except (Forbidden, CliError) as error:
            self.notes.append(f"what moves of deleted jobs have shown is left out: {error}")
            return ()
        return deleted_moves(books.values(), alive, MOST_COMPARISONS)

    def specs(self) -> dict[str, AcceleratorPoolSpec]:
        """Of the AcceleratorPools that were read and have a valid spec, by name."""
        found = {}
        for body in self.store.objects(ACCELERATOR_POOLS):
            with contextlib.suppress(ValidationError):
                found[str(meta(body)["name"])] = AcceleratorPoolSpec.model_validate(body.get("spec") or {})
        return found

    def _fleet(self, objects: Sequence[Mapping[str, Any]], asked: Collection[Aspect]) -> FleetView:
        try:
            self._list(NODES, None)
            self._list(PODS, None, LABEL_JOB)
        except Forbidden as error:
            return self._by_status(objects, error)
        return self._by_nodes(objects, asked)

    def outcomes(self) -> dict[str, tuple[MoveOutcome, ...]]:
        """How moves to each pool ended, as the pools have kept it."""
        return kept_outcomes({str(meta(body)["name"]): body for body in self.store.objects(ACCELERATOR_POOLS)})

    def _by_nodes(self, objects: Sequence[Mapping[str, Any]], asked: Collection[Aspect]) -> FleetView:
        usage = ChipUsage(self.client, interval=0.0, members=lambda: self._members.labels)

        def inventory() -> PoolInventory:
            return take_inventory(objects, self.store.objects(NODES), self.store.all_pods(), usage, self.catalog)

        fleet = inventory()
        if usage.refresh({spec.resource_name for spec in fleet.specs.values()}):
            fleet = inventory()
        problems = [PoolProblem(problem.pool, problem.message) for problem in fleet.inventory.problems]
        problems += [PoolProblem(name, message) for name, message in sorted(fleet.unreadable.items())]
        problems += [
            PoolProblem(None, f"{how_many(len(nodes.nodes), 'node')}: {nodes.message}")
            for nodes in fleet.without_pool()
        ]
        return FleetView(with_node_shapes(fleet.inventory, fleet.nodes, asked), tuple(problems))

    def _by_status(self, objects: Sequence[Mapping[str, Any]], error: ClusterError) -> FleetView:
        """Pools by their specs, with the chip counts that the operator wrote into their status."""
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
        stored = {str(meta(body)["name"]): body for body in objects}
        inventory: Inventory = build_pools(
            specs,
            (),
            {},
            self.catalog,
            labels=labels,
            calibrations=kept_calibrations(stored),
            prices=kept_prices(stored),
            spot_uses=kept_spot_uses(stored),
        )
        discovered = {str(meta(body)["name"]) for body in objects if is_discovered(body)}
        pools = {
            name: _counted(pool, specs[name], counted[name], name in discovered)
            for name, pool in inventory.pools.items()
        }
        for pool_problem in inventory.problems:
            if pool_problem.kind not in _WITHOUT_NODES:
                problems.append(PoolProblem(pool_problem.pool, pool_problem.message))
        for name, status in counted.items():
            problems += [PoolProblem(name, c.message) for c in status.conditions if c.status == "False"]
        notes = [f"free chips are those that the operator counted last: {error.message}"]
        if uncounted := sorted(name for name in pools if counted[name].chips.free is None):
            notes.append(
                f"chips in use of {', '.join(uncounted)} are not counted, because the operator manages some "
                "namespaces only or may not list pods: all of their chips count as free"
            )
        return FleetView(pools, tuple(dict.fromkeys(problems)), tuple(notes))

    def _list(self, resource: Resource, namespace: str | None, labels: str | None = None) -> None:
        # The list is complete for one namespace only. With an empty version the store drops no other object.
        self.store.reconcile(resource, self.client.list_all(resource, namespace, labels=labels), "")


def _by_values(pool: Mapping[str, Any]) -> bool:
    """Whether the operator has figures or the price of a stored pool from the chart's values."""
    conditions = (pool.get("status") or {}).get("conditions") or ()
    return any(condition.get("reason") in _OF_VALUES for condition in conditions)


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

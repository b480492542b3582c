"""Asks the API server, by dry runs, whether it would take children of a spec: a mistake is reported at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rightpool.api.conditions import Reason
from rightpool.api.kubernetes import Resource
from rightpool.api.placement import Placement
from rightpool.api.revision import Revision
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import AlreadyExists, Forbidden, Invalid
from rightpool.hardware.pool import Pool
from rightpool.planning.jobs.job import Job
from rightpool.planning.jobs.revision_state import VariantRefusal
from rightpool.planning.moves.beginning import next_revision
from rightpool.planning.moves.commands import CheckTemplate, CheckVariants
from rightpool.runtime.act.children import Children
from rightpool.runtime.act.companions import Companions
from rightpool.runtime.act.fence import Fence
from rightpool.runtime.act.refusals import Refusals
from rightpool.runtime.observe.store import Store
from rightpool.workloads.kinds.kind import Kind
from rightpool.workloads.kinds.registry import kind_of
from rightpool.workloads.refused_fields import by_name
from rightpool.workloads.template import InvalidTemplate

REQUESTS_PER_CYCLE: Final = 20
"""Children that one cycle may ask about for edits that wait for the answer, and as many again for all else: after a
restart nothing is known of any job, and what is started or moved has to be written meanwhile. Each takes a dry run, and
one more for each object that is made of it."""
AGAIN_SECONDS: Final = 60.0  # until what got no answer is asked again: it must not use up what others may ask


@dataclass(slots=True)
class _Checked:
    """What the API server was asked about one generation of a job."""

    generation: int
    template: bool = False
    variants: dict[str, str | None] = field(default_factory=dict)
    """By vendor, why it would not take a child with that variant."""
    again: Mapping[type, float] = field(default_factory=dict)
    """By command, when it may be asked again where there was no answer."""


class TemplateChecks:
    """Thread-safe where those of one job are made in one thread at a time.

    What was found is kept in memory alone: another leader asks again.
    """

    def __init__(
        self,
        client: ClusterClient,
        fence: Fence,
        children: Children,
        store: Store,
        refusals: Refusals,
        clock: Callable[[], float],
    ) -> None:
        self._client = client
        self._fence = fence
        self._children = children
        self._companions = Companions(client, fence, children)
        self._store = store
        self._refusals = refusals
        self._clock = clock
        self._checked: dict[str, _Checked] = {}  # by uid of the ProfiledJob
        self._lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        """A new cycle."""
        with self._lock:
            self._left = dict.fromkeys((True, False), REQUESTS_PER_CYCLE)

    def template_checked(self, job: Job) -> bool:
        """Whether the API server was asked about the template of this generation."""
        return self._of(job).template

    def variants_checked(self, job: Job) -> bool:
        """Whether it was asked about all variants that are not in use."""
        return not job.variants or not self._unchecked(job)

    def refused_variants(self, job: Job) -> tuple[VariantRefusal, ...]:
        """Those that it would not take."""
        if not job.variants:
            return ()
        found = self._of(job).variants
        return tuple(VariantRefusal(vendor, message) for vendor, message in found.items() if message is not None)

    def needed(self, job: Job, command: CheckTemplate | CheckVariants) -> bool:
        """Whether it is to be asked now, as far as this cycle's requests go."""
        requests, now = self._requests(job, command), self._clock()
        if not requests or now < self._of(job).again.get(type(command), now):
            return False
        return requests <= self._left[_waits(command)]

    def carry_out(self, job: Job, command: CheckTemplate | CheckVariants, pools: Mapping[str, Pool]) -> bool:
        """Ask, unless other jobs have used up this cycle's requests meanwhile. Whether the answer is that nothing is
        wrong."""
        self._fence.leader()
        if not self._claim(job, command):
            return False
        if isinstance(command, CheckVariants):
            return self._check_variants(job, pools)
        return self._check_template(job, command, pools)

    def forget(self, uids: set[str]) -> None:
        """Forget deleted jobs."""
        for uid in uids:
            self._checked.pop(uid, None)

    def _of(self, job: Job) -> _Checked:
        checked = self._checked.get(job.uid)
        return checked if checked is not None and checked.generation == job.generation else _Checked(job.generation)

    def _claim(self, job: Job, command: CheckTemplate | CheckVariants) -> bool:
        """Whether there are requests left for it. Then it counts as asked."""
        requests, waits, checked = self._requests(job, command), _waits(command), self._of(job)
        with self._lock:
            if requests > self._left[waits]:
                return False
            self._left[waits] -= requests
        again = {**checked.again, type(command): self._clock() + AGAIN_SECONDS}
        self._checked[job.uid] = replace(checked, again=again)
        return True

    def _requests(self, job: Job, command: CheckTemplate | CheckVariants) -> int:
        """How many dry runs it takes at most: of a variant one with it and one without; 0 where all is known."""
        if isinstance(command, CheckVariants):
            return 2 * len(self._unchecked(job))
        return 0 if self.template_checked(job) else 1

    def _check_template(self, job: Job, command: CheckTemplate, pools: Mapping[str, Pool]) -> bool:
        """Only what is wrong with the child itself is a refusal: a quota may be free when there is a place for it."""
        if self.template_checked(job):
            return False
        ref = command.target or _anywhere(job, min(pools, default=None))
        pool = None if ref is None else pools.get(ref.placement.pool)
        if ref is None or pool is None:
            return False
        try:
            message = self._refusal(job, ref, pool)
        except InvalidTemplate as error:
            # Where there is no place yet, another pool may do for its node selector.
            message = None if command.target is None else error.message
        self._checked[job.uid] = replace(self._of(job), template=True)
        if message is not None:
            message = with_variant(job, ref.vendor, message)
            self._refusals.add(job, ref.revision, Reason.INVALID_TEMPLATE, message)
            return False
        self._store.wake()  # the migration waits for it
        return True

    def _check_variants(self, job: Job, pools: Mapping[str, Pool]) -> bool:
        found = {vendor: self._variant_refusal(job, vendor, pools) for vendor in self._unchecked(job)} if pools else {}
        checked = self._of(job)
        self._checked[job.uid] = replace(checked, variants=checked.variants | found)
        if found:
            self._store.wake()
        return bool(found) and not any(found.values())

    def _unchecked(self, job: Job) -> list[str]:
        """Vendors of variants. The one in use needs no check: its child was taken, and an edit of it has its own."""
        used = None if job.state.revision is None else job.state.revision.vendor
        known = self._of(job).variants
        return [variant.vendor for variant in job.variants if variant.vendor != used and variant.vendor not in known]

    def _variant_refusal(self, job: Job, vendor: str, pools: Mapping[str, Pool]) -> str | None:
        """Why no child with this variant would be taken; None where one would, on some pool of the vendor.

        Where the cluster has no such pool yet, the API server judges what another pool would be given.
        """
        own = [name for name in sorted(pools) if pools[name].accelerator.vendor.name == vendor]
        unbuilt: str | None = None
        for name in own or sorted(pools):
            ref = _anywhere(job, name)
            assert ref is not None
            try:
                message = self._refusal(job, replace(ref, vendor=vendor), pools[name])
            except InvalidTemplate as error:
                unbuilt = unbuilt or error.message
                continue
            if message is None or self._is_refused_anyhow(job, ref, pools[name]):
                return None  # what is wrong with the template itself is no fault of the variant
            return with_variant(job, vendor, message)
        return with_variant(job, vendor, unbuilt) if own and unbuilt is not None else None

    def _is_refused_anyhow(self, job: Job, ref: Revision, pool: Pool) -> bool:
        """Whether the API server would not take the template without a variant, either; one that can't be built for
        this pool, such as for its nodeSelector, says nothing."""
        try:
            return self._refusal(job, ref, pool) is not None
        except InvalidTemplate:
            return False

    def _refusal(self, job: Job, ref: Revision, pool: Pool) -> str | None:
        """Why the API server would not take this child, or what is made of it. Raises InvalidTemplate where it can't be
        built."""
        kind, original = kind_of(job.spec.workload), self._companions.original(job)
        manifest = self._children.build(job, ref, pool, suspend=True, original=original)
        companion = self._children.companion(job, ref, pool, original)
        if kind.companion is not None and companion is not None:
            refused = _refused(self._client, kind.companion.resource, companion)
            if refused is not None:
                return refused
            manifest = kind.companion.without(job.spec.workload.chosen, manifest)
        return refused_as_new(self._client, kind, manifest)


def refused_of_made(client: ClusterClient, kind: Kind[Any], manifest: Mapping[str, Any]) -> str | None:
    """Why the API server would not take what the kind's controller makes of this child."""
    found = (_refused(client, resource, body) for resource, body in kind.made_of(manifest))
    return next((message for message in found if message is not None), None)


def refused_as_new(client: ClusterClient, kind: Kind[Any], manifest: Mapping[str, Any]) -> str | None:
    """Why the API server would not take this object, or what the kind's controller makes of it."""
    return _refused(client, kind.resource, manifest) or refused_of_made(client, kind, manifest)


def _refused(client: ClusterClient, resource: Resource, body: Mapping[str, Any]) -> str | None:
    try:
        client.create(resource, body, dry_run=True, strict=True)
    except Invalid as error:
        return by_name(error.message, body)
    except (AlreadyExists, Forbidden):
        pass
    return None


def _waits(command: CheckTemplate | CheckVariants) -> bool:
    """Whether an edit waits for the answer."""
    return isinstance(command, CheckTemplate) and command.target is not None


def with_variant(job: Job, vendor: str | None, message: str) -> str:
    """What is wrong with a child, with the variant that it was built with."""
    for index, variant in enumerate(job.spec.placement.variants):
        if variant.vendor == vendor:
            return f"spec.placement.variants[{index}].template for {vendor}: {message}"
    return message


def _anywhere(job: Job, pool: str | None) -> Revision | None:
    """The job's next Revision on this pool, as the spec asks for it; None where there is no pool."""
    if pool is None:
        return None
    workload = job.spec.workload
    placement = Placement(pool, workload.chips, workload.replicas)
    return Revision(next_revision(job), placement, job.workload_hash, workload.chips, workload.replicas)

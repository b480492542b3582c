"""Constructs the operator's parts from its settings, starts and stops them."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rightpool.cluster.client import ClusterClient, Hook
from rightpool.cluster.discovery import unserved
from rightpool.cluster.events import EventRecorder
from rightpool.cluster.lease import LeaseElector
from rightpool.cluster.reachability import Reachability
from rightpool.cluster.sidecars import Sidecars
from rightpool.runtime.act.admissions import Admissions
from rightpool.runtime.act.adopt_labels import AdoptLabels
from rightpool.runtime.act.chargeback_books import ChargebackBooks
from rightpool.runtime.act.children import Children, read_key
from rightpool.runtime.act.demand_records import DemandRecords
from rightpool.runtime.act.executor import Executor
from rightpool.runtime.act.fence import REQUEST_SECONDS, Fence
from rightpool.runtime.act.policy_publisher import PolicyPublisher
from rightpool.runtime.act.pool_publisher import PoolPublisher
from rightpool.runtime.act.status_publisher import StatusPublisher
from rightpool.runtime.health import Health
from rightpool.runtime.job_step import Decide
from rightpool.runtime.loop import Parts, Planner
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.observe.catalog_file import read_catalog
from rightpool.runtime.observe.members import Members
from rightpool.runtime.observe.relist import Relister
from rightpool.runtime.observe.server_feed import ServerFeed
from rightpool.runtime.observe.store import Store
from rightpool.runtime.observe.usage import ChipUsage
from rightpool.runtime.observe.watched import watched
from rightpool.runtime.observe.watches import Watches
from rightpool.runtime.observe.windows import RevisionWindows
from rightpool.settings import OperatorSettings
from rightpool.telemetry.reader import TelemetryReader
from rightpool.telemetry.server_pages import ServerReader
from rightpool.workloads.kinds.registry import optional_resources

logger = logging.getLogger(__name__)


class Operator:
    """The whole operator except for the handlers.

    The handlers feed `store` and `watches`, and serve `dead` and `unready`. Everything else runs in threads between
    `start` and `stop`.
    """

    def __init__(
        self,
        settings: OperatorSettings,
        *,
        decide: Decide,
        reader: TelemetryReader,
        servers: ServerReader,
        hook: Hook | None = None,
        on_lead: Callable[[bool], None] | None = None,
    ) -> None:
        self._settings = settings
        self.store = Store()
        self.watches = Watches(watched(), settings.watch_namespaces)
        self._health = Health(settings.interval, settings.api_timeout)
        reachability = Reachability(hook)
        self._client = ClusterClient.connect(
            settings.kubeconfig,
            qps=settings.api_qps,
            burst=settings.api_burst,
            timeout=settings.api_timeout,
            hook=reachability,
        )
        self._relister = Relister(
            self._client,
            self.store,
            interval=settings.relist_interval,
            missing=self.watches.missing,
            progress=self._health.progress,
            namespaces=settings.watch_namespaces,
        )
        self._elector = LeaseElector(
            # Its own client, so that renewing the Lease does not wait for the rate limit of ten thousand status writes.
            ClusterClient.connect(
                settings.kubeconfig, timeout=min(settings.api_timeout, settings.lease_duration / 3), hook=reachability
            ),
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=settings.identity,
            duration=settings.lease_duration,
            eligible=lambda: self._relister.ready,
            on_change=self._leadership_changed,
        )
        self.metrics = OperatorMetrics(lambda: self._elector.held)
        self._on_lead = on_lead
        self._sidecars = Sidecars()
        self._windows = RevisionWindows(reader)
        if settings.token_key_file is None:
            logger.warning("no token key file: after a restart, pods that run already take no request for a checkpoint")
        fence = Fence(self._client, self._elector)
        children = Children(
            settings.sidecar_image,
            read_key(settings.token_key_file),
            cpu_limit=settings.sidecar_cpu_limit,
            user=settings.sidecar_user,
            gives_users=self.store.gives_users,
        )
        namespaces = settings.watch_namespaces
        admissions = Admissions(self._client, fence, self.store, children, namespaces, on=settings.admits_profiler)
        executor = Executor(self._client, self.store, fence, children, admissions, self._sidecars, self.metrics)
        recorder = EventRecorder(
            self._client,
            leads=lambda: self._elector.held_for(REQUEST_SECONDS),
            term=lambda: fence.term,
            instance=settings.identity,
        )
        members = Members(self._client, self.store, self._health.progress)
        statuses = StatusPublisher(self._client, self.store, recorder.post)
        self.planner = Planner(
            Parts(
                client=self._client,
                store=self.store,
                relister=self._relister,
                elector=self._elector,
                fence=fence,
                executor=executor,
                windows=self._windows,
                members=members,
                adopt_labels=AdoptLabels(self._client, fence, self.store, recorder.post, namespaces),
                usage=ChipUsage(
                    self._client,
                    interval=settings.usage_interval,
                    namespaces=namespaces,
                    members=lambda: members.labels,
                ),
                pool_publisher=PoolPublisher(self._client, self.store, statuses),
                policy_publisher=PolicyPublisher(statuses),
                recorder=recorder,
                catalog=read_catalog(settings.catalog_file),
                decide=decide,
                metrics=self.metrics,
                books=ChargebackBooks(self._client, fence, self.metrics.chargeback, settings.lease_namespace),
                servers=ServerFeed(
                    servers, DemandRecords(self._client, fence, settings.lease_namespace), self.store.pods
                ),
                health=self._health,
            ),
            interval=settings.interval,
        )

    def start(self) -> None:
        """Start leader election and planning."""
        if self._settings.metrics_port:
            self.metrics.serve(self._settings.bind_address, self._settings.metrics_port)
        self._elector.start()
        self.planner.start()

    def stop(self) -> None:
        """Stop within seconds. The Lease is released last, when no thread can write any more."""
        self.planner.stop(timeout=8.0)
        self._elector.stop(timeout=3.0)
        self._windows.close()
        self._sidecars.close()
        self._client.close()

    def unserved(self) -> list[str]:
        """Required resources that the API server does not serve at the moment."""
        return unserved(self._client, tuple(watched().keys() - set(optional_resources())))

    def turn_off_absent(self) -> list[str]:
        """Turn off the kinds of children whose definitions are not installed. Called once, before anything is watched.
        Returns their names."""
        absent = {resource for resource in optional_resources() if unserved(self._client, (resource,))}
        self.store.turn_off(absent)
        self.watches.turn_off(absent)
        return sorted(resource.kind for resource in absent)

    def installed(self) -> str | None:
        """That a kind that was turned off is installed by now; None where none is. Raises ClusterError."""
        off = [resource for resource in optional_resources() if resource not in self.store.watched]
        kinds = [resource.kind for resource in off if not unserved(self._client, (resource,))]
        return f"{' and '.join(kinds)} is installed by now" if kinds else None

    def removed(self) -> str | None:
        """That a kind which is watched is not installed any more; None where all are. Raises ClusterError."""
        on = [resource for resource in optional_resources() if resource in self.store.watched]
        kinds = [resource.kind for resource in on if unserved(self._client, (resource,))]
        return f"{' and '.join(kinds)} is not installed any more" if kinds else None

    def dead(self) -> str | None:
        """Why the process has to be restarted; None if it has not. For the liveness probe."""
        return self._health.problem() or self.watches.abandoned()

    def unready(self) -> str | None:
        """Why this process could not lead; None if it could. A follower with complete watches is ready."""
        unwatched = self.watches.problem()
        if unwatched is not None:
            return unwatched
        if not self._relister.ready:
            return "the watches have not caught up with what is stored"
        return self.dead()

    def _leadership_changed(self, leader: bool) -> None:
        self.store.wake()
        if self._on_lead is not None:
            self._on_lead(leader)

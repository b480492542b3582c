"""The operator's parts, put together from its settings; started and stopped as one."""

from __future__ import annotations

import logging
from collections.abc import Callable

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.events import EventRecorder
from rightpool.cluster.lease import LeaseElector
from rightpool.cluster.sidecars import Sidecars
from rightpool.hardware.catalog import load_catalog
from rightpool.runtime.children import Children, read_key
from rightpool.runtime.cycle import Decide
from rightpool.runtime.executor import Executor
from rightpool.runtime.fence import Fence
from rightpool.runtime.health import Health
from rightpool.runtime.metrics import OperatorMetrics
from rightpool.runtime.observations import Observations
from rightpool.runtime.planner import Parts, Planner
from rightpool.runtime.pools import PoolPublisher
from rightpool.runtime.relist import Relister
from rightpool.runtime.store import Store
from rightpool.runtime.usage import ChipUsage
from rightpool.settings import OperatorSettings
from rightpool.telemetry.source import TelemetrySource

logger = logging.getLogger(__name__)


class Operator:
    """store and health are for the handlers; everything else runs by itself between `start` and `stop`."""

    def __init__(
        self,
        settings: OperatorSettings,
        *,
        decide: Decide,
        source: TelemetrySource,
        client: ClusterClient | None = None,
        on_lead: Callable[[bool], None] | None = None,
    ) -> None:
        self._settings = settings
        self.store = Store()
        self.health = Health(settings.interval)
        self._client = client or ClusterClient.connect(
            settings.kubeconfig, qps=settings.api_qps, burst=settings.api_burst, timeout=settings.api_timeout
        )
        self._elector = LeaseElector(
            # A client of its own: a Lease must not wait in a queue behind ten thousand status writes.
            ClusterClient.connect(settings.kubeconfig, timeout=min(settings.api_timeout, settings.lease_duration / 3)),
            namespace=settings.lease_namespace,
            name=settings.lease_name,
            identity=settings.identity,
            duration=settings.lease_duration,
            on_change=self._led,
        )
        self.metrics = OperatorMetrics(lambda: self._elector.held)
        self._on_lead = on_lead
        self._sidecars = Sidecars()
        self._observations = Observations(source)
        if settings.token_key_file is None:
            logger.warning("no token key file: after a restart, pods that run already take no request for a checkpoint")
        fence = Fence(self._client, self._elector.held_for)
        children = Children(settings.sidecar_image, read_key(settings.token_key_file))
        executor = Executor(self._client, self.store, fence, children, self._sidecars, self.metrics)
        relister = Relister(
            self._client, self.store, interval=settings.relist_interval, namespaces=settings.watch_namespaces
        )
        self.planner = Planner(
            Parts(
                client=self._client,
                store=self.store,
                relister=relister,
                elector=self._elector,
                fence=fence,
                executor=executor,
                observations=self._observations,
                usage=ChipUsage(self._client, interval=settings.usage_interval, namespaces=settings.watch_namespaces),
                publisher=PoolPublisher(self._client, self.store),
                recorder=EventRecorder(self._client, instance=settings.identity),
                catalog=load_catalog(),
                decide=decide,
                metrics=self.metrics,
                health=self.health,
            ),
            interval=settings.interval,
        )

    def start(self) -> None:
        """Begin to take part in the election, and to plan."""
        if self._settings.metrics_port:
            self.metrics.serve(self._settings.bind_address, self._settings.metrics_port)
        self._elector.start()
        self.planner.start()

    def stop(self) -> None:
        """End within seconds. The Lease is given back last, when nothing of ours can write any more."""
        self.planner.stop(timeout=8.0)
        self._elector.stop(timeout=3.0)
        self._observations.close()
        self._sidecars.close()
        self._client.close()

    def _led(self, leader: bool) -> None:
        self.store.wake()
        if self._on_lead is not None:
            self._on_lead(leader)

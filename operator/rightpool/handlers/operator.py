"""The operator as a kopf process: settings, login, start and end, probe. It decides nothing."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import kopf
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory

from rightpool.contract import GROUP, MANAGED_BY
from rightpool.handlers.feeds import register_feeds
from rightpool.runtime.assembly import Operator
from rightpool.settings import OperatorSettings

EXIT_SECONDS: Final = 20.0  # then kopf kills the process; everything of ours has shorter limits

logger = logging.getLogger(__name__)


class NoDifferences(kopf.DiffBaseStorage):  # type: ignore[misc, unused-ignore]
    """kopf copies every object of every event, to compare it with the last one. Nobody here asks what has changed."""

    def build(self, *, body: kopf.Body, extra_fields: Any = None) -> kopf.BodyEssence:
        """The empty essence: all objects are alike."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """Nothing is remembered."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """Nothing is written."""


class NoMemories(ResourceMemories):  # type: ignore[misc, unused-ignore]
    """kopf keeps a record of every object, for handlers that ours are not: a kilobyte for each of 30,000."""

    async def recall(self, raw_body: kopf.RawBody, **options: Any) -> ResourceMemory:
        """A new record, which is forgotten with the event that it is for."""
        return await super().recall(raw_body, **{**options, "ephemeral": True})


def build_registry(operator: Operator) -> tuple[kopf.OperatorRegistry, kopf.OperatorSettings]:
    """An explicit registry: no global state, and a process can hold several, as tests do."""
    registry = kopf.OperatorRegistry()
    settings = kopf.OperatorSettings()
    configure(settings)
    register_feeds(registry, settings, operator.store)

    @kopf.on.login(registry=registry, retries=3)  # type: ignore[untyped-decorator, unused-ignore]
    def login(**arguments: Any) -> Any:
        # Explicitly, since a registry of one's own comes without kopf's login handlers.
        return kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)

    @kopf.on.startup(registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    async def start(**_: Any) -> None:
        operator.start()

    @kopf.on.cleanup(registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    async def stop(**_: Any) -> None:
        await asyncio.get_running_loop().run_in_executor(None, operator.stop)

    @kopf.on.probe(registry=registry, id="planner", retries=1)  # type: ignore[untyped-decorator, unused-ignore]
    def probe(**_: Any) -> float | None:
        problem = operator.health.problem()
        if problem is not None:
            raise kopf.PermanentError(problem)
        return operator.health.age

    return registry, settings


def configure(settings: kopf.OperatorSettings) -> None:
    """What kopf leaves to its users and does not suit a fleet."""
    settings.posting.enabled = False  # Events are ours to write, deduplicated
    settings.watching.inactivity_timeout = 70  # a watch through a load balancer can die in silence
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.chunk_size = 500
    settings.networking.request_timeout = 15
    settings.networking.enforce_retry_after = True
    settings.queueing.worker_limit = None  # a limit would throttle the start to limit / idle_timeout objects a second
    settings.queueing.idle_timeout = 0.1  # until then kopf holds on to the last version of the object
    settings.scanning.disabled = True
    settings.peering.standalone = True  # a Lease decides who leads; followers keep watching
    settings.process.ultimate_exiting_timeout = EXIT_SECONDS
    settings.execution.executor = ThreadPoolExecutor(2, thread_name_prefix="handlers")
    # Never used, since no handler of ours needs them; named so that nothing of kopf's own name could ever be written.
    settings.persistence.finalizer = MANAGED_BY
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    settings.persistence.diffbase_storage = NoDifferences()


async def run_operator(
    operator: Operator,
    settings: OperatorSettings,
    *,
    stop_flag: asyncio.Event | None = None,
    ready_flag: asyncio.Event | None = None,
) -> None:
    """Until a signal comes, or the flag is set."""
    registry, kopf_settings = build_registry(operator)
    endpoint = f"http://{settings.bind_address}:{settings.liveness_port}/healthz" if settings.liveness_port else None
    await kopf.operator(
        registry=registry,
        settings=kopf_settings,
        memories=NoMemories(),
        # Without one kopf asks for the user's name, and in a container the uid has none.
        identity=settings.identity,
        standalone=True,
        clusterwide=not settings.watch_namespaces,
        namespaces=settings.watch_namespaces,
        liveness_endpoint=endpoint,
        stop_flag=stop_flag,
        ready_flag=ready_flag,
    )

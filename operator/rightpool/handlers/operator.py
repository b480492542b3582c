"""Runs the operator as a kopf process: kopf's settings, its start and its end.

kopf discovers the served resources only once, and never watches one that is not served then. So kopf is started when
all resources are served. If a watch is missing nevertheless, the process ends so that the kubelet restarts it.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

import kopf
from kopf._core.reactor.inventory import ResourceMemories, ResourceMemory

from rightpool.cluster.client import PAGE
from rightpool.cluster.errors import ClusterError
from rightpool.contract import GROUP, MANAGED_BY
from rightpool.handlers.feeds import register_feeds
from rightpool.handlers.login import login
from rightpool.handlers.probes import probes
from rightpool.runtime.wiring import Operator
from rightpool.settings import OperatorSettings

EXIT_SECONDS: Final = 20.0  # after that kopf kills the process; all our own timeouts are shorter
END_SECONDS: Final = 3.0  # for kopf to end by itself
DISCOVERY_SECONDS: Final = 2.0  # between two requests for the served resources
GUARD_SECONDS: Final = 1.0
INSTALLED_SECONDS: Final = 20.0  # between two looks for kinds of children that are installed, or removed
BACKOFF_SECONDS: Final = (0.5, 1.0, 2.0, 4.0, 8.0)

logger = logging.getLogger(__name__)


class NoDifferences(kopf.DiffBaseStorage):  # type: ignore[misc, unused-ignore]
    """Turns off kopf's copies of objects, from which it computes differences that no handler here uses."""

    def build(self, *, body: kopf.Body, extra_fields: Any = None) -> kopf.BodyEssence:
        """An empty essence for every object."""
        return kopf.BodyEssence()

    def fetch(self, *, body: kopf.Body) -> kopf.BodyEssence | None:
        """No essence is stored."""
        return None

    def store(self, *, body: kopf.Body, patch: kopf.Patch, essence: kopf.BodyEssence) -> None:
        """No essence is written."""


class NoMemories(ResourceMemories):  # type: ignore[misc, unused-ignore]
    """Turns off kopf's records of objects, which only other kinds of handlers use.

    This is the only use of a private interface of kopf. Without it the 30,000 objects of 10,000 jobs
    cost 27 MB (0.90 KB of resident memory each; 24 MB with the smallest memo that kopf accepts), 6% of the operator's
    memory then (docs/lab/benchmarks.md).
    """

    async def recall(self, raw_body: kopf.RawBody, **options: Any) -> ResourceMemory:
        """A new record that is not kept after its event."""
        return await super().recall(raw_body, **{**options, "ephemeral": True})


class Backoffs:
    """An endless sequence of pauses between the attempts of a request.

    kopf's default is finite: a watch that fails for a minute would end the process, and the kubelet would restart it
    with increasing delays.
    """

    def __iter__(self) -> Iterator[float]:
        yield from BACKOFF_SECONDS
        while True:
            yield BACKOFF_SECONDS[-1]


def build_registry(operator: Operator, stop: asyncio.Event) -> tuple[kopf.OperatorRegistry, kopf.OperatorSettings]:
    """An explicit registry instead of kopf's global one, so that a process can have several, as tests do.

    `stop` ends kopf when it is set, and is set when kopf ends by itself.
    """
    registry = kopf.OperatorRegistry()
    settings = kopf.OperatorSettings()
    configure(settings)
    register_feeds(registry, settings, operator.store)
    # An explicit registry has no default login handlers.
    kopf.on.login(registry=registry, retries=3)(login(operator.watches))

    @kopf.on.startup(registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    async def started(**_: Any) -> None:
        _stop_on_signals(stop)  # replaces kopf's own handlers, which are installed before this

    @kopf.on.cleanup(registry=registry)  # type: ignore[untyped-decorator, unused-ignore]
    async def ended(**_: Any) -> None:
        stop.set()

    return registry, settings


def configure(settings: kopf.OperatorSettings) -> None:
    """Set what differs from kopf's defaults."""
    settings.posting.enabled = False  # the operator writes its own Events, deduplicated
    settings.watching.inactivity_timeout = 70  # a watch through a load balancer can stop without an error
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.chunk_size = PAGE
    settings.networking.request_timeout = 15
    settings.networking.error_backoffs = Backoffs()
    settings.networking.enforce_retry_after = True
    settings.queueing.worker_limit = None  # a limit would restrict the start to limit / idle_timeout objects a second
    settings.queueing.idle_timeout = 0.1  # kopf keeps the last version of an object for this long
    settings.scanning.disabled = True
    settings.peering.standalone = True  # the Lease elects the leader; followers keep watching
    settings.process.ultimate_exiting_timeout = EXIT_SECONDS
    settings.execution.executor = ThreadPoolExecutor(2, thread_name_prefix="handlers")
    # No handler here uses these. They are set so that nothing is ever written under kopf's default names.
    settings.persistence.finalizer = MANAGED_BY
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP, v1=False)
    settings.persistence.diffbase_storage = NoDifferences()


async def run_operator(
    operator: Operator, settings: OperatorSettings, *, stop_flag: asyncio.Event | None = None
) -> str | None:
    """Run until a signal or the flag. Returns why the process has to be restarted, None after a regular end."""
    stop = stop_flag or asyncio.Event()
    _stop_on_signals(stop)
    async with probes(settings.bind_address, settings.liveness_port, dead=operator.dead, unready=operator.unready):
        operator.start()
        try:
            return await _watch(operator, settings, stop) if await _all_served(operator, stop) else None
        finally:
            await asyncio.get_running_loop().run_in_executor(None, operator.stop)


async def _all_served(operator: Operator, stop: asyncio.Event) -> bool:
    """Wait until the API server serves all watched resources, because kopf discovers them only once. Kinds of children
    whose definitions are not installed are turned off.

    False if the flag is set first.
    """
    loop = asyncio.get_running_loop()
    logged: str | None = None
    while not stop.is_set():
        try:
            missing = await loop.run_in_executor(None, operator.unserved)
            for kind in () if missing else await loop.run_in_executor(None, operator.turn_off_absent):
                logger.warning("%s is not installed: its jobs do not run", kind)
            problem = f"the API server does not serve {', '.join(missing)}" if missing else None
        except ClusterError as error:
            problem = f"the API server does not say what it serves: {error.message}"
        if problem is None:
            return True
        if problem != logged:
            logger.warning("%s; waiting for it", problem)
            logged = problem
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), DISCOVERY_SECONDS)
    return False


async def _watch(operator: Operator, settings: OperatorSettings, stop: asyncio.Event) -> str | None:
    """Run kopf until it ends. Returns why it failed or which watches are missing, None after a regular end."""
    registry, kopf_settings = build_registry(operator, stop)
    operator.watches.begin()
    guard = asyncio.create_task(_outdated(operator, stop))
    older = asyncio.all_tasks()
    watching = asyncio.create_task(
        kopf.operator(
            registry=registry,
            settings=kopf_settings,
            # By default kopf looks up the user's name, which does not exist in a container.
            identity=settings.identity,
            standalone=True,
            clusterwide=not settings.watch_namespaces,
            namespaces=settings.watch_namespaces,
            memories=NoMemories(),
            stop_flag=stop,
        )
    )
    older.add(watching)
    stopped = asyncio.create_task(stop.wait())
    await asyncio.wait({watching, stopped}, return_when=asyncio.FIRST_COMPLETED)
    while not (await asyncio.wait({watching}, timeout=END_SECONDS))[0]:
        # A watch that is being reopened can miss its cancellation, and kopf would wait for it without end.
        for task in asyncio.all_tasks() - older:
            task.cancel()
    stopped.cancel()
    problem = guard.result() if guard.done() else None
    guard.cancel()
    if (error := watching.exception()) is not None:
        problem = f"watching has failed: {type(error).__name__}: {error}"
    return problem


async def _outdated(operator: Operator, stop: asyncio.Event) -> str:
    """Wait until a watch is closed and not requested again, or a kind that was turned off is installed, or one that was
    not is removed; then stop kopf. Returns the problem."""
    loop = asyncio.get_running_loop()
    removed: str | None = None
    problem, looked_at = None, loop.time()
    while (problem := problem or operator.watches.abandoned()) is None:
        await asyncio.sleep(GUARD_SECONDS)
        if loop.time() - looked_at >= INSTALLED_SECONDS:
            looked_at = loop.time()
            with suppress(ClusterError):
                problem = await loop.run_in_executor(None, operator.installed)
                before, removed = removed, await loop.run_in_executor(None, operator.removed)
                # An API server that starts may not serve yet what it has.
                problem = problem or (removed if removed == before else None)
    logger.error("%s; the operator ends, to be started again", problem)
    stop.set()
    return problem


def _stop_on_signals(stop: asyncio.Event) -> None:
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)

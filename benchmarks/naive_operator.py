"""A naive operator as a baseline: a timer for every ProfiledJob, and a query in every tick.

It makes no decisions and writes a status only when the measured rate changed by 5%, so that the design is compared and
not the amount of work. kopf's settings are the defaults.

    KUBECONFIG=… NAIVE_PROMETHEUS=http://… python -m benchmarks.naive_operator
"""

import asyncio
import os
import time
from typing import Any, Final

import aiohttp
import kopf

INTERVAL: Final = 10.0
_URL: Final = os.environ.get("NAIVE_PROMETHEUS", "")
_TOLERANCE: Final = 0.05

ticks = 0


def registry() -> kopf.OperatorRegistry:
    """A registry with the timer."""
    handlers = kopf.OperatorRegistry()
    session: dict[str, aiohttp.ClientSession] = {}

    @kopf.on.login(registry=handlers)  # type: ignore[untyped-decorator, unused-ignore]
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.on.startup(registry=handlers)  # type: ignore[untyped-decorator, unused-ignore]
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        session["one"] = aiohttp.ClientSession()

    @kopf.on.cleanup(registry=handlers)  # type: ignore[untyped-decorator, unused-ignore]
    async def stop(**_: Any) -> None:
        await session["one"].close()

    @kopf.timer(  # type: ignore[untyped-decorator, unused-ignore]
        "rightpool.dev", "v1alpha1", "profiledjobs", interval=INTERVAL, registry=handlers
    )
    async def tick(name: str, namespace: str, status: Any, patch: kopf.Patch, **_: Any) -> None:
        global ticks
        query = f'sum(rate(rightpool_samples_total{{namespace="{namespace}",profiledjob="{name}"}}[40s]))'
        async with session["one"].get(f"{_URL}/api/v1/query", params={"query": query}) as response:
            result = (await response.json())["data"]["result"]
        ticks += 1
        rate = float(result[0]["value"][1])
        written = float((status.get("profile") or {}).get("samplesPerSecond") or 0.0)
        if abs(rate - written) > _TOLERANCE * max(rate, written):
            patch.status["profile"] = {"samplesPerSecond": f"{rate:.0f}"}

    return handlers


async def _report() -> None:
    """Print the number of ticks so far, every second."""
    while True:
        await asyncio.sleep(1.0)
        print(f"{time.time():.1f} {ticks}", flush=True)


async def _run() -> None:
    reporting = asyncio.create_task(_report())
    await kopf.operator(registry=registry(), standalone=True, clusterwide=True)
    reporting.cancel()


if __name__ == "__main__":
    asyncio.run(_run())

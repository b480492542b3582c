"""An operator as one would write it first, to compare with: a timer for every ProfiledJob, a query in every tick.

It decides nothing, and writes only when the measured rate has moved by 5%: the comparison is with the design, not with
the thoroughness. Settings are kopf's own.

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
_MATERIAL: Final = 0.05

ticks = 0


def registry() -> kopf.OperatorRegistry:
    """One timer."""
    made = kopf.OperatorRegistry()
    session: dict[str, aiohttp.ClientSession] = {}

    @kopf.on.login(registry=made)  # type: ignore[untyped-decorator, unused-ignore]
    def login(**arguments: Any) -> Any:
        return kopf.login_with_kubeconfig(**arguments)

    @kopf.on.startup(registry=made)  # type: ignore[untyped-decorator, unused-ignore]
    async def start(settings: kopf.OperatorSettings, **_: Any) -> None:
        settings.posting.enabled = False
        settings.scanning.disabled = True
        session["one"] = aiohttp.ClientSession()

    @kopf.on.cleanup(registry=made)  # type: ignore[untyped-decorator, unused-ignore]
    async def stop(**_: Any) -> None:
        await session["one"].close()

    @kopf.timer(  # type: ignore[untyped-decorator, unused-ignore]
        "rightpool.dev", "v1alpha1", "profiledjobs", interval=INTERVAL, registry=made
    )
    async def look(name: str, namespace: str, status: Any, patch: kopf.Patch, **_: Any) -> None:
        global ticks
        query = f'sum(rate(rightpool_samples_total{{namespace="{namespace}",profiledjob="{name}"}}[40s]))'
        async with session["one"].get(f"{_URL}/api/v1/query", params={"query": query}) as response:
            result = (await response.json())["data"]["result"]
        ticks += 1
        rate = float(result[0]["value"][1])
        known = float((status.get("profile") or {}).get("samplesPerSecond") or 0.0)
        if abs(rate - known) > _MATERIAL * max(rate, known):
            patch.status["profile"] = {"samplesPerSecond": f"{rate:.0f}"}

    return made


async def _tell() -> None:
    """How many ticks there were, every second: it is to have one for each job in ten."""
    while True:
        await asyncio.sleep(1.0)
        print(f"{time.time():.1f} {ticks}", flush=True)


async def _run() -> None:
    telling = asyncio.create_task(_tell())
    await kopf.operator(registry=registry(), standalone=True, clusterwide=True)
    telling.cancel()


if __name__ == "__main__":
    asyncio.run(_run())

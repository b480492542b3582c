"""The kubelet's liveness and readiness probes.

They are served by the event loop of the watches, so that they fail if it hangs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import web

ALIVE_PATH: Final = "/healthz"
READY_PATH: Final = "/readyz"

Problem = Callable[[], str | None]


@asynccontextmanager
async def probes(address: str, port: int, *, dead: Problem, unready: Problem) -> AsyncIterator[None]:
    """Serve both probes; none if `port` is 0.

    `dead` returns why the process has to be restarted, `unready` why it can't work now; None means that it is not so.
    """
    if not port:
        yield
        return
    app = web.Application()
    app.add_routes([web.get(ALIVE_PATH, _handler(dead)), web.get(READY_PATH, _handler(unready))])
    runner = web.AppRunner(app, handle_signals=False, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        await web.TCPSite(runner, address, port).start()
        yield
    finally:
        await runner.cleanup()


def _handler(problem: Problem) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def respond(_: web.Request) -> web.Response:
        reason = problem()
        response = web.Response(text=f"{reason or 'ok'}\n", status=503 if reason else 200)
        response.force_close()  # an open connection is a task, and kopf waits for all tasks when it ends
        return response

    return respond

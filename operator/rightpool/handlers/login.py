"""kopf's HTTP session, created here so that its requests show which watches are open.

kopf has no public interface for the state of its watches: a handler is not called for a resource without objects, nor
for one that kopf did not discover. But kopf accepts a session, and aiohttp traces the requests of a session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, Final

import aiohttp
import kopf

from rightpool.runtime.observe.watches import Watches

SAME_CREDENTIALS_SECONDS: Final = 5.0  # pause before rejected credentials are tried again
MAX_PAUSE: Final = 300.0


def login(watches: Watches) -> Callable[..., Awaitable[Any]]:
    """A login handler. kopf calls it at the start and when the credentials were rejected."""
    last: list[kopf.ConnectionInfo] = []

    async def connect(**arguments: Any) -> kopf.AiohttpSession | None:
        info = kopf.login_with_service_account(**arguments) or kopf.login_with_kubeconfig(**arguments)
        if info is None:
            return None
        if last == [info]:
            await asyncio.sleep(SAME_CREDENTIALS_SECONDS)
        last[:] = [info]
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=info.as_ssl_context()),
            headers=info.as_http_headers(),
            proxy=info.proxy_url,
            trust_env=info.trust_env,
            trace_configs=[traced(watches, info.server)],
        )
        return kopf.AiohttpSession(
            aiohttp_session=session, server=info.server, default_namespace=info.default_namespace
        )

    return connect


def traced(watches: Watches, server: str) -> aiohttp.TraceConfig:
    """A trace that reports every request of a session to `watches`. `server` is its URL, which may have a path."""
    trace = aiohttp.TraceConfig()
    base = server.split("://", 1)[-1].partition("/")[2].rstrip("/")
    prefix = f"/{base}" if base else ""

    async def started(_: Any, context: SimpleNamespace, request: aiohttp.TraceRequestStartParams) -> None:
        watches.asked(request.url.path.removeprefix(prefix))

    async def ended(_: Any, context: SimpleNamespace, request: aiohttp.TraceRequestEndParams) -> None:
        response = request.response
        accepted = response.status == 200 and "watch" in request.url.query
        watches.answered(
            request.url.path.removeprefix(prefix),
            response if accepted else None,
            pause=_pause(response.headers.get("Retry-After")),
            status=response.status if response.status >= 400 else None,
        )

    async def failed(_: Any, context: SimpleNamespace, request: aiohttp.TraceRequestExceptionParams) -> None:
        watches.answered(request.url.path.removeprefix(prefix), None)

    trace.on_request_start.append(started)
    trace.on_request_end.append(ended)
    trace.on_request_exception.append(failed)
    return trace


def _pause(header: str | None) -> float:
    try:
        return min(MAX_PAUSE, max(0.0, float(header or 0)))
    except ValueError:
        return 0.0

"""The server of the page: reads on request, on loopback, with the user's rights, and writes nothing."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rightpool.cli.connection import Connection
from rightpool.cli.explanation import COULD_BE, DOES
from rightpool.cli.ui.cached import Cached, Latest, ReadProblem
from rightpool.cli.ui.fleet import FleetPicture, fleet_page, read_fleet
from rightpool.cli.ui.job import JobPicture, job_page, read_job_picture
from rightpool.planning.jobs.job import JobKey

# A browser asks this often, and what is older than this is read anew.
UPDATE_SECONDS: Final = 5.0
# Jobs whose pages are kept; a page that nobody looks at is read no more.
JOBS_KEPT: Final = 32
# Other names are those of another site that had itself resolved to this machine (DNS rebinding).
HOSTS: Final = ("127.0.0.1", "localhost")
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
# Asks for the content alone, without the page around it.
FRAGMENT: Final = "x-rightpool-fragment"

_FOLDER: Final = Path(__file__).parent
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(_FOLDER / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals.update(DOES=DOES, COULD_BE=COULD_BE)  # sections with a drawing


@dataclass(frozen=True, slots=True)
class PictureSource:
    """Where pictures come from."""

    connection: Connection
    """The cluster, and the namespace of the command."""
    everywhere: bool
    """All namespaces, where the user may list them."""
    operator_namespace: str
    """Where the operator is installed."""
    clock: Callable[[], float] = time.time
    """Unix seconds."""

    def fleet(self) -> FleetPicture:
        """As it is now."""
        return read_fleet(
            self.connection.client,
            self.connection.namespace,
            everywhere=self.everywhere,
            operator_namespace=self.operator_namespace,
            now=self.clock(),
        )

    def job(self, key: JobKey) -> JobPicture:
        """As it is now."""
        client, where = self.connection.client, self.operator_namespace
        return read_job_picture(client, key, operator_namespace=where, now=self.clock())


@dataclass(slots=True)
class Pages:
    """Answers requests."""

    source: PictureSource
    """Where pictures come from."""
    fleet: Cached[FleetPicture] = field(init=False)
    """The newest picture of all jobs, read anew when it is old."""
    _jobs: OrderedDict[JobKey, Cached[JobPicture]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self.fleet = Cached(self.source.fleet, UPDATE_SECONDS)

    def show_fleet(self, request: Request) -> Response:
        """`/`: fleet, pools and jobs. Query: q, a filter; sort, a word of fleet.SORTS; all, to show every job."""
        latest = self.fleet.latest()
        query = {name: request.query_params.get(name, "")[:200] for name in ("q", "sort", "all")}
        page = None
        if latest.value is not None:
            page = fleet_page(latest.value, query["q"], query["sort"], everything=bool(query["all"]))
        return self._answer(request, "fleet.html", latest, "Fleet", page=page, query=query)

    def show_job(self, request: Request) -> Response:
        """`/jobs/NAMESPACE/NAME`."""
        key = JobKey(request.path_params["namespace"], request.path_params["name"])
        latest = self._job(key).latest()
        page = None if latest.value is None else job_page(latest.value, self.source.connection.context)
        return self._answer(request, "job.html", latest, str(key), page=page)

    def _job(self, key: JobKey) -> Cached[JobPicture]:
        with self._lock:
            kept = self._jobs.setdefault(key, Cached(lambda: self.source.job(key), UPDATE_SECONDS))
            self._jobs.move_to_end(key)
            while len(self._jobs) > JOBS_KEPT:
                self._jobs.popitem(last=False)
            return kept

    def missing(self, request: Request, error: Exception) -> Response:
        """Any other address."""
        nothing: Latest[FleetPicture] = Latest(None, ReadProblem("there is no such page", 404))
        return self._answer(request, "problem.html", nothing, "Not found")

    def _answer(
        self, request: Request, template: str, latest: Latest[Any], title: str, **content: object
    ) -> HTMLResponse:
        connection, problem = self.source.connection, latest.problem
        text = _TEMPLATES.get_template(template).render(
            layout="fragment.html" if FRAGMENT in request.headers else "page.html",
            title=title,
            context=connection.context,
            as_of=None if latest.value is None else _clock_time(latest.value.at),
            problem=None if problem is None else problem.message,
            seconds=UPDATE_SECONDS,
            **content,
        )
        return HTMLResponse(text, 200 if latest.value is not None or problem is None else problem.status)


def _clock_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S UTC")


class _WithHeaders:
    """Adds HEADERS to every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


def application(pages: Pages) -> Starlette:
    """The server's application."""
    return Starlette(
        routes=[
            Route("/", pages.show_fleet),
            Route("/jobs/{namespace}/{name}", pages.show_job),
            Mount("/static", StaticFiles(directory=_FOLDER / "static")),
        ],
        middleware=[
            Middleware(_WithHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        ],
        exception_handlers={404: pages.missing},
    )

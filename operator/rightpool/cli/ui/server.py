"""The server of the page: reads on request, on loopback, with the user's rights, and writes nothing."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeVar

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

from rightpool.api.choices import Objective
from rightpool.cli.compare.command import WEIGHTS
from rightpool.cli.connection import Connection
from rightpool.cli.explanation import COULD_BE, DOES
from rightpool.cli.ui.cached import Cached, Latest, ReadProblem
from rightpool.cli.ui.comparison import ComparisonPicture, comparison_page, read_comparison
from rightpool.cli.ui.fleet import FleetPicture, fleet_page, read_fleet
from rightpool.cli.ui.job import JobPicture, job_address, job_page, read_job_picture
from rightpool.cli.ui.simulation import SimulationPicture, read_simulation, simulation_page
from rightpool.planning.jobs.job import JobKey

# A browser asks this often, and what is older than this is read anew.
UPDATE_SECONDS: Final = 5.0
# What was simulated is not made anew before this: it takes long, and the past changes little.
SIMULATED_SECONDS: Final = 900.0
# Pages of jobs that are kept; one that nobody looks at is read no more.
PICTURES_KEPT: Final = 32
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

T = TypeVar("T")
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

    def comparison(self, key: JobKey, against: str, weights: str) -> ComparisonPicture:
        """Of accelerators for a job, as it is now."""
        client, where = self.connection.client, self.operator_namespace
        return read_comparison(client, key, against, weights, operator_namespace=where, now=self.clock())

    def simulation(self, asked: tuple[str, str, str]) -> SimulationPicture:
        """Of the jobs of the past, with what is asked for changed."""
        client, where = self.connection.client, self.operator_namespace
        namespace = None if self.everywhere else self.connection.namespace
        return read_simulation(client, namespace, asked, operator_namespace=where, now=self.clock())

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
    _pictures: OrderedDict[tuple[object, ...], Cached[Any]] = field(default_factory=OrderedDict)
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
        latest: Latest[JobPicture] = self._kept((key,), lambda: self.source.job(key)).latest()
        page = None if latest.value is None else job_page(latest.value, self.source.connection.context)
        return self._answer(request, "job.html", latest, str(key), page=page)

    def show_comparison(self, request: Request) -> Response:
        """`/jobs/NAMESPACE/NAME/compare`. Query: against, weights, as options of `rightpool compare`."""
        key = JobKey(request.path_params["namespace"], request.path_params["name"])
        against = request.query_params.get("against", "")[:200]
        weights = request.query_params.get("weights", "")[:200] or WEIGHTS
        latest: Latest[ComparisonPicture] = self._kept(
            (key, against, weights), lambda: self.source.comparison(key, against, weights)
        ).latest()
        page = None if latest.value is None else comparison_page(latest.value)
        query = {"against": against, "weights": weights}
        title = f"{key}: accelerators"
        return self._answer(request, "compare.html", latest, title, page=page, query=query, job=job_address(key))

    def show_simulation(self, request: Request) -> Response:
        """`/simulate`. Query: pools, prices, as options of `rightpool simulate` with commas between, and objective."""
        query = {name: request.query_params.get(name, "")[:200] for name in ("pools", "prices", "objective")}
        asked = query["pools"], query["prices"], query["objective"]
        latest: Latest[SimulationPicture] = self._kept(
            ("simulate", *asked), lambda: self.source.simulation(asked), SIMULATED_SECONDS
        ).latest()
        page = None if latest.value is None else simulation_page(latest.value)
        objectives = [one.value for one in Objective]
        return self._answer(
            request, "simulate.html", latest, "What would have been", page=page, query=query, objectives=objectives
        )

    def _kept(self, what: tuple[object, ...], read: Callable[[], T], seconds: float = UPDATE_SECONDS) -> Cached[T]:
        """what: names it, and the kind of what is read. seconds: how old it may be."""
        with self._lock:
            kept = self._pictures.setdefault(what, Cached(read, seconds))
            self._pictures.move_to_end(what)
            while len(self._pictures) > PICTURES_KEPT:
                self._pictures.popitem(last=False)
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
            Route("/simulate", pages.show_simulation),
            Route("/jobs/{namespace}/{name}", pages.show_job),
            Route("/jobs/{namespace}/{name}/compare", pages.show_comparison),
            Mount("/static", StaticFiles(directory=_FOLDER / "static")),
        ],
        middleware=[
            Middleware(_WithHeaders),
            Middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS), www_redirect=False),
        ],
        exception_handlers={404: pages.missing},
    )

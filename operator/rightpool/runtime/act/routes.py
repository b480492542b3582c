"""HTTPRoutes: the weights by which a move shares requests. All else of a route is its user's."""

from __future__ import annotations

import logging
from typing import Final

from rightpool.api.wording import brief
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import Forbidden, Invalid, NotFound
from rightpool.cluster.resources import HTTP_ROUTES
from rightpool.planning.jobs.job import Job
from rightpool.planning.moves.commands import DirectTraffic
from rightpool.runtime.act.fence import Fence
from rightpool.workloads.route import UnusableRoute, weighed

_OF_OBJECT: Final = "NotFound"  # said of an object; a path that the API server does not know has no reason

logger = logging.getLogger(__name__)


class Routes:
    """Thread-safe where those of one job are used in one thread at a time."""

    def __init__(self, client: ClusterClient, fence: Fence) -> None:
        self._client = client
        self._fence = fence
        self._problems: dict[str, str] = {}  # by uid of the job

    def problem(self, job: Job) -> str | None:
        """Why weights can't be written, with the remedy; None where they can, as far as is known."""
        return self._problems.get(job.uid)

    def forget(self, uid: str) -> None:
        """Forget a job that is gone."""
        self._problems.pop(uid, None)

    def direct(self, job: Job, command: DirectTraffic, service: str) -> bool:
        """Have the Service beside get its share, in one write; whether anything was left to do. service: name of the
        one that stays. A route that can't be used is a problem of its user, and no error."""
        try:
            done = self._written(job, command, service)
        except UnusableRoute as error:
            self._problems[job.uid] = str(error)
            return False
        self._problems.pop(job.uid, None)
        return done

    def _written(self, job: Job, command: DirectTraffic, service: str) -> bool:
        server = job.spec.workload.server
        about = None if server is None else server.traffic.http_route
        if about is None:
            return False
        namespace = job.key.namespace
        try:
            route = self._client.get(HTTP_ROUTES, about.name, namespace)
            changes = weighed(route, service, command.percent)
            if changes:
                self._fence.persisted(job, command)
                self._client.patch(HTTP_ROUTES, about.name, namespace, changes)
        except NotFound as error:
            if error.reason == _OF_OBJECT:
                raise UnusableRoute(f"HTTPRoute {about.name} is not there: create it") from error
            raise UnusableRoute("HTTPRoutes of gateway.networking.k8s.io/v1 are not installed") from error
        except Forbidden as error:
            raise UnusableRoute("the operator may not write HTTPRoutes: set the chart's httpRoutes.enabled") from error
        except Invalid as error:
            raise UnusableRoute(brief(f"HTTPRoute {about.name}: {error.message}", 160)) from error
        if changes:
            logger.info("r%d gets %d%%", command.beside, command.percent, extra={"job": str(job.key)})
        return bool(changes)

"""The table of the servers whose pages are read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rightpool.profiles.served import RequestCounter, RequestTime
from rightpool.telemetry.sources.servers.dialect import ServerDialect
from rightpool.telemetry.sources.servers.dialects import DIALECTS

HEAD: Final = """
## Servers
What is read of the pages that servers have themselves, by `spec.workload.server.metrics.dialect`. `Auto` takes the
first whose series are there. A percentile is known exactly where it is an edge of the server's histogram, else by the
worse of the two edges around it. Of a server that tells sums alone there are means, and no share of late requests.
Probes are left out where the server counts them. Where completed requests are counted, those that an overload holds
up are missing.

| dialect | server | requests | errors | latency | first token, between tokens | queue | batch | tokens |
|---|---|---|---|---|---|---|---|---|"""


def rows() -> Iterable[str]:
    """A row for each dialect."""
    for one in DIALECTS:
        tokens = [time for time in (RequestTime.FIRST_TOKEN, RequestTime.BETWEEN_TOKENS) if time in one.times]
        cells = [
            f"`{one.name}`",
            one.server,
            ("started: " if one.started else "completed: ") + _metric(one, RequestCounter.REQUESTS),
            _metric(one, RequestCounter.ERRORS),
            _latency(one),
            ", ".join(f"`{one.times[time].metrics[0]}`" for time in tokens),
            _yes(RequestCounter.QUEUE_SECONDS in one.counters),
            _yes(RequestCounter.BATCHED in one.counters),
            _yes(RequestCounter.TOKENS_OUT in one.counters),
        ]
        yield f"| {' | '.join(cells)} |"


def _metric(one: ServerDialect, counter: RequestCounter) -> str:
    terms = one.counters.get(counter)
    return "" if terms is None else f"`{terms[0].metrics[0]}`"


def _latency(one: ServerDialect) -> str:
    if not one.means_only:
        return f"`{one.times[RequestTime.WHOLE].metrics[0]}`"
    seconds = one.counters.get(RequestCounter.SECONDS)
    return "none: without the wait" if seconds is None else f"means: `{seconds[0].metrics[0]}`"


def _yes(known: bool) -> str:
    return "yes" if known else ""

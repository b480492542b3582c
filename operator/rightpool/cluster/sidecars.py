"""Requests to the profiler sidecars: asks the pods of a Revision for a checkpoint, or for a trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from rightpool.contract import PATH_CHECKPOINT, PATH_TRACE, SIDECAR_PORT, TRACE_ALL
from rightpool.pod_client import Outcomes, PodClient, PodRequest

TIMEOUT: Final = 3.0
MAX_RESPONSE_BYTES: Final = 128 * 2**10  # the sidecar's are below 300, with the summaries of 16 ranks below 100,000

V = TypeVar("V")


class Sidecars:
    """Sends requests to many pods in parallel; a pod that does not respond delays no other."""

    def __init__(self, *, port: int = SIDECAR_PORT, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._client = PodClient("sidecars", port=port, seconds=timeout, largest_body=MAX_RESPONSE_BYTES)

    def close(self) -> None:
        """Close the client. Pending requests end by their timeout."""
        self._client.close()

    def request_checkpoint(self, addresses: Iterable[tuple[str, str]], token: str, request_id: str) -> dict[str, str]:
        """Ask every pod, given as (name, IP), for a checkpoint with this id; errors by pod name."""
        outcomes = self._post(addresses, PATH_CHECKPOINT, token, {"id": request_id}, str)
        return outcomes.failures | dict.fromkeys(outcomes.unfinished, "no answer")

    def request_trace(
        self,
        addresses: Iterable[tuple[str, str]],
        token: str,
        request_id: str,
        rank: int | None,
        read: Callable[[str], V],
    ) -> Outcomes[str, V]:
        """Ask every pod, given as (name, IP), for the trace with this id, by pod name.

        rank: of the process that is traced; None for all. read: makes a value of an answer; may raise RequestFailed.
        """
        return self._post(
            addresses, PATH_TRACE, token, {"id": request_id, "rank": TRACE_ALL if rank is None else rank}, read
        )

    def _post(
        self,
        addresses: Iterable[tuple[str, str]],
        path: str,
        token: str,
        message: dict[str, str | int],
        read: Callable[[str], V],
    ) -> Outcomes[str, V]:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        body = json.dumps(message).encode()
        requests = {
            name: PodRequest(ip, path, "POST", headers, body, accepted=range(200, 300)) for name, ip in addresses
        }
        return self._client.ask(requests, read, 2 * self._timeout + 1)

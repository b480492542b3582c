"""Requests to the profilers in the pods: asking a Revision for a checkpoint."""

from __future__ import annotations

import http.client
import json
import logging
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from concurrent.futures import TimeoutError as FuturesTimeout
from typing import Final

from rightpool.contract import PATH_CHECKPOINT, SIDECAR_PORT

TIMEOUT: Final = 3.0
THREADS: Final = 16
MAX_ANSWER: Final = 2048

logger = logging.getLogger(__name__)


class Sidecars:
    """Bounded in time and in connections: a pod that does not answer costs its own request and nothing else."""

    def __init__(self, *, port: int = SIDECAR_PORT, timeout: float = TIMEOUT) -> None:
        self._port = port
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="sidecars")

    def close(self) -> None:
        """Requests under way end by their timeout."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def request_checkpoint(self, addresses: Iterable[tuple[str, str]], token: str, request_id: str) -> dict[str, str]:
        """Ask every pod, given as (name, IP), under one id; what went wrong, by pod name."""
        waiting = {self._threads.submit(self._ask, ip, token, request_id): name for name, ip in addresses}
        problems: dict[str, str] = {}
        try:
            for future in as_completed(waiting, timeout=2 * self._timeout + 1):
                problem = future.result()
                if problem is not None:
                    problems[waiting[future]] = problem
        except FuturesTimeout:
            problems.update({name: "no answer" for future, name in waiting.items() if not future.done()})
        return problems

    def _ask(self, ip: str, token: str, request_id: str) -> str | None:
        connection = http.client.HTTPConnection(ip, self._port, timeout=self._timeout)
        try:
            headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
            connection.request("POST", PATH_CHECKPOINT, json.dumps({"id": request_id}), headers)
            answer = connection.getresponse()
            text = answer.read(MAX_ANSWER).decode("utf-8", "replace").strip()
        except (OSError, http.client.HTTPException) as error:
            return f"{type(error).__name__}: {error}"
        finally:
            connection.close()
        return None if 200 <= answer.status < 300 else f"HTTP {answer.status}: {text[:200]}"

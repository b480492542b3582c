"""Errors of the API server, by what a caller can do about them.

    ClusterError
    ├── NotFound       404: the object, or its resource, is not there
    ├── Conflict       409: a newer version exists, or a precondition does not hold
    │   └── AlreadyExists
    ├── Invalid        400, 413, 422, and 500 if the object is too large for etcd: the object itself is
    │                  rejected; the message is for its author
    ├── Forbidden      401, 403: missing permissions, or an admission policy
    ├── Expired        410: a page token or resource version is too old; start again
    └── Unavailable    429, 5xx: try again later
        └── Unreachable   no connection, no answer in time

Callers handle the classes they expect. After `Unavailable` the request may or may not have been carried out.
"""

from __future__ import annotations

import json
from typing import Any


class ClusterError(Exception):
    """A request failed. `message` is the API server's text without HTTP details."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason


class NotFound(ClusterError):
    """404."""


class Conflict(ClusterError):
    """409."""


class AlreadyExists(Conflict):
    """409 on creation."""


class Invalid(ClusterError):
    """400, 413 or 422, or too large for etcd."""


class Forbidden(ClusterError):
    """401 or 403."""


class Expired(ClusterError):
    """410."""


class Unavailable(ClusterError):
    """The request should be repeated later, after `retry_after` seconds if given."""

    def __init__(self, message: str, *, status: int = 0, reason: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, status=status, reason=reason)
        self.retry_after = retry_after


class Unreachable(Unavailable):
    """No response."""


_BY_STATUS: dict[int, type[ClusterError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    413: Invalid,
    422: Invalid,
}


# Reported as server errors, but a retry has the same result.
_TOO_LARGE = "etcdserver: request is too large"
UNDECLARED = "field not declared in schema"
"""What is said of each field that server-side apply brings and the resource's definition lacks."""


def error_from(status: int, body: bytes, retry_after: str | None = None) -> ClusterError:
    """The error for an HTTP response with status 400 or more."""
    details = _parse(body)
    message = str(details.get("message") or _text(body) or f"HTTP {status}")
    if message.startswith("<"):
        message = f"HTTP {status} with a web page: no Kubernetes API server is at this address, or a proxy answers"
    reason = str(details.get("reason") or "")
    if reason == "AlreadyExists":
        return AlreadyExists(message, status=status, reason=reason)
    kind = Invalid if _TOO_LARGE in message or UNDECLARED in message else _BY_STATUS.get(status)
    if kind is not None:
        return kind(message, status=status, reason=reason)
    if status == 429 or status >= 500:
        return Unavailable(message, status=status, reason=reason, retry_after=_seconds(retry_after))
    return ClusterError(message, status=status, reason=reason)


def _text(body: bytes) -> str:
    return body[:500].decode("utf-8", "replace").strip()


def _parse(body: bytes) -> dict[str, Any]:
    try:
        parsed = json.loads(body)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else max(0.0, float(header))
    except ValueError:
        return None

"""What a command in a container writes, byte by byte: the exec subresource over a WebSocket.

The official client's own way collects all output in memory. Here only its connection is used, and each frame is passed
on as it comes, so that memory does not depend on what the container sends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final
from urllib.parse import urlencode

import websocket
from kubernetes.stream.ws_client import create_websocket, get_websocket_url

from rightpool.cluster.errors import ClusterError, Unavailable, error_from
from rightpool.cluster.resources import PODS

_STDOUT: Final = 1
_ERROR: Final = 3
_DATA: Final = (websocket.ABNF.OPCODE_BINARY, websocket.ABNF.OPCODE_TEXT)


def container_output(
    api: Any, namespace: str, pod: str, container: str, command: Sequence[str], *, silence: float
) -> Iterator[bytes]:
    """Standard output of the command, in pieces. silence: seconds without any, after which it is given up.

    Raises Forbidden without the right to pods/exec, NotFound without the pod, Unavailable where the connection breaks,
    and ClusterError where the command can't be started. Its exit status is not looked at.
    """
    connection: Any = None
    try:
        connection = _connect(api, namespace, pod, container, command)
        connection.settimeout(silence)
        yield from _frames(connection)
    except websocket.WebSocketBadStatusException as error:
        raise error_from(error.status_code, bytes(error.resp_body or b""), None) from error
    except (websocket.WebSocketException, OSError) as error:
        raise Unavailable(f"the connection to the container broke: {error}") from error
    finally:
        if connection is not None:
            connection.shutdown()


def _connect(api: Any, namespace: str, pod: str, container: str, command: Sequence[str]) -> Any:
    path = PODS.path(namespace, pod, "exec")
    query = [("container", container), ("stdout", "true"), *(("command", word) for word in command)]
    headers: dict[str, str] = {}
    api.update_params_for_auth(headers, [], ["BearerToken"], path, "GET", None)
    url = get_websocket_url(f"{api.configuration.host}{path}?{urlencode(query)}")
    return create_websocket(api.configuration, url, {name.lower(): value for name, value in headers.items()})


def _frames(connection: Any) -> Iterator[bytes]:
    while True:
        kind, frame = connection.recv_data_frame(True)
        if kind == websocket.ABNF.OPCODE_CLOSE:
            return
        if kind not in _DATA or not frame.data:
            continue
        channel, data = frame.data[0], bytes(frame.data[1:])
        if channel == _STDOUT and data:
            yield data
        elif channel == _ERROR:
            _raise_unstarted(data)


def _raise_unstarted(data: bytes) -> None:
    """Raises where the command was not started. A command that has ended with an exit status was."""
    try:
        status = json.loads(data)
    except ValueError:
        return
    if isinstance(status, dict) and status.get("status") == "Failure" and status.get("reason") != "NonZeroExitCode":
        raise ClusterError(str(status.get("message"))[:500])

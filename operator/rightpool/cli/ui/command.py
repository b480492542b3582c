"""`rightpool ui`: the fleet, its jobs, and everything about one job, as a page in the browser.

The page is served on this machine alone, until ctrl-C ends it. It shows what the user of the kubeconfig may read, and
changes nothing. It needs the packages of the extra `ui`.
"""

from __future__ import annotations

import argparse
import importlib.util
import socket
import threading
from typing import Final

from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.number_range import whole_number

PORT: Final = 8270
HOST: Final = "127.0.0.1"
_NEEDED: Final = ("jinja2", "starlette", "uvicorn")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--port",
        type=whole_number(0, 65_535),
        default=PORT,
        help=f"a port of this machine; 0 takes any free one; default: {PORT}",
    )
    add_connection_arguments(parser, outputs=("table",))


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 or 130 ended, 1 not possible."""
    return carry_out(arguments, "ui", lambda connection: _serve(connection, arguments))


def _serve(connection: Connection, arguments: argparse.Namespace) -> None:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise CliError(
            f"{' and '.join(missing)} {verb} not installed, which the page needs: pip install 'rightpool[ui]', or "
            "'.[operator,ui]' in a checkout"
        )
    import uvicorn

    from rightpool.cli.ui.server import Pages, PictureSource, application

    with _listening(arguments.port) as listener:
        pages = Pages(PictureSource(connection, arguments.namespace is None, arguments.operator_namespace))
        config = uvicorn.Config(
            application(pages),
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=1,
        )
        threading.Thread(target=pages.fleet.latest, daemon=True).start()  # so that the first page waits less
        cluster = f" of context {connection.context}" if connection.context else ""
        print(
            f"The page{cluster} is at http://{HOST}:{listener.getsockname()[1]}/ for this machine alone; "
            "ctrl-C ends it",
            flush=True,
        )
        uvicorn.Server(config).run(sockets=[listener])


def _listening(port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
        listener.listen()  # so that whoever reads the address may connect at once
    except OSError as error:
        listener.close()
        raise CliError(f"port {port} can't be used ({error.strerror}): choose another one by --port") from error
    return listener

"""The connection of a command: common options, kubeconfig files and contexts, and error messages.

Contexts are looked up here and not by the client library, so that the message for an unknown one lists the known ones.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rightpool.api.kubernetes import SERVICE_ACCOUNT_NAMESPACE
from rightpool.api.value_object import value_object
from rightpool.api.wording import meant
from rightpool.cli.documents import FORMATS
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound, Unavailable
from rightpool.cluster.kubeconfig import Kubeconfig, read_kubeconfig

TIMEOUT_SECONDS: Final = 20.0
DEFAULT_NAMESPACE: Final = "rightpool-system"
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


class CliError(Exception):
    """The command failed; the message is for the user."""

    status = 1


class WrongInput(CliError):
    """What the user gave can't be used: options, or a file."""

    status = 2


@value_object
class Connection:
    """A cluster and a namespace."""

    client: ClusterClient
    """Speaks to the API server with the rights of the user."""
    namespace: str
    """That of the option, else of the context."""
    context: str = ""
    """Of the kubeconfig. Empty in a pod, which has none."""


def add_connection_arguments(
    parser: argparse.ArgumentParser,
    outputs: Sequence[str] = FORMATS,
    namespace: str = "the namespace of the jobs; default: the context's",
) -> None:
    """Add the options that all commands have, most named as kubectl's. outputs: the forms that the command can print.
    namespace: the help of that option."""
    parser.add_argument(
        "--operator-namespace",  # of its Lease, its books and the chart's values
        type=_namespace,
        default=DEFAULT_NAMESPACE,
        metavar="NAMESPACE",
        help=f"where the operator is installed; default: {DEFAULT_NAMESPACE}",
    )
    parser.add_argument("-n", "--namespace", type=_namespace, help=namespace)
    parser.add_argument(
        "--kubeconfig", type=Path, metavar="FILE", help="the kubeconfig; default: $KUBECONFIG, else ~/.kube/config"
    )
    parser.add_argument("--context", help="a context of the kubeconfig; default: its current one")
    if len(outputs) > 1:
        parser.add_argument("-o", "--output", choices=outputs, default=outputs[0], help="the form of what is printed")


def add_everywhere_argument(parser: argparse.ArgumentParser) -> None:
    """The option `--all-namespaces`."""
    parser.add_argument("-A", "--all-namespaces", action="store_true", help="the jobs of all namespaces")


def is_namespace(text: str) -> bool:
    """Whether a namespace may have this name."""
    return _NAMESPACE.fullmatch(text) is not None


def _namespace(text: str) -> str:
    """An empty one would be all namespaces, and a tenant's objects would count as the operator's."""
    if not is_namespace(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not the name of a namespace")
    return text


@contextmanager
def connected(arguments: argparse.Namespace) -> Iterator[Connection]:
    """Connect to the chosen cluster; the client is closed at the end."""
    logging.getLogger("urllib3").setLevel(logging.ERROR)  # each of its tries: the command says once what is wrong
    files = _kubeconfigs(arguments.kubeconfig)
    if not files:
        if arguments.context is not None or "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise CliError("there is no kubeconfig: name one by --kubeconfig or $KUBECONFIG")
        own = (
            SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip() if SERVICE_ACCOUNT_NAMESPACE.exists() else ""
        )
        client = _connect()
        namespace, context = own, ""
    else:
        try:
            config = read_kubeconfig(files)
        except ValueError as error:
            raise CliError(str(error)) from error
        context = _context(config, arguments.context)
        program = config.programs.get(context)
        if program is not None and program.missing:
            hint = f" ({program.hint})" if program.hint else ""
            raise CliError(f"context {context} gets its credentials from {program.command}: install it{hint}")
        client = _connect(config.path, context)
        namespace = config.namespaces[context]
    try:
        yield Connection(client, arguments.namespace or namespace or "default", context)
    finally:
        client.close()


def carry_out(arguments: argparse.Namespace, command: str, work: Any) -> int:
    """Run `work(connection)`; the exit status, as `exit_status` has it."""

    def run() -> int:
        with connected(arguments) as connection:
            work(connection)
        return 0

    return exit_status(command, run)


def exit_status(command: str, run: Callable[[], int]) -> int:
    """That of `run`, or of an error, which is printed as one sentence on standard error."""
    try:
        return run()
    except CliError as error:
        message, status = str(error), error.status
    except ClusterError as error:
        message, status = error_message(error), CliError.status
    print(f"rightpool {command}: {message}", file=sys.stderr)
    return status


def error_message(error: ClusterError) -> str:
    """A sentence about an error of the API server, with a remedy where there is one."""
    if isinstance(error, Unavailable):
        return f"the cluster does not answer: {error.message}"
    if isinstance(error, Forbidden):
        remedy = "; pools belong to no namespace, so the right to read them needs a ClusterRoleBinding"
        return f"the cluster does not allow it: {error.message}{remedy if 'acceleratorpools' in error.message else ''}"
    if isinstance(error, NotFound) and "could not find the requested resource" in error.message:
        return "Rightpool's resources are not installed in this cluster: install the chart, or apply crds/"
    return error.message


# --- kubeconfigs -----------------------------------------------------------------------------------------------------


def _kubeconfigs(option: Path | None) -> list[Path]:
    """The kubeconfig files; as for kubectl the first one has precedence."""
    if option is not None:
        if not option.is_file():
            raise CliError(f"there is no kubeconfig {option}: name a file by --kubeconfig")
        return [option]
    variable = os.environ.get("KUBECONFIG")
    if variable:
        files = [Path(part) for part in variable.split(os.pathsep) if part]
        found = [file for file in files if file.is_file()]
        if not found:
            raise CliError(f"$KUBECONFIG is {variable}, and there is no such file")
        return found
    default = Path.home() / ".kube" / "config"
    return [default] if default.is_file() else []


def _context(config: Kubeconfig, option: str | None) -> str:
    name = option or config.current
    if not name:
        names = ", ".join(config.namespaces)
        if not names:
            raise CliError(f"{config.path} names no cluster: name another file by --kubeconfig or $KUBECONFIG")
        raise CliError(f"the kubeconfig has no current context: choose one by --context ({names})")
    if name not in config.namespaces:
        known = ", ".join(sorted(config.namespaces)) or "none"
        raise CliError(
            f"the kubeconfig has no context {name}{meant(name, config.namespaces) or f'; there are: {known}'}"
        )
    return name


def _connect(kubeconfig: str | None = None, context: str | None = None) -> ClusterClient:
    try:
        return ClusterClient.connect(kubeconfig, context=context, timeout=TIMEOUT_SECONDS)
    except Exception as error:  # the client library's errors; only cluster/ may import them
        raise CliError(f"the kubeconfig can't be used: {error}") from error

"""Which cluster, and which namespace: the options that every command has, kubectl's files, and errors as sentences.

Contexts are chosen here and not by the client library, so that a misspelt one is answered with those that exist.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml

from rightpool.cluster.client import ClusterClient
from rightpool.cluster.errors import ClusterError, Forbidden, NotFound, Unavailable
from rightpool.settings import SERVICE_ACCOUNT_NAMESPACE

TIMEOUT_SECONDS: Final = 20.0
# Entries of a kubeconfig that name a file, which is meant relative to the kubeconfig.
_FILES: Final = ("certificate-authority", "client-certificate", "client-key", "tokenFile")


class CliError(Exception):
    """The command can't do what was asked; the message is for the person who asked."""


@dataclass(frozen=True, slots=True)
class Connection:
    """namespace: the one that was asked for, else the context's."""

    client: ClusterClient
    namespace: str


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    """As kubectl names them."""
    parser.add_argument("-n", "--namespace", help="default: the context's namespace")
    parser.add_argument("--kubeconfig", type=Path, metavar="FILE", help="default: $KUBECONFIG, else ~/.kube/config")
    parser.add_argument("--context", help="a context of the kubeconfig; default: its current one")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table")


@contextmanager
def connected(arguments: argparse.Namespace) -> Iterator[Connection]:
    """A client of the chosen cluster, closed at the end."""
    files = _kubeconfigs(arguments.kubeconfig)
    if not files:
        if arguments.context is not None or "KUBERNETES_SERVICE_HOST" not in os.environ:
            raise CliError("there is no kubeconfig: name one by --kubeconfig or $KUBECONFIG")
        own = (
            SERVICE_ACCOUNT_NAMESPACE.read_text(encoding="utf-8").strip() if SERVICE_ACCOUNT_NAMESPACE.exists() else ""
        )
        client = _connect(None)
        namespace = own
    else:
        config = _merged(files, arguments.context)
        client = _connect_with(config)
        namespace = _context(config).get("namespace") or ""
    try:
        yield Connection(client, arguments.namespace or namespace or "default")
    finally:
        client.close()


def carry_out(arguments: argparse.Namespace, command: str, work: Any) -> int:
    """Run work(connection); its refusals, and the cluster's, become one sentence on standard error."""
    try:
        with connected(arguments) as connection:
            work(connection)
        sys.stdout.flush()
        return 0
    except CliError as error:
        told = str(error)
    except BrokenPipeError:  # the reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except ClusterError as error:
        told = in_words(error)
    print(f"rightpool {command}: {told}", file=sys.stderr)
    return 1


def in_words(error: ClusterError) -> str:
    """What the cluster's refusal means, and what can be done about it."""
    if isinstance(error, Unavailable):
        return f"the cluster does not answer: {error.message}"
    if isinstance(error, Forbidden):
        remedy = "; pools belong to no namespace, so reading them takes a ClusterRoleBinding"
        return f"the cluster does not let you: {error.message}{remedy if 'acceleratorpools' in error.message else ''}"
    if isinstance(error, NotFound) and "could not find the requested resource" in error.message:
        return "Rightpool's resources are not installed in this cluster: install the chart, or apply crds/"
    return error.message


# --- kubeconfigs -----------------------------------------------------------------------------------------------------


def _kubeconfigs(named: Path | None) -> list[Path]:
    """The files that count, the first before the others, as for kubectl."""
    if named is not None:
        if not named.is_file():
            raise CliError(f"there is no kubeconfig {named}")
        return [named]
    listed = os.environ.get("KUBECONFIG")
    if listed:
        files = [Path(part) for part in listed.split(os.pathsep) if part]
        found = [file for file in files if file.is_file()]
        if not found:
            raise CliError(f"$KUBECONFIG is {listed}, and there is no such file")
        return found
    default = Path.home() / ".kube" / "config"
    return [default] if default.is_file() else []


def _merged(files: list[Path], context: str | None) -> dict[str, Any]:
    """One kubeconfig out of several: of two entries with one name the first counts. context: the one to use."""
    merged: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "clusters": [], "users": [], "contexts": []}
    current: str | None = None
    for file in files:
        try:
            config = yaml.safe_load(file.read_text(encoding="utf-8")) or {}
        except (OSError, ValueError, yaml.YAMLError) as error:
            raise CliError(f"{file} can't be read: {error}") from error
        if not isinstance(config, dict):
            raise CliError(f"{file} is not a kubeconfig")
        current = current or config.get("current-context")
        for kind in ("clusters", "users", "contexts"):
            known = {entry["name"] for entry in merged[kind]}
            for entry in config.get(kind) or ():
                if entry.get("name") not in known:
                    merged[kind].append(_absolute(entry, kind.removesuffix("s"), file.resolve().parent))
    merged["current-context"] = context or current
    _context(merged)
    return merged


def _absolute(entry: Mapping[str, Any], kind: str, folder: Path) -> dict[str, Any]:
    inner = dict(entry.get(kind) or {})
    for key in _FILES:
        if inner.get(key):
            inner[key] = str(folder / inner[key])
    return {**entry, kind: inner}


def _context(config: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = config["current-context"]
    contexts = {entry["name"]: entry.get("context") or {} for entry in config["contexts"]}
    if not wanted:
        raise CliError(f"the kubeconfig has no current context: choose one by --context ({', '.join(contexts)})")
    if wanted not in contexts:
        near = get_close_matches(wanted, contexts, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(contexts)) or 'none'}"
        raise CliError(f"the kubeconfig has no context {wanted}; {hint}")
    return contexts[wanted]


def _connect_with(config: Mapping[str, Any]) -> ClusterClient:
    """The client reads files alone. This one is its reader's only, and gone once it was read."""
    with tempfile.TemporaryDirectory(prefix="rightpool-") as folder:
        path = Path(folder) / "config"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(dict(config)), encoding="utf-8")
        return _connect(path)


def _connect(kubeconfig: Path | None) -> ClusterClient:
    try:
        return ClusterClient.connect(kubeconfig, timeout=TIMEOUT_SECONDS)
    except Exception as error:  # the client library's own errors, which only cluster/ may name
        raise CliError(f"the kubeconfig can't be used: {error}") from error

"""The operator's books, one ConfigMap a namespace in its own namespace, as commands read them."""

from __future__ import annotations

from rightpool.cli.connection import CliError
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.contract import LABEL_CHARGEBACK
from rightpool.planning.books.chargeback import Chargeback
from rightpool.reporting.chargeback_object import charged_namespace, read_books


def read_all_books(client: ClusterClient, where: str, only: str | None) -> dict[str, Chargeback]:
    """By namespace. where: the operator's own; only: a namespace, or None for all. Raises CliError and ClusterError."""
    found = {}
    for body in client.list_all(CONFIG_MAPS, where, labels=LABEL_CHARGEBACK):
        namespace = charged_namespace(body)
        if namespace is None or (only is not None and namespace != only):
            continue
        try:
            found[namespace] = read_books(body)
        except ValueError as error:
            raise CliError(f"the books of {namespace} can't be read: {error}") from error
    return found

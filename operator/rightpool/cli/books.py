"""The operator's books, one ConfigMap a namespace in its own namespace, and what pools cost, as commands read them."""

from __future__ import annotations

from rightpool.cli.connection import CliError
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import CONFIG_MAPS
from rightpool.contract import LABEL_CHARGEBACK, LABEL_POOL_COSTS
from rightpool.planning.books.chargeback import Chargeback
from rightpool.planning.books.pool_costs import PoolCosts
from rightpool.reporting.chargeback_object import charged_namespace, read_books
from rightpool.reporting.pool_costs_object import is_pool_costs, read_pool_costs


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


def read_all_pool_costs(client: ClusterClient, where: str) -> PoolCosts:
    """What pools cost; empty where nothing was booked yet. where: the operator's namespace. Raises CliError and
    ClusterError."""
    for body in client.list_all(CONFIG_MAPS, where, labels=LABEL_POOL_COSTS):
        if is_pool_costs(body):
            try:
                return read_pool_costs(body)
            except ValueError as error:
                raise CliError(f"what pools cost can't be read: {error}") from error
    return PoolCosts()

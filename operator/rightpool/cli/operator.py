"""`rightpool operator`: the controller process. Its settings come from the environment; options win over it."""

from __future__ import annotations

import argparse
import asyncio
import gc
import logging
import os
import sys
from pathlib import Path

from pydantic import ValidationError

from rightpool.cli.decider import Decider
from rightpool.cli.logs import set_up_logging
from rightpool.cli.number_range import seconds
from rightpool.cluster.client import Hook
from rightpool.handlers.operator import run_operator
from rightpool.runtime.wiring import Operator
from rightpool.settings import LONGEST_INTERVAL, SHORTEST_INTERVAL, OperatorSettings
from rightpool.telemetry.prometheus import PrometheusQueries, PrometheusReader
from rightpool.telemetry.reader import TelemetryReader
from rightpool.telemetry.scrape import ScrapeReader
from rightpool.telemetry.server_pages import ServerReader
from rightpool.telemetry.server_queries import ServerQueries
from rightpool.telemetry.server_scrape import ServerScrape
from rightpool.telemetry.sources.registry import trusting

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Few: what one changes between runs on a laptop. All settings are environment variables."""
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="the kubeconfig; default: the pod's service account, else $KUBECONFIG",
    )
    parser.add_argument(
        "--interval",
        type=seconds(SHORTEST_INTERVAL, LONGEST_INTERVAL),
        metavar="SECONDS",
        help="the time between two planning cycles",
    )
    parser.add_argument(
        "--prometheus-url", metavar="URL", help="a Prometheus to read; default: the sidecars are read directly"
    )
    parser.add_argument("--log-format", choices=("json", "text"), help="the form of the log")


def run(arguments: argparse.Namespace, hook: Hook | None = None) -> int:
    """Until SIGTERM or SIGINT; then 0. 1 where only a new process can go on. hook: of the client that writes."""
    options = ("kubeconfig", "interval", "prometheus_url", "log_format")
    given = {name: value for name in options if (value := getattr(arguments, name)) is not None}
    try:
        settings = OperatorSettings(**given)
    except ValidationError as error:
        for problem in error.errors(include_url=False):
            field = str(problem["loc"][0])
            name = f"--{field.replace('_', '-')}" if field in given else f"RIGHTPOOL_{field.upper()}"
            print(f"rightpool operator: {name}: {problem['msg']}", file=sys.stderr)
        return 2
    set_up_logging(settings.log_format, settings.log_level)
    if settings.kubeconfig is not None:
        os.environ["KUBECONFIG"] = str(settings.kubeconfig)  # kopf's watches read it from there
    try:
        operator = Operator(
            settings, decide=Decider(), reader=telemetry_reader(settings), servers=server_reader(settings), hook=hook
        )
    except (OSError, ValueError) as error:
        logger.error("the operator can't start: %s", error)
        return 1
    gc.freeze()  # what is there by now stays
    try:
        failure = asyncio.run(run_operator(operator, settings))
    except OSError as error:  # a port that is taken
        logger.error("the operator can't start: %s", error)
        return 1
    if failure is not None:
        logger.error("the operator has ended: %s", failure)
    return 0 if failure is None else 1


def server_reader(settings: OperatorSettings) -> ServerReader:
    """Of servers' own pages: as telemetry_reader."""
    if settings.prometheus_url is None:
        return ServerScrape()
    return ServerQueries(PrometheusQueries(settings.prometheus_url), settings.prometheus_scrape_interval)


def telemetry_reader(settings: OperatorSettings) -> TelemetryReader:
    """Prometheus where one is named, else the sidecars themselves."""
    if settings.prometheus_url is None:
        return ScrapeReader()
    return PrometheusReader(
        settings.prometheus_url,
        scrape_interval=settings.prometheus_scrape_interval,
        sources=trusting(settings.prometheus_exporter_jobs),
    )

"""`rightpool calibrate POOL`: measure what the chips of a pool can do, by a Job on one of its nodes.

The Job takes the chips of one node for about a minute, and needs an image with PyTorch or JAX. What was measured is
written into the status of the AcceleratorPool; from then on it overrides the catalog and spec.chip, unless it is
implausible.

With `-o json` or `-o yaml`, one object:

    apiVersion, kind   rightpool.dev/v1alpha1, Calibration
    pool               name
    calibration        as in the pool's status, with numbers: {accelerator, measuredAt, reason, message, device,
                       software, node, chips, teraflops, memoryGigabytesPerSecond, allReduce}
    dataSheet          {teraflops, memoryGigabytesPerSecond} by the catalog or spec.chip; {} and null where
                       they are estimated

Exit status 1 also where the measurement is implausible.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any, Final

from pydantic import ValidationError

from rightpool.api.conditions import Condition, PoolConditionType, Reason, set_conditions
from rightpool.api.pool import MAX_CHIPS_PER_NODE, AcceleratorPoolStatus, Calibration
from rightpool.api.quantities import format_quantity
from rightpool.api.wording import how_many, meant
from rightpool.cli.calibrate.benchmark import DTYPES
from rightpool.cli.calibrate.job import benchmark_job
from rightpool.cli.calibrate.run import require_rights, run_job
from rightpool.cli.connection import CliError, Connection, add_connection_arguments, carry_out
from rightpool.cli.documents import document_head, plain, print_document
from rightpool.cli.number_range import whole_number
from rightpool.cli.table import NOTHING, Column, Page
from rightpool.cli.view import ClusterView, FleetView
from rightpool.cluster.client import ClusterClient
from rightpool.cluster.resources import ACCELERATOR_POOLS
from rightpool.hardware.accelerator import Accelerator
from rightpool.hardware.calibration import agreement
from rightpool.hardware.declared_chip import DeclaredChips
from rightpool.hardware.measurement import MeasurementError, calibration, judged, read_measurement
from rightpool.hardware.pool import Pool
from rightpool.runtime.observe.facts import meta

FIELD_MANAGER: Final = "rightpool-calibrate"
TIMEOUT: Final = 900
LONGEST_TIMEOUT: Final = 86_400
COLUMNS: Final = (
    Column("RATE"),
    Column("MEASURED", right=True),
    Column("DATA SHEET", right=True),
    Column("SHARE", right=True),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("pool", metavar="POOL", help="an AcceleratorPool")
    parser.add_argument(
        "--image", help="an image with PyTorch or JAX for the pool's chips; default: a public one, by vendor"
    )
    parser.add_argument(
        "--chips",
        type=whole_number(1, MAX_CHIPS_PER_NODE),
        help="how many chips of one node; default: all, which also measures their links",
    )
    parser.add_argument(
        "--timeout",
        type=whole_number(1, LONGEST_TIMEOUT),
        default=TIMEOUT,
        metavar="SECONDS",
        help=f"the time for chips to be free, the image to be pulled, and the measurement; default: {TIMEOUT}",
    )
    add_connection_arguments(parser, namespace="the namespace that the Job runs in; default: the context's")


def run(arguments: argparse.Namespace) -> int:
    """The exit status: 0 measured, 1 not possible or implausible."""
    return carry_out(arguments, "calibrate", lambda connection: _calibrate(connection, arguments))


def _calibrate(connection: Connection, arguments: argparse.Namespace) -> None:
    client, namespace = connection.client, connection.namespace
    view = ClusterView(client, namespace, arguments.operator_namespace)
    pool = _pool(view.fleet(), arguments.pool)
    stored = next(one for one in view.store.objects(ACCELERATOR_POOLS) if meta(one)["name"] == pool.name)
    chip = DeclaredChips(view.catalog, view.specs()).accelerator(pool.name)
    platform, image = _how(pool, arguments.image)
    dtypes = [dtype for dtype in DTYPES if dtype in chip.peak_flops]
    chips = _chips(pool, arguments.chips)
    require_rights(client, namespace)
    if pool.free < chips:
        _say(
            f"{chips} free chips on one node of {pool.name} are needed, and {pool.free} are free in all: the pod waits"
        )
    manifest = benchmark_job(
        pool, namespace, image=image, platform=platform, dtypes=dtypes, chips=chips, seconds=arguments.timeout
    )
    log, node = run_job(client, manifest, _say)
    try:
        measured = read_measurement(log)
    except MeasurementError as error:
        raise CliError(f"{error}; the image was {image}") from error
    found = calibration(measured, chip, judged(measured, chip, chips, view.catalog), node=node, now=time.time())
    store_calibration(client, pool.name, stored, found)
    if arguments.output == "table":
        print_calibration(Page(), found, chip)
    else:
        print_document(document(pool.name, found, chip), arguments.output)
    if found.reason is not Reason.MEASURED:
        raise CliError(f"{found.reason}: {found.message}. The figures are not used")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- what is asked for -----------------------------------------------------------------------------------------------


def _pool(fleet: FleetView, name: str) -> Pool:
    pool = fleet.pools.get(name)
    if pool is not None:
        return pool
    problems = [problem.message for problem in fleet.problems if problem.pool == name]
    if problems:
        raise CliError(f"pool {name} can't be used: {'; '.join(problems)}")
    raise CliError(f"there is no pool {name}{meant(name, fleet.pools)}")


def _how(pool: Pool, image: str | None) -> tuple[str, str]:
    """The platform that the benchmark runs on, and its image."""
    vendor = pool.accelerator.vendor
    benchmark = vendor.benchmark
    if benchmark is None:
        raise CliError(f"there is no benchmark for chips of {vendor}: PyTorch and JAX alone do not run on them")
    if pool.hosts_per_slice > 1:
        raise CliError(
            f"pool {pool.name} gives out slices of {pool.hosts_per_slice} hosts, and the benchmark runs on one"
        )
    chosen = image or benchmark.image
    if not chosen:
        raise CliError(f"there is no default image for chips of {vendor}: name one with JAX for them by --image")
    return benchmark.platform, chosen


def _chips(pool: Pool, asked: int | None) -> int:
    if asked is None:
        return pool.chips_per_node
    if asked > pool.chips_per_node:
        raise CliError(f"--chips: a node of {pool.name} has 1 to {pool.chips_per_node}")
    if pool.slice is not None and asked != pool.unit:
        raise CliError(f"--chips: {pool.name} gives out slices of {pool.unit} chips")
    return asked


# --- what was measured -----------------------------------------------------------------------------------------------


def store_calibration(client: ClusterClient, name: str, stored: Any, found: Calibration) -> None:
    """Write it into the pool's status, with the condition that the operator makes of it too."""
    made = Condition(
        PoolConditionType.CALIBRATED.value,
        *agreement(name, found, found.accelerator),
        observed_generation=int(meta(stored).get("generation") or 0),
    )
    kept = [one for one in (stored.get("status") or {}).get("conditions") or () if one.get("type") == made.type]
    try:
        before = AcceleratorPoolStatus.model_validate({"conditions": kept}).conditions
    except ValidationError:
        before = []
    conditions = [one.to_dict() for one in set_conditions(before, [made], found.measured_at)]
    body = {
        "metadata": {"name": name, "uid": meta(stored)["uid"]},
        "status": {"calibration": found.to_dict(), "conditions": conditions},
    }
    client.apply(ACCELERATOR_POOLS, body, subresource="status", manager=FIELD_MANAGER)


def document(pool: str, found: Calibration, chip: Accelerator) -> dict[str, Any]:
    """The object described in the module's docstring."""
    return {
        **document_head("Calibration"),
        "pool": pool,
        "calibration": plain(found.to_dict()),
        "dataSheet": {
            "teraflops": {dtype: rate / 1e12 for dtype, rate in chip.published_flops.items()},
            "memoryGigabytesPerSecond": None if chip.published_bandwidth is None else chip.published_bandwidth / 1e9,
        },
    }


def print_calibration(page: Page, found: Calibration, chip: Accelerator) -> None:
    """Rates beside those of the data sheet, and what they were measured with."""
    page.line(f"{found.device}, {how_many(found.chips, 'chip')} of {found.node}, {found.software}")
    page.line()
    page.table(COLUMNS, list(_rows(found, chip)))


def _rows(found: Calibration, chip: Accelerator) -> Iterator[list[str]]:
    made_up = chip.vendor.made_up
    for dtype, rate in found.teraflops or ():
        if rate is not None:
            peak = None if made_up else chip.published_flops.get(dtype)
            yield _row(f"{dtype} TFLOP/s", float(rate), None if peak is None else peak / 1e12)
    if found.memory_gigabytes_per_second is not None:
        bandwidth = None if made_up else chip.published_bandwidth
        sheet = None if bandwidth is None else bandwidth / 1e9
        yield _row("memory GB/s", float(found.memory_gigabytes_per_second), sheet)
    for link in found.all_reduce:
        yield _row(f"all-reduce of {link.chips}, GB/s", float(link.gigabytes_per_second), None)


def _row(name: str, measured: float, sheet: float | None) -> list[str]:
    if sheet is None:
        return [name, format_quantity(measured), NOTHING, NOTHING]
    return [name, format_quantity(measured), format_quantity(sheet), f"{measured / sheet:.0%}"]

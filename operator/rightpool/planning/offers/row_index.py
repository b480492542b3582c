"""The rows of an evaluation: every placement of every running job, and where the jobs are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rightpool.api.placement import Placement
from rightpool.hardware.vendors.vendor import Vendor
from rightpool.planning.jobs.job import Job
from rightpool.planning.offers.enumerate import options
from rightpool.planning.offers.pool_gates import current_gate, home_vendor, placed_vendor
from rightpool.planning.offers.register import NONE, Register
from rightpool.planning.offers.shape import Shape
from rightpool.prediction.columns import Ints


@dataclass(frozen=True, slots=True)
class RowIndex:
    """Rows by job and placement, without those of where the jobs are, where the spec allows them to be there."""

    job: Ints
    """The job, a place among the jobs."""
    option: Ints
    """The placement, by its number in the register."""
    gate: Ints
    """The gate of the pool that rejects it, by its code in the register."""
    current: Ints
    """For each job what the spec has against where it is, by its code."""
    places: Sequence[Placement]
    """Where each job is."""
    home: Ints
    """The pools of these placements, places among the machines."""
    here: Ints
    """Their numbers in the register."""


def row_index_of(jobs: Sequence[Job], shapes: Sequence[Shape], register: Register) -> RowIndex:
    """The rows of jobs of these shapes, whose pools must be among the machines of the register."""
    machines = register.machines
    places = [_placement(job) for job in jobs]
    homes = np.array([machines.index[place.pool] for place in places], dtype=np.int64)
    heres = np.array([register.option(place) for place in places], dtype=np.int64)
    templates: dict[tuple[Shape, Vendor], int] = {}
    columns: list[tuple[list[int], list[int], list[bool]]] = []
    gates: dict[tuple[int, int], int] = {}
    chosen, current = [], []
    for job, shape, place, home, here in zip(jobs, shapes, places, homes.tolist(), heres.tolist(), strict=True):
        pool = machines.pools[home]
        vendor = home_vendor(shape, machines.pools, placed_vendor(job.state.revision, pool))
        number = templates.get((shape, vendor))
        if number is None:
            number = templates[shape, vendor] = len(columns)
            found = options(shape, machines.pools, vendor)
            columns.append(
                (
                    [register.option(option.placement) for option in found],
                    [register.code(option.rejection) for option in found],
                    [option.elsewhere for option in found],
                )
            )
        chosen.append(number)
        gate = gates.get((number, here))
        if gate is None:
            gate = gates[number, here] = register.code(current_gate(shape, pool, place, vendor))
        current.append(gate)
    lengths = np.array([len(column[0]) for column in columns], dtype=np.int64)
    offsets = np.cumsum(lengths) - lengths
    template = np.array(chosen, dtype=np.int64)
    counts = lengths[template]
    row_job = np.repeat(np.arange(len(shapes)), counts)
    at = np.arange(len(row_job)) - np.repeat(np.cumsum(counts) - counts - offsets[template], counts)
    option, gate_column, elsewhere = (
        np.array([value for column in columns for value in column[part]], dtype=kind)[at]
        for part, kind in ((0, np.int64), (1, np.int64), (2, np.bool_))
    )
    pools = np.array([machines.index[placement.pool] for placement in register.placements], dtype=np.int64)
    at_home = pools[option] == homes[row_job]
    kept = ~(at_home & (elsewhere | ((gate_column == NONE) & (option == heres[row_job]))))
    return RowIndex(
        row_job[kept], option[kept], gate_column[kept], np.array(current, dtype=np.int64), places, homes, heres
    )


def _placement(job: Job) -> Placement:
    assert job.state.revision is not None
    return job.state.revision.placement

"""A fleet under noise: what is compared is the same jobs, and an oracle that knows what they do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.decisions.world import pool
from benchmarks.fleet.noisy import CHIPS, PLAYERS, Played, jobs_of, known_rates, measured, played
from rightpool.api.choices import Batch
from rightpool.api.placement import Placement
from rightpool.prediction.columns import floats
from rightpool.prediction.features import features
from rightpool.prediction.machines import Machines
from rightpool.prediction.predictor import Destinations

POOLS = [pool(name, chip, price, chips) for name, (chip, price, chips) in CHIPS.items()]


def test_all_jobs_of_a_fleet_that_has_the_planner_end_and_are_paid_for() -> None:
    fleet = played("fleet", "ar-10m", count=6, days=0.2)
    jobs = jobs_of(POOLS, "ar-10m", 1, 6, 0.2)
    assert fleet.left == 0
    assert (fleet.waits > 0.0).all() and (fleet.waits < fleet.hours).all()
    cheapest = [1.006 * one.job.job.spec.workload.chips for one in jobs]
    assert (fleet.dollars > 0.9 * (fleet.hours - fleet.waits) * cheapest).all()


def test_an_oracle_knows_each_job_by_its_rate() -> None:
    jobs = jobs_of(POOLS, "evaluation", 1, 5, 0.2)
    usual = [float(np.mean(one.job.noise("h100"))) for one in jobs]
    model, machines = known_rates(jobs), Machines.of(made.pool for made in POOLS)
    job, there = jobs[3].job, Placement("h100", 4, 1)
    here = Placement("a10g", job.job.spec.workload.chips, 1)
    assert set(job.noise("a10g")) == {usual[3]}, "no noise"
    pace = [(job.rate(here) * usual[3], 0.0)]
    columns = features([None], [here], [Batch.PER_CHIP], machines, paces=pace)
    found = model.predict(columns, machines, Destinations.of([(0, there)], machines))
    assert found.median[0] == pytest.approx(job.rate(there) * usual[3])


def test_what_the_planner_gains_is_set_against_what_the_oracle_gains() -> None:
    hours = {"greedy": [10.0, 10.0], "fleet": [9.0, 10.0], "oracle": [8.0, 10.0]}
    one = Played(floats([]), floats([]), floats([1.0, 2.0]), left=0, moves=9, right=4, undone=1, seconds=0.0)
    found = {name: replace(one, dollars=floats(hours[name]), hours=floats(hours[name])) for name in PLAYERS}
    rows = {row.measure: row for row in measured([found], "ar-10m")}
    gain, undone = rows["share of the oracle's gain, dollars"], rows["right moves undone"]
    assert (gain.value, gain.ok) == (0.5, False)
    assert (undone.value, undone.ok) == (0.25, False)
    assert rows["longest wait, fleet ÷ greedy"].ok and rows["jobs that do not end"].ok
    lost = found | {"fleet": replace(found["fleet"], hours=floats([13.0, 10.0]))}
    both = {row.measure: row for row in measured([found, lost], "ar-10m")}["share of the oracle's gain, time"]
    assert both.value == -0.5 and both.low < -1.0 and both.high > 0.5, "one gained 1 hour of 2, the other lost 3 of 2"

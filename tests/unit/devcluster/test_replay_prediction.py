"""Predictions for the moves of the demo, compared with the table of the replay.

Predictions are made from data sheets and the profile on the source pool; the table has published measurements of the
target. Both use the prices that the demo declares.
"""

import math

import pytest

from devcluster.replay.table import Row, Table
from rightpool.api.choices import Batch
from rightpool.api.estimate import Estimate, normal_cdf
from rightpool.api.placement import Placement
from rightpool.hardware.accelerator import Price
from rightpool.hardware.catalog import load_catalog
from rightpool.hardware.pool import Pool
from rightpool.profiles.profile import Profile, Reading, Steadiness
from rightpool.profiles.sample import Field, Quality, RevisionKey
from tests.unit.prediction.fixtures import predict

PRICES = {"A100-SXM4-80GB": 5.07, "A10G-24GB": 1.006, "TPU-v5e": 1.20}


def pool(accelerator: str, chips_per_node: int) -> Pool:
    found = load_catalog().get(accelerator)
    return Pool(
        name=accelerator,
        accelerator=found,
        chips_per_node=chips_per_node,
        resource_name="example.com/chip",
        node_selector={},
        intra_link=found.intra_link,
        inter_link=found.inter_link,
        price=Price(PRICES[accelerator]),
        total=64,
        free=64,
    )


def profile_of(row: Row) -> Profile:
    """The profile of pods that replay this row: without shares of the step, as without a trace."""
    values = {
        Field.SAMPLES_PER_SECOND: row.samples_per_second,
        Field.CHIP_BUSY: row.chip_busy,
        Field.COMPUTE_ACTIVE: row.compute_active,
        Field.MATRIX_ACTIVE: row.matrix_active,
        Field.MEMORY_BANDWIDTH: row.memory_bandwidth,
        Field.INPUT_WAIT: row.input_wait,
    }
    readings = {
        field: Reading(value, value * 0.99, value * 1.01, Quality.MEASURED)
        for field, value in values.items()
        if value is not None
    }
    return Profile(
        key=RevisionKey("team", "job", 1),
        chips=row.chips,
        steadiness=Steadiness.STEADY,
        window=300.0,
        covered=1.0,
        newest=0.0,
        pods=1,
        expected=1,
        readings=readings,
    )


@pytest.mark.parametrize(
    ("workload", "target", "chips", "per_node"),
    [("resnet50", "A10G-24GB", 4, 4), ("resnet50", "A10G-24GB", 8, 8), ("mpt-1b", "TPU-v5e", 8, 8)],
)
def test_the_demos_moves_are_predicted_to_pay_and_do(workload: str, target: str, chips: int, per_node: int) -> None:
    table = Table.read()
    here, there = table.at(workload, "A100-SXM4-80GB", chips), table.at(workload, target, chips)
    source = (Placement("A100-SXM4-80GB", chips, 1), pool("A100-SXM4-80GB", 8))
    estimate = predict(
        profile_of(here), source, (Placement(target, chips, 1), pool(target, per_node)), batch=Batch.PER_CHIP
    )
    assert isinstance(estimate, Estimate)
    dearer = PRICES[target] / PRICES["A100-SXM4-80GB"]
    cost = dearer * here.samples_per_second / estimate.median  # of a sample, against now
    assert 1 - cost >= 0.19
    assert normal_cdf(-math.log(cost) / estimate.sd) >= 0.8
    assert there.samples_per_second >= estimate.low, "the replay would be worse than the interval says"
    assert dearer * here.samples_per_second / there.samples_per_second < cost, "and it delivers what was promised"

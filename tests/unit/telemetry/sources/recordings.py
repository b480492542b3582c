"""Recorded pages of the sources, one for each, as `<name>.prom`. All are about the pod llm-0 in the namespace ml.

Those of amd, tpu-device-plugin, neuron and gaudi follow public examples of their exporters' output or their source, and
have the labels of the real ones; no such chip was at hand.
"""

from pathlib import Path

from rightpool.profiles.sample import Field

RECORDED = Path(__file__).with_name("recorded")

# What the pages of node exporters say, without rates.
VENDORS: dict[str, dict[Field, float]] = {
    "amd": {
        Field.CHIP_BUSY: 0.9,
        Field.SLOWEST_CHIP_BUSY: 0.88,
        Field.MATRIX_ACTIVE: 0.31,
        Field.OCCUPANCY: 0.21,
        Field.MEMORY_BANDWIDTH: 0.4,
        Field.MEMORY_USED: 151000 * 2**20,
        Field.MEMORY_TOTAL: 196592 * 2**20,
        Field.POWER: 650.0,
        Field.TEMPERATURE: 74.0,
        Field.UNCORRECTED_ERRORS: 0.0,
    },
    "tpu-device-plugin": {
        Field.CHIP_BUSY: 0.98,
        Field.SLOWEST_CHIP_BUSY: 0.96,
        Field.MATRIX_ACTIVE: 0.52,
        Field.MEMORY_BANDWIDTH: 0.32,
        Field.MEMORY_USED: 8.1e10,
        Field.MEMORY_TOTAL: 1.02e11,
    },
    "neuron": {Field.CHIP_BUSY: 0.8, Field.SLOWEST_CHIP_BUSY: 0.7},
    "gaudi": {
        Field.CHIP_BUSY: 0.7,
        Field.SLOWEST_CHIP_BUSY: 0.6,
        Field.MEMORY_USED: 6.2e10,
        Field.MEMORY_TOTAL: 103079215104.0,
        Field.POWER: 410.0,
        Field.TEMPERATURE: 55.0,
    },
}


def recorded(name: str) -> str:
    """The page of a source."""
    return (RECORDED / f"{name}.prom").read_text()

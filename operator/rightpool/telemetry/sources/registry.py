"""The sources that are read. A new one is a module here, a line in the table below and a recorded page in the tests.

Where several have a field of a Revision, the first that measures it counts, else the first that derives it. The
sidecars come first: they see exactly the job's chips. Busy time shows why the quality goes before the order: a chip
before Hopper tells its pod only whether any kernel was resident (derived), and DCGM counts what the engine did.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rightpool.telemetry.sources.amd import AMD
from rightpool.telemetry.sources.dcgm import DCGM
from rightpool.telemetry.sources.exporter import Exporter
from rightpool.telemetry.sources.gaudi import GAUDI
from rightpool.telemetry.sources.neuron import NEURON
from rightpool.telemetry.sources.sidecar_series import SIDECAR_SERIES
from rightpool.telemetry.sources.source import Source
from rightpool.telemetry.sources.tpu_device_plugin import TPU_DEVICE_PLUGIN

SOURCES: Final[tuple[Source, ...]] = (
    SIDECAR_SERIES,
    DCGM,
    AMD,
    TPU_DEVICE_PLUGIN,
    NEURON,
    GAUDI,
)


def trusting(jobs: Sequence[str]) -> tuple[Source, ...]:
    """The sources, whose exporters count from these scrape jobs; empty: from those of the exporters' own charts."""
    if not jobs:
        return SOURCES
    return tuple(replace(one, jobs=tuple(jobs)) if isinstance(one, Exporter) else one for one in SOURCES)

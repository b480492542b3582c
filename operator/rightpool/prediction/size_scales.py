"""Scales of the model of sizes: how much jobs differ in what links and bytes tell, as standard deviations of the
logarithm of a step's time. `make fit` (tools/fit) fits them on published throughput; they ship in data/sizes.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from importlib import resources
from typing import Any

from rightpool.api.value_object import value_object


@value_object
class SizeScales:
    """Hyper-parameters of step_time.py."""

    slope: float
    """Of a job's slope beside the model, for each doubling of its chips."""
    seen: float
    """What a rate at another size may be off beside the model."""

    def write(self, provenance: Mapping[str, Any]) -> str:
        """JSON, with its provenance."""
        return json.dumps({"provenance": dict(provenance), "scales": asdict(self)}, indent=1) + "\n"

    @classmethod
    def read(cls, text: str) -> SizeScales:
        """From its JSON."""
        return cls(**json.loads(text)["scales"])


@cache
def shipped_sizes() -> SizeScales:
    """What the operator predicts other sizes with. Read once."""
    text = resources.files("rightpool.prediction").joinpath("data", "sizes.json").read_text(encoding="utf-8")
    return SizeScales.read(text)

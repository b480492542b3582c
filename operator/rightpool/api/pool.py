"""What a platform team declares, or discovery finds: an AcceleratorPool."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import ConfigDict, Field, WithJsonSchema

from rightpool.api.conditions import LIST_OF_CONDITIONS, MAX_MESSAGE, Condition, Reason
from rightpool.api.labels import Labels
from rightpool.api.model import ATOMIC, ApiModel
from rightpool.api.outcome import MAX_OUTCOMES, MoveOutcome
from rightpool.api.past_price import MAX_PRICES, PastPrice
from rightpool.api.quantities import Frequency, Memory, Money, Rate
from rightpool.api.rules import Rule, validations
from rightpool.api.spot_use import MAX_SPOT_USES, SpotUse
from rightpool.api.units import WORD, UnixTime

_TOLERATION: Final = {
    "type": "object",
    "description": "A toleration, as in a pod.",
    "properties": {
        "key": {"type": "string", "description": "Key of the taint."},
        "operator": {"type": "string", "enum": ["Exists", "Equal"], "description": "Exists or Equal."},
        "value": {"type": "string", "description": "Value of the taint, for Equal."},
        "effect": {
            "type": "string",
            "enum": ["NoSchedule", "PreferNoSchedule", "NoExecute"],
            "description": "Effect of the taint. Default: every one.",
        },
        "tolerationSeconds": {
            "type": "integer",
            "format": "int64",
            "description": "How long a NoExecute taint is tolerated, seconds.",
        },
    },
}
Toleration = Annotated[dict[str, Any], WithJsonSchema(_TOLERATION)]

# Sides of the topology, as integers: "2x4" is [2, 4].
TOPOLOGY: Final = r"^[1-9][0-9]{0,2}(x[1-9][0-9]{0,2}){1,2}$"
_SIDES: Final = "self.topology.split('x')"
MAX_CHIPS_PER_NODE: Final = 256
MAX_SLICE_CHIPS: Final = 65536
_PRODUCT: Final = f"int({_SIDES}[0]) * int({_SIDES}[1]) * (size({_SIDES}) > 2 ? int({_SIDES}[2]) : 1)"


class LinkKind(StrEnum):
    """What carries bytes between chips."""

    NVLINK = "NVLink"
    PCIE = "PCIe"
    ICI = "ICI"
    INFINITY_FABRIC = "InfinityFabric"
    NEURON_LINK = "NeuronLink"
    INFINIBAND = "InfiniBand"
    EFA = "EFA"
    ETHERNET = "Ethernet"
    LOOPBACK = "Loopback"  # development only: pods of one machine. Of the catalog; no pool declares it


_DECLARABLE: Final = {"type": "string", "enum": [kind.value for kind in LinkKind if kind is not LinkKind.LOOPBACK]}


class LinkSpec(ApiModel):
    """A link between chips."""

    kind: Annotated[LinkKind, WithJsonSchema(_DECLARABLE)]
    """What connects them."""

    gigabytes_per_second: Rate | None = None
    """Bandwidth of one chip's share in one direction, GB/s. Default: what the catalog says about this kind."""


class Interconnect(ApiModel):
    """How the chips of the pool reach each other."""

    intra_node: LinkSpec | None = None
    """Between chips of one node."""

    inter_node: LinkSpec | None = None
    """Between nodes."""


class Slice(ApiModel):
    """Hosts that are wired together and can only be requested as a whole, such as a TPU slice."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                f"!self.topology.matches(r'{TOPOLOGY}') || {_PRODUCT} == self.chips",
                "must be the product of the topology: write 8 for 2x4, 64 for 4x4x4",
                field=".chips",
            )
        )
    )

    topology: str = Field(
        max_length=16,
        json_schema_extra=validations(
            Rule(f"self.matches(r'{TOPOLOGY}')", "must be two or three sides: write 2x4 or 4x4x8")
        ),
    )
    """Shape, such as 2x4 or 4x4x8."""

    chips: int = Field(ge=1, le=MAX_SLICE_CHIPS)
    """Chips of one slice: the product of the topology."""


_ANY_RATE: Final = " || ".join(f"has(self.{rate})" for rate in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8"))


class Teraflops(ApiModel):
    """Peak rates of one chip without sparsity, 10¹² operations a second."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(_ANY_RATE, "must name at least one rate: write those of the data sheet, such as bf16")
        )
    )

    fp32: Rate | None = None
    """Single precision outside of matrix units."""

    tf32: Rate | None = None
    """TensorFloat-32."""

    bf16: Rate | None = None
    """bfloat16."""

    fp16: Rate | None = None
    """Half precision."""

    fp8: Rate | None = None
    """8-bit floating point."""

    int8: Rate | None = None
    """8-bit integers."""


_ANY_FIGURE: Final = " || ".join(
    f"has(self.{figure})" for figure in ("memory", "memoryGigabytesPerSecond", "teraflops", "watts")
)


class ChipSpec(ApiModel):
    """What one chip can do, by its data sheet. The catalog's figures hold where none is named; of an accelerator that
    the catalog lacks, at least the memory is needed, and rates that are not named are estimated from it and the price.
    """

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(_ANY_FIGURE, "must name at least one figure: write those of the data sheet, such as memory: 48Gi")
        )
    )

    memory: Memory | None = None
    """Memory of one chip, such as 48Gi."""

    memory_gigabytes_per_second: Rate | None = None
    """Bandwidth of its memory, GB/s."""

    teraflops: Teraflops | None = None
    """What it computes. Jobs in an arithmetic that neither this nor the catalog names are kept away."""

    watts: Rate | None = None
    """Limit of its power."""


class PriceSpec(ApiModel):
    """What a chip costs."""

    per_chip_hour: Money | None = None
    """Dollars an hour for one chip on demand. Default: the catalog's list price."""

    spot_per_chip_hour: Money | None = None
    """Dollars an hour for one chip of spot capacity."""


class AcceleratorPoolSpec(ApiModel):
    """Interchangeable nodes with the same chips, links and price."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.slice) || self.slice.chips % self.chipsPerNode == 0",
                "must be a whole number of nodes: correct slice.topology or chipsPerNode",
                field=".slice.chips",
            )
        )
    )

    accelerator: str = Field(min_length=1, max_length=63)
    """Key of the catalog, such as A10G-24GB; with `chip`, any other name."""

    chip: ChipSpec | None = None
    """What one chip can do: of an accelerator that the catalog lacks, or in place of the catalog's figures. It holds in
    all pools of the accelerator."""

    chips_per_node: int = Field(ge=1, le=MAX_CHIPS_PER_NODE)
    """Chips of one node."""

    resource_name: str = Field(
        max_length=253,
        json_schema_extra=validations(
            Rule(
                "self.matches(r'^[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')",
                "must be an extended resource, a domain and a name: write nvidia.com/gpu",
            )
        ),
    )
    """Extended resource that pods request, such as nvidia.com/gpu."""

    node_selector: Labels = Field(default_factory=dict)
    """Labels that the pool's nodes carry. Pods of this pool get them as nodeSelector."""

    tolerations: list[Toleration] = Field(default_factory=list, max_length=16)
    """Tolerations that pods of this pool get."""

    slice: Slice | None = None
    """For TPU pools: the shape of one slice."""

    interconnect: Interconnect | None = None
    """How the chips reach each other. Default: what the catalog says."""

    price: PriceSpec | None = None
    """What a chip costs. Default: the catalog's list price."""

    spot_interruptions_per_day: Frequency | None = None
    """How often a day a job on spot capacity of the pool is interrupted, until that was counted. Default: what the
    PlacementPolicy says."""

    max_chips: Annotated[int, Field(ge=0, le=10_000_000)] | None = None
    """Chips that an autoscaler can bring the pool to. Default: only what is there."""


class ChipTotals(ApiModel):
    """Chips of the pool's nodes."""

    total: int = Field(default=0, ge=0)
    """Chips that nodes offer."""

    allocated: Annotated[int, Field(ge=0)] | None = None
    """Chips that pods request. Absent where the operator may see the pods of some namespaces only."""

    free: Annotated[int, Field(ge=0)] | None = None
    """Chips that nobody requests. Absent as `allocated` is."""


MAX_LINKS: Final = 16


class MeasuredLink(ApiModel):
    """How fast chips of one node add up."""

    chips: int = Field(ge=2, le=MAX_CHIPS_PER_NODE)
    """How many of them."""

    gigabytes_per_second: Rate
    """Bus bandwidth of their all-reduce, GB/s in one direction."""


class Calibration(ApiModel):
    """What `rightpool calibrate` has measured last. Its own field manager writes it; the operator reads it."""

    accelerator: str = Field(min_length=1, max_length=63)
    """The pool's spec.accelerator at that time. For another one the measurement says nothing."""

    measured_at: UnixTime
    """When."""

    reason: Annotated[Reason, WORD]
    """Measured, or why the figures are not used."""

    message: str = Field(max_length=MAX_MESSAGE)
    """What was measured, or what is implausible about it."""

    device: str = Field(max_length=253)
    """The chip's name, as the program saw it."""

    software: str = Field(max_length=253)
    """Framework and versions that it was measured with."""

    node: str = Field(max_length=253)
    """Where it was measured."""

    chips: int = Field(ge=1, le=MAX_CHIPS_PER_NODE)
    """How many chips the program had."""

    teraflops: Teraflops | None = None
    """Products of large matrices, 10¹² operations a second."""

    memory_gigabytes_per_second: Rate | None = None
    """What a copy on the chip reads and writes, GB/s."""

    all_reduce: Annotated[list[MeasuredLink], Field(max_length=MAX_LINKS, json_schema_extra=ATOMIC)] = Field(
        default_factory=list
    )
    """By number of chips."""


class AcceleratorPoolStatus(ApiModel):
    """What is there."""

    observed_generation: int | None = None
    """The metadata.generation that was looked at."""

    nodes: int = Field(default=0, ge=0)
    """Nodes that match."""

    chips: ChipTotals = Field(default_factory=ChipTotals)
    """Chips of these nodes."""

    outcomes: Annotated[list[MoveOutcome], Field(max_length=MAX_OUTCOMES, json_schema_extra=ATOMIC)] = Field(
        default_factory=list
    )
    """How the last moves to the pool ended. They stand until newer ones take their place."""

    prices: Annotated[list[PastPrice], Field(max_length=MAX_PRICES, json_schema_extra=ATOMIC)] = Field(
        default_factory=list
    )
    """What a chip has cost, the newest last. What differs by less than 5% is the same price. The same one twice:
    another one between them was taken back within five minutes."""

    spot_uses: Annotated[list[SpotUse], Field(max_length=MAX_SPOT_USES, json_schema_extra=ATOMIC)] = Field(
        default_factory=list
    )
    """What jobs have met on its spot capacity, by namespace. How often jobs are interrupted there follows from it."""

    calibration: Calibration | None = None
    """What its chips were measured to do. It overrides the catalog and spec.chip."""

    conditions: list[Condition] = Field(default_factory=list, max_length=8, json_schema_extra=LIST_OF_CONDITIONS)
    """Ready, PriceKnown, FiguresVerified, Calibrated, Trusted."""

"""How many chips a ProfiledJob can use: spec.elasticity."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import ConfigDict, Field

from rightpool.api.choices import Batch, ModelState
from rightpool.api.model import ATOMIC, ApiModel
from rightpool.api.rules import Rule, validations

MAX_CHIPS: Final = 65536
MAX_CHIP_COUNTS: Final = 64
MAX_DEGREE: Final = 256

ChipCount = Annotated[int, Field(ge=1, le=MAX_CHIPS)]


class ModelParallel(ApiModel):
    """How the program divides the model: tensor × pipeline chips hold it together, and each such group works on samples
    of its own."""

    tensor: int = Field(default=1, ge=1, le=MAX_DEGREE)
    """Chips that share the matrices of a layer. They are kept on one fast link: in one pod, or in one slice."""

    pipeline: int = Field(default=1, ge=1, le=MAX_DEGREE)
    """Stages of layers."""


_GROUP: Final = "self.modelParallel.tensor * self.modelParallel.pipeline"


def _multiple(field: str, holds: str) -> Rule:
    return Rule(
        f"!has(self.modelParallel) || !has(self.{field}) || {holds}",
        "must be a multiple of modelParallel.tensor times modelParallel.pipeline: change one of them",
        field=f".{field}",
    )


class Elasticity(ApiModel):
    """How many chips the job can use. Without it the size is fixed: the pods and chips that the workload asks for."""

    model_config = ConfigDict(
        json_schema_extra=validations(
            Rule(
                "!has(self.minChips) || !has(self.maxChips) || self.minChips <= self.maxChips",
                "must not exceed maxChips: lower minChips or raise maxChips",
                field=".minChips",
            ),
            Rule(
                "!has(self.chipCounts) || self.chipCounts.all(n, (!has(self.minChips) || n >= self.minChips) && "
                "(!has(self.maxChips) || n <= self.maxChips))",
                "must lie between minChips and maxChips: remove the counts outside or widen the bounds",
                field=".chipCounts",
            ),
            _multiple("minChips", f"self.minChips % ({_GROUP}) == 0"),
            _multiple("maxChips", f"self.maxChips % ({_GROUP}) == 0"),
            _multiple("chipCounts", f"self.chipCounts.all(n, n % ({_GROUP}) == 0)"),
        )
    )

    min_chips: ChipCount | None = None
    """The fewest chips that the job runs on. Default: the smallest of `chipCounts`, else the chips asked for."""

    max_chips: ChipCount | None = None
    """The most chips that the job runs on. Default: the largest of `chipCounts`, else the chips asked for."""

    chip_counts: tuple[ChipCount, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=MAX_CHIP_COUNTS,
        json_schema_extra={
            **ATOMIC,
            **validations(
                Rule(
                    "self.isSorted() && self.all(n, self.exists_one(m, m == n))",
                    "must ascend without repeats: write [1, 2, 4, 8]",
                )
            ),
        },
    )
    """The only chip counts that the program can run on, ascending. Default: powers of two that the pool can give."""

    batch: Batch | None = None
    """What happens to the batch when the number of chips changes. PerChip: the global batch grows with the chips.
    Global: it stays, and each chip's share shrinks. Needed where `minChips` and `maxChips` differ."""

    model_parallel: ModelParallel | None = None
    """How the model is divided over chips, where it is. Every size is then a multiple of tensor × pipeline chips.
    Default: as the profiler sees it, and any sizes."""

    state: ModelState = ModelState.SHARDED
    """How weights and optimizer state lie on the chips. Sharded: split over them, or not known; on fewer chips each may
    need as much more memory, unless the profiler sees that nothing is split. Replicated: each chip holds all of it, as
    with DistributedDataParallel. With `modelParallel` what each group holds stays as it is, and only what the profiler
    sees to be sharded over the groups counts."""

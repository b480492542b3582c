"""The profile of a run, as `rightpool bench` writes and reads it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.alias_generators import to_camel

from rightpool.api.traits import ModelTraits
from rightpool.api.wording import number
from rightpool.api.work_unit import WorkUnit
from rightpool.cli.typed_file import read_typed

_FINITE: Final = ConfigDict(alias_generator=to_camel, populate_by_name=True, extra="forbid", allow_inf_nan=False)
_Share = Annotated[float, Field(ge=0.0, le=1.0)]
_Amount = Annotated[float, Field(ge=0.0)]


@dataclass(frozen=True, slots=True)
class BenchProfile:
    """What a program did on one machine. What was not measured is None."""

    __pydantic_config__ = _FINITE

    kind: Literal["BenchProfile"]
    """What the file is."""
    name: str
    """What was measured."""
    at: str
    """When the program began, ISO 8601."""
    commit: str | None
    """Of the repository that it ran in; with -dirty where files had changed."""
    command: tuple[str, ...]
    """The program with its arguments."""
    chip: str
    """As the driver calls it; of a machine without GPUs its processor."""
    accelerator: str | None
    """Key of the chip in the catalog; None where that does not have it."""
    chips: Annotated[int, Field(ge=1)]
    """How many."""
    unit: WorkUnit
    """What rates count."""
    rate: Annotated[float, Field(gt=0.0)]
    """Units a second, over the measured time, less what others took of it."""
    taken_by_others: _Share | None
    """Of the measured time, in which it waited for cores that others had; None of a program that computes on GPUs."""
    windows: Annotated[tuple[_Amount, ...], Field(min_length=3)]
    """The same in equal parts of it, one after the other."""
    runs: Annotated[tuple[_Amount, ...], Field(min_length=1)]
    """The same of each time that it was run, in order."""
    session: str
    """The same of two programs whose runs took turns; empty where none did."""
    window_seconds: Annotated[float, Field(gt=0.0)]
    """How long such a part is."""
    warm_up_seconds: _Amount
    """From the program's start until it was measured."""
    bottleneck: str
    """What limits it."""
    finding: str
    """Why it is said to."""
    lever: str
    """What helps; empty where nothing is known to."""
    shares: dict[str, _Share]
    """Of a step, less that, by what chips do in it: wait for `input`, in `saving`, for the `host`, in `communication`,
    or work on the `chip`. Empty where they are not known."""
    flops_utilization: _Share | None
    """Model FLOPs utilization."""
    memory_bytes: _Amount | None
    """The most that was in use on a chip; of a machine without GPUs by the program."""
    joules_per_unit: _Amount | None
    """Energy of all chips."""
    step_p99_seconds: _Amount | None
    """Within which 99 of 100 steps ended, rounded up to 1, 2 or 5 of a power of ten."""
    model: ModelTraits
    """What the program says of its model."""
    readings: dict[str, float]
    """All that was measured, by the names of a ProfiledJob's status."""

    def to_wire(self) -> dict[str, Any]:
        """As JSON has it."""
        wire: dict[str, Any] = TypeAdapter(type(self)).dump_python(self, mode="json", by_alias=True)
        return wire

    def text(self) -> str:
        """One sentence."""
        return f"{number(self.rate)} {self.unit.value.lower()}/s on {self.chip}, {self.bottleneck}: {self.finding}"


def read_profile(path: Path) -> BenchProfile:
    """What `bench run` wrote. Raises FileProblem."""
    return read_typed(path, BenchProfile, "profile of `bench run`")

"""What a program says of its model: facts that a prediction needs and no counter of a chip shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import Field

from rightpool.api.altered import altered
from rightpool.api.record import INLINE, Record
from rightpool.api.units import Quantity
from rightpool.api.value_object import value_object
from rightpool.contract import MODEL_DEGREES, MODEL_PRECISIONS

# Beyond these no model is measured; the page of a pod is untrusted.
_MOST: Final = 1e15
_MOST_FLOPS: Final = 1e27
_MOST_PROCESSES: Final = 1_000_000


@value_object
class Parallelism(Record):
    """Degrees of parallelism over the processes of the job. None where the program does not say."""

    data: Annotated[int | None, Field(alias="dataParallel")] = None
    """Groups of processes with batches of their own."""  # sharded ones included (DDP, FSDP)

    sharded: int | None = None
    """Processes over which parameters and optimizer state are divided."""  # FSDP, ZeRO; 1 where each holds all

    tensor: Annotated[int | None, Field(alias="tensorParallel")] = None
    """Processes that share the matrices of a layer."""

    pipeline: Annotated[int | None, Field(alias="pipelineParallel")] = None
    """Stages of layers."""


@value_object
class ModelTraits(Record):
    """What the program says of its model. What it does not say is absent."""

    # Of autocast, else that of the parameters; fp32 on units that are switched to it is tf32.
    precision: str | None = None
    """Arithmetic of its matrix multiplications: fp64, fp32, tf32, bf16, fp16, fp8 or int8."""

    parameter_dtype: str | None = None
    """How its parameters are stored, in the same words."""

    # Of the whole model, whatever it is divided over, as the bytes below are.
    parameters: int | None = None
    """Parameters that are trained."""

    # Gradients of them are what replicas sum.
    parameter_bytes: int | None = None
    """Memory that these take, bytes."""

    # Adapters are part of it. A status leaves it out where it is parameter_bytes.
    model_bytes: int | None = None
    """Memory that all parameters take, those included that are not trained (a frozen base), bytes. Absent where all
    are trained."""

    batch: int | None = None
    """Samples of one optimizer step, all replicas together."""

    step_flops: Quantity | None = None
    """Floating-point operations of the matrix products of one optimizer step, all replicas together, as counted in the
    program."""

    parallelism: Annotated[Parallelism, INLINE] = Parallelism()
    """How the work is divided."""

    def over(self, other: ModelTraits) -> ModelTraits:
        """These, and those of the other where these are unknown."""
        mine = {name: value for name in _NAMES if (value := getattr(self, name)) is not None}
        degrees = {name: value for name in MODEL_DEGREES if (value := getattr(self.parallelism, name)) is not None}
        return altered(other, **mine, parallelism=altered(other.parallelism, **degrees))


UNKNOWN_TRAITS: Final = ModelTraits()

_NAMES: Final = ("precision", "parameter_dtype", "parameters", "parameter_bytes", "model_bytes", "batch", "step_flops")


def traits_of(words: Mapping[str, str], numbers: Mapping[str, float]) -> ModelTraits:
    """The traits among what an untrusted source says, by the names of the fields (degrees by theirs); what can't be is
    unknown."""
    precision, dtype = words.get("precision"), words.get("parameter_dtype")
    degrees = {name: _whole(numbers.get(name), _MOST_PROCESSES) for name in MODEL_DEGREES}
    return ModelTraits(
        precision=precision if precision in MODEL_PRECISIONS else None,
        parameter_dtype=dtype if dtype in MODEL_PRECISIONS else None,
        parameters=_whole(numbers.get("parameters"), _MOST),
        parameter_bytes=_whole(numbers.get("parameter_bytes"), _MOST),
        model_bytes=_whole(numbers.get("model_bytes"), _MOST),
        batch=_whole(numbers.get("batch"), _MOST),
        step_flops=flops if (flops := numbers.get("step_flops")) is not None and 1.0 <= flops <= _MOST_FLOPS else None,
        parallelism=Parallelism(**degrees),
    )


def _whole(value: float | None, most: float) -> int | None:
    return int(value) if value is not None and 1.0 <= value <= most else None

"""What a program says of its model: facts that a prediction needs and no counter of a chip shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

PRECISIONS: Final = ("fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8")
"""Names of arithmetic, as in the catalog's `peak_flops`."""

# Beyond these no model is measured; the page of a pod is untrusted.
_MOST: Final = 1e15
_MOST_FLOPS: Final = 1e27
_MOST_PROCESSES: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Parallelism:
    """Degrees of parallelism over the processes of the job. None where the program does not say."""

    data: int | None = None
    """Groups of processes with batches of their own, sharded ones included (DDP, FSDP)."""

    sharded: int | None = None
    """Processes over which parameters and optimizer state are divided (FSDP, ZeRO); 1 where each holds all."""

    tensor: int | None = None
    """Processes that share the matrices of a layer."""

    pipeline: int | None = None
    """Stages of layers."""


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What is known of the model that a job trains. A trait that is not known is None."""

    precision: str | None = None
    """Arithmetic of the matrix multiplications, one of PRECISIONS: the autocast dtype, else that of the parameters;
    fp32 on units that are switched to it is tf32."""

    parameter_dtype: str | None = None
    """How parameters are stored, one of PRECISIONS."""

    parameters: int | None = None
    """Parameters that are trained, of the whole model, whatever it is divided over."""

    parameter_bytes: int | None = None
    """Memory that these take, bytes. Gradients of them are what replicas sum."""

    model_bytes: int | None = None
    """Memory that all parameters of the whole model take, bytes: a frozen base is part of it, and its adapters are."""

    batch: int | None = None
    """Samples of one optimizer step, all processes together."""

    parallelism: Parallelism = Parallelism()
    """How the work is divided."""

    step_flops: float | None = None
    """Floating-point operations of the matrix products of one optimizer step, all processes together."""

    def over(self, other: ModelTraits) -> ModelTraits:
        """These, and those of the other where these are unknown."""
        mine = {name: value for name in _NAMES if (value := getattr(self, name)) is not None}
        degrees = {name: value for name in _DEGREES if (value := getattr(self.parallelism, name)) is not None}
        return replace(other, **mine, parallelism=replace(other.parallelism, **degrees))


UNKNOWN_TRAITS: Final = ModelTraits()

_NAMES: Final = ("precision", "parameter_dtype", "parameters", "parameter_bytes", "model_bytes", "batch", "step_flops")
_DEGREES: Final = ("data", "sharded", "tensor", "pipeline")


def traits_of(words: Mapping[str, str], numbers: Mapping[str, float]) -> ModelTraits:
    """The traits among what an untrusted source says, by the names of the fields (degrees by theirs); what can't be is
    unknown."""
    precision, dtype = words.get("precision"), words.get("parameter_dtype")
    degrees = {name: _whole(numbers.get(name), _MOST_PROCESSES) for name in _DEGREES}
    return ModelTraits(
        precision=precision if precision in PRECISIONS else None,
        parameter_dtype=dtype if dtype in PRECISIONS else None,
        parameters=_whole(numbers.get("parameters"), _MOST),
        parameter_bytes=_whole(numbers.get("parameter_bytes"), _MOST),
        model_bytes=_whole(numbers.get("model_bytes"), _MOST),
        batch=_whole(numbers.get("batch"), _MOST),
        step_flops=flops if (flops := numbers.get("step_flops")) is not None and 1.0 <= flops <= _MOST_FLOPS else None,
        parallelism=Parallelism(**degrees),
    )


def _whole(value: float | None, most: float) -> int | None:
    return int(value) if value is not None and 1.0 <= value <= most else None

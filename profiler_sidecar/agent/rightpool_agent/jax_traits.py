"""What a JAX program says of its model: the arithmetic of its matrix products, by the jaxpr of its step.

What single-precision products are computed in depends on the hardware. TPUs use bf16 unless the program asks for more,
as JAX documents it. GPUs with units for it use TF32 unless the highest precision is asked for: on an H100, JAX 0.11.2
reached 447 TFLOP/s by default, 444 with "high" and 52 with "highest".
A kernel that the program brings itself (Pallas, a foreign call) shows no product; where such ones do most of the work,
what is told here is that of the rest.
"""

from __future__ import annotations

import sys
from typing import Any

from .steps import StepLog

_MAX_EQUATIONS = 200_000
_OWN_KERNELS = ("pallas_call",)  # what they hold is one block's share of the work
_MOST = 0.5  # of all FLOPs: that much is done in what is named
_NAMES = {
    "float64": "fp64",
    "float32": "fp32",
    "bfloat16": "bf16",
    "float16": "fp16",
    "int8": "int8",
    "uint8": "int8",
}
_ALGORITHMS = {
    "TF32_TF32_F32": "tf32",
    "BF16_BF16_F32": "bf16",
    "BF16_BF16_BF16": "bf16",
    "F16_F16_F32": "fp16",
    "F16_F16_F16": "fp16",
    "F32_F32_F32": "fp32",
    "F64_F64_F64": "fp64",
    "ANY_F8_ANY_F8_F32": "fp8",
    "ANY_F8_ANY_F8_F32_FAST_ACCUM": "fp8",
    "ANY_F8_ANY_F8_ANY": "fp8",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM": "fp8",
}

Products = dict[Any, float]  # (dtype, precision asked for) → FLOPs of a call

_log: StepLog | None = None


def install(log: StepLog) -> None:
    """log: of the steps, whose tracks say what they compute."""
    global _log
    _log = log


def products(closed: Any) -> Products:
    """FLOPs of the matrix products and convolutions of one call, by what they are computed in; empty where the jaxpr
    can't be read. A while loop counts as one turn."""
    found: Products = {}
    try:
        _walk(closed, 1.0, found, [_MAX_EQUATIONS])
    except Exception:
        return {}
    return found


def _walk(closed: Any, times: float, found: Products, left: list[int]) -> None:
    jaxpr = getattr(closed, "jaxpr", closed)
    for equation in jaxpr.eqns:
        left[0] -= 1
        if left[0] <= 0:
            raise OverflowError
        name, params = equation.primitive.name, equation.params
        if name in ("dot_general", "conv_general_dilated"):
            one, other = (variable.aval for variable in equation.invars[:2])
            flops = _of_product(one, other, params) if name == "dot_general" else _of_convolution(equation, params)
            key = str(other.dtype if one.dtype.itemsize < other.dtype.itemsize else one.dtype), _asked(params)
            found[key] = found.get(key, 0.0) + times * flops
        elif name not in _OWN_KERNELS:
            turns = times * float(params["length"]) if name == "scan" else times
            for value in params.values():
                for inner in value if isinstance(value, (list, tuple)) else (value,):
                    if hasattr(getattr(inner, "jaxpr", inner), "eqns"):
                        _walk(inner, turns, found, left)


def _of_product(one: Any, other: Any, params: Any) -> float:
    (_, contracted), (_, batched) = params["dimension_numbers"]
    flops = 2.0
    for length in one.shape:
        flops *= length
    for axis, length in enumerate(other.shape):
        if axis not in contracted and axis not in batched:
            flops *= length
    return flops


def _of_convolution(equation: Any, params: Any) -> float:
    kernel = equation.invars[1].aval.shape
    features = kernel[params["dimension_numbers"].rhs_spec[0]]
    flops = 2.0 / max(features, 1)
    for length in (*equation.outvars[0].aval.shape, *kernel):
        flops *= length
    return flops


def _asked(params: Any) -> str:
    """The precision that the program asks for; an empty string where it leaves it to the hardware."""
    asked = params.get("precision")
    if isinstance(asked, tuple):
        asked = asked[0] if asked[0] == asked[1] else "mixed"
    word = str(asked).rpartition(".")[2].upper()
    return "" if word in ("NONE", "DEFAULT") else word


def precision(found: Products, platform: str | None, capability: float | None) -> str | None:
    """The arithmetic in which most of these FLOPs are done; None where it can't be told.

    capability: of an NVIDIA chip, such as 9.0; None of other chips.
    """
    shares: dict[str | None, float] = {}
    for (dtype, asked), flops in found.items():
        name = _arithmetic(dtype, asked, platform, capability)
        shares[name] = shares.get(name, 0.0) + flops
    if not shares:
        return None
    best = max(shares, key=lambda name: shares[name])
    return best if shares[best] > _MOST * sum(shares.values()) else None


def _arithmetic(dtype: str, asked: str, platform: str | None, capability: float | None) -> str | None:
    if asked in _ALGORITHMS:
        return _ALGORITHMS[asked]
    if dtype.startswith("float8"):
        return "fp8"
    if dtype != "float32":
        return _NAMES.get(dtype)
    if platform is None:
        return None
    if asked == "HIGHEST" or platform == "cpu":
        return "fp32"
    if platform == "tpu":
        return None if asked else "bf16"  # more than the default is several passes of bf16
    return "tf32" if capability is not None and capability >= 8.0 else "fp32"


def facts() -> dict[str, Any]:
    """`model`: what is known of the program's step. Called by the agent's thread."""
    step = None if _log is None else _log.dominant
    if step is None:
        return {}
    name = precision(step.products, *_chip())
    return {} if name is None else {"model": {"precision": name}}


def _chip() -> tuple[str | None, float | None]:
    """Platform of the program's chips, and compute capability of those of NVIDIA."""
    platform: str | None = None
    try:
        backends = list(sys.modules["jax._src.xla_bridge"]._backends.values())
        backend = next((one for one in backends if one.platform != "cpu"), *backends[:1])
        platform = str(backend.platform)
        return platform, float(backend.local_devices()[0].compute_capability)
    except Exception:
        return platform, None

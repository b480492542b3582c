"""What a JAX program says of its model: the matrix products of its step, by its jaxpr: their arithmetic and FLOPs.

What single-precision products are computed in depends on the hardware. TPUs use bf16 unless the program asks for more,
as JAX documents it. GPUs with units for it use TF32 unless the highest precision is asked for: on an H100, JAX 0.11.2
reached 447 TFLOP/s by default, 444 with "high" and 52 with "highest".
A kernel that the program brings itself (Pallas, a foreign call) shows no product; where such ones do most of the work,
what is told here is that of the rest.

FLOPs are those of the matrix products and convolutions that the program writes, as is usual for the utilization of a
model's FLOPs. They are told only where all are counted: a while loop turns nobody knows how often, branches may differ,
a kernel of the program's own and a solver show no product, what is mapped over devices (`shard_map`, `pmap`) shows the
share of one, and recomputed activations (`jax.checkpoint`) are work of the chip and not of the model.
"""

from __future__ import annotations

import itertools
import sys
from typing import Any

from . import jaxprs
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

# Primitives that hold a jaxpr and run it once.
_CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr")
_REMAT = ("remat", "remat2", "checkpoint")
_LOOPS = ("scan", "while", "cond")
# Beside those of `jax.lax`: they compute no products either.
_OTHERS = (
    "add_any",
    "addupdate",
    "debug_callback",
    "debug_print",
    "empty2",
    "freeze",
    "get",
    "name",
    "new_ref",
    "pvary",
    "random_bits",
    "random_clone",
    "random_fold_in",
    "random_seed",
    "random_split",
    "random_unwrap",
    "random_wrap",
    "reshard",
    "swap",
    "threefry2x32",
)
_SOLVES = ("custom_linear_solve", "fft", "ragged_dot", "ragged_dot_general")  # of `jax.lax`, with FLOPs of their own

Products = dict[Any, float]  # (dtype, precision asked for) → FLOPs of a call

_log: StepLog | None = None
_plain: set[str] = set()  # names of the primitives that compute no products


def install(log: StepLog) -> None:
    """log: of the steps, whose tracks say what they compute."""
    global _log
    _log = log


def products(closed: Any, budget: jaxprs.Budget | None = None) -> tuple[Products, bool]:
    """FLOPs of the matrix products and convolutions of one call, by what they are computed in, and whether these are
    all; empty where the jaxpr can't be read. A while loop counts as one turn, branches as the one with most."""
    walk = _Walk(budget or jaxprs.Budget(_MAX_EQUATIONS))
    try:
        walk.through(closed, 1.0)
    except Exception:
        return {}, False
    return walk.found, walk.whole


class _Walk:
    def __init__(self, budget: jaxprs.Budget) -> None:
        self.found: Products = {}
        self.whole = True
        self._budget = budget
        if not _plain:
            lax = vars(sys.modules["jax.lax"])
            names = {getattr(one, "name", "") for name, one in lax.items() if name.endswith("_p")}
            _plain.update(names.difference(_SOLVES, _LOOPS), _OTHERS, ("scan",), _CALLS, _REMAT)

    def through(self, closed: Any, times: float, asked: list[bool] | None = None) -> None:
        """asked: which outputs are used; default: all. What leads to none of those is not computed: XLA drops it."""
        jaxpr = getattr(closed, "jaxpr", closed)
        used = {
            var for var, taken in zip(jaxpr.outvars, asked or itertools.repeat(True)) if taken and _is_variable(var)
        }
        for equation in reversed(jaxpr.eqns):
            self._budget.take()
            taken = [var in used for var in equation.outvars]
            if any(taken) or equation.effects:
                used.update(filter(_is_variable, equation.invars))
                self._count(equation, times, taken)

    def _count(self, equation: Any, times: float, taken: list[bool]) -> None:
        name, params = equation.primitive.name, equation.params
        if name in ("dot_general", "conv_general_dilated"):
            self._product(equation, times)
            return
        inner = [] if name in _OWN_KERNELS else [one for value in params.values() for one in _jaxprs(value)]
        if name == "cond":
            self._branches(inner, times)
            return
        before = sum(self.found.values())
        for one in inner:
            turns = float(params["length"]) if name == "scan" else 1.0
            self.through(one, times * turns, taken if name in _CALLS else None)
        if name == "while" or (name in _REMAT and params.get("differentiated", True)):
            self.whole = self.whole and sum(self.found.values()) == before
        elif name not in _plain:
            self.whole = False

    def _product(self, equation: Any, times: float) -> None:
        one, other = (variable.aval for variable in equation.invars[:2])
        dot = equation.primitive.name == "dot_general"
        flops = _of_product(one, other, equation.params) if dot else _of_convolution(equation, equation.params)
        key = str(other.dtype if one.dtype.itemsize < other.dtype.itemsize else one.dtype), _asked(equation.params)
        self.found[key] = self.found.get(key, 0.0) + times * flops
        if "complex" in key[0]:
            self.whole = False  # a product of complex numbers is several

    def _branches(self, branches: list[Any], times: float) -> None:
        outside, most, sums = self.found, {}, set()
        for one in branches:
            self.found = {}
            self.through(one, times)
            sums.add(sum(self.found.values()))
            most = max(most, self.found, key=lambda found: sum(found.values()))
        self.found = outside
        self.whole = self.whole and len(sums) < 2
        for key, flops in most.items():
            self.found[key] = self.found.get(key, 0.0) + flops


def _is_variable(var: Any) -> bool:
    return not hasattr(var, "val")  # else it is a literal


def _jaxprs(value: Any) -> list[Any]:
    values = value if isinstance(value, (list, tuple)) else (value,)
    return [one for one in values if hasattr(getattr(one, "jaxpr", one), "eqns")]


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
    """As XLA counts them: without what is multiplied with padding, or with the zeros between the values of a
    gradient."""
    image, kernel = (variable.aval.shape for variable in equation.invars[:2])
    out = equation.outvars[0].aval.shape
    images, kernels, outs = params["dimension_numbers"]
    flops = 2.0 * out[outs[0]] * out[outs[1]] * kernel[kernels[1]]
    for axis, (low, _) in enumerate(params["padding"]):
        stride, between = params["window_strides"][axis], params["lhs_dilation"][axis]
        last = (image[images[axis + 2]] - 1) * between
        places = range(-low, -low + out[outs[axis + 2]] * stride, stride)
        offsets = [place * params["rhs_dilation"][axis] for place in range(kernel[kernels[axis + 2]])]
        flops *= sum(0 <= at + more <= last and (at + more) % between == 0 for at in places for more in offsets)
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
    # Also where a chip of NVIDIA has no tf32: it says what the program would do elsewhere.
    return "fp32" if capability is None else "tf32"


def facts() -> dict[str, Any]:
    """`model`: what is known of the program's step. Called by the agent's thread."""
    step = None if _log is None else _log.dominant
    if step is None or _log is None:
        return {}
    model = {"precision": precision(step.products, *_chip()), "step_flops": _log.flops}
    trained = _log.parameters
    if trained is not None:
        model.update(parameters=trained.count, parameter_bytes=trained.bytes, parameter_dtype=_NAMES.get(trained.dtype))
    known = {name: value for name, value in model.items() if value is not None}
    return {"model": known} if known else {}


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

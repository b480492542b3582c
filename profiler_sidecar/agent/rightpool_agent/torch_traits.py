"""What a PyTorch program says of its model: precision, parameters, and how they are divided over processes.

Optimizers are met at their steps and looked at later, on the agent's thread, which reads metadata alone: nothing here
waits for a device. What can't be told is left out. A program that multiplies in eight bits has no dtype that shows it,
so its precision is unknown (`torch_eight_bits`).
"""

from __future__ import annotations

import functools
import os
import sys
import weakref
from typing import Any

from . import torch_eight_bits, torch_flops, torch_roots

_MAX_OPTIMIZERS = 64
_LOOK_EVERY = 16  # calls of `facts`, which come once a second
_NAMES = {
    "torch.float64": "fp64",
    "torch.float32": "fp32",
    "torch.bfloat16": "bf16",
    "torch.float16": "fp16",
    "torch.float8_e4m3fn": "fp8",
    "torch.float8_e5m2": "fp8",
    "torch.int8": "int8",
}
_TENSOR_AXES = ("tp", "tensor", "model")
_PIPELINE_AXES = ("pp", "pipe", "stage")

_optimizers: dict[int, Any] = {}  # id → weak reference
_autocast: str | None = None  # the dtype of the last autocast region
_found: dict[str, Any] = {}
_calls = 0
_flops: float | None = None  # of a step, when the model was looked at
_met = 0  # optimizers at that time
_retries: int | None = None  # allocations on the device that had to free cached memory first


def install() -> None:
    """Called once, right after the program has imported torch."""
    optimizer: Any = sys.modules["torch.optim.optimizer"]
    optimizer.register_optimizer_step_post_hook(_meet)
    _wrap_autocast(sys.modules["torch.amp.autocast_mode"].autocast)
    os.register_at_fork(after_in_child=_begin_anew)


def _begin_anew() -> None:
    global _found, _calls, _flops, _met
    _optimizers.clear()
    torch_eight_bits.forget()
    _found, _calls, _flops, _met = {}, 0, None, 0


def _meet(optimizer: Any, args: Any, kwargs: Any) -> None:
    known = _optimizers.get(id(optimizer))
    if known is not None and known() is optimizer:
        return
    try:
        if known is not None or len(_optimizers) < _MAX_OPTIMIZERS:
            _optimizers[id(optimizer)] = weakref.ref(optimizer)
            torch_eight_bits.look()
    except Exception:
        pass


_meet._torchdynamo_disable = True  # type: ignore[attr-defined]  # not to be compiled into the program's graph


def _wrap_autocast(kind: Any) -> None:
    original = kind.__enter__

    @functools.wraps(original)
    def __enter__(self: Any) -> Any:
        global _autocast
        try:
            if self._enabled:
                _autocast = str(self.fast_dtype)
        except Exception:
            pass
        return original(self)

    kind.__enter__ = __enter__


def facts() -> dict[str, Any]:
    """`model`: what is known, by name; empty without an optimizer. Called by the agent's thread."""
    global _found, _calls, _retries, _flops, _met
    if not _optimizers:
        return {}
    flops, met = torch_flops.known(), len(_optimizers)
    if _calls % _LOOK_EVERY == 0 or flops != _flops or met != _met:
        _flops, _met = flops, met
        _retries = _memory_retries()
        try:
            _found = _look()
        except Exception:
            _found = {}
    _calls += 1
    found: dict[str, Any] = {"model": _found} if _found else {}
    if _retries is not None:
        found["memory_retries"] = _retries
    return found


def _memory_retries() -> int | None:
    try:
        torch: Any = sys.modules["torch"]
        if not torch.cuda.is_initialized():
            return None
        return int(torch._C._cuda_memoryStats(torch.cuda.current_device())["num_alloc_retries"])
    except Exception:
        return None


def _look() -> dict[str, Any]:
    torch: Any = sys.modules["torch"]
    given = _parameters()
    trained = [one for one, trains in given if trains]
    if not trained:
        return {}
    found: dict[str, Any] = {"parameters": 0, "parameter_bytes": 0}
    by_dtype: dict[str, int] = {}
    convolutions = 0
    for parameter in trained:
        count = _count(parameter)
        found["parameters"] += count
        found["parameter_bytes"] += count * parameter.element_size()
        by_dtype[str(parameter.dtype)] = by_dtype.get(str(parameter.dtype), 0) + count
        convolutions += count if parameter.dim() > 2 else 0
    dtype = _NAMES.get(max(by_dtype, key=lambda name: by_dtype[name]))
    if dtype is not None:
        found["parameter_dtype"] = dtype
    found["model_bytes"] = found["parameter_bytes"]
    frozen = {id(one): one for one, trains in given if not trains}
    frozen.update((id(one), one) for one in torch_roots.beside(trained))
    for one in frozen.values():  # adapters learn in fp32, the model around them computes in bf16
        count = _count(one)
        found["model_bytes"] += count * one.element_size()
        by_dtype[str(one.dtype)] = by_dtype.get(str(one.dtype), 0) + count
    most = _NAMES.get(max(by_dtype, key=lambda name: by_dtype[name]))
    precision = _precision(torch, most, trained[0].device.type, 2 * convolutions > found["parameters"])
    if precision is not None and not torch_eight_bits.possible([*trained, *frozen.values()]):
        found["precision"] = precision
    found.update(_degrees(torch, trained))
    whole = found.get("tensor") == 1 and all(one.requires_grad for one, _ in given)
    if _flops is not None and whole and not torch_roots.holds_others(trained):
        found["step_flops"] = _flops
    return found


def _parameters() -> list[tuple[Any, bool]]:
    """What the living optimizers were given, each once, and whether they train it."""
    found: dict[int, tuple[Any, bool]] = {}
    for key, reference in list(_optimizers.items()):
        optimizer = reference()
        if optimizer is None:
            _optimizers.pop(key, None)
            continue
        for group in list(optimizer.param_groups):
            for one in list(group["params"]):
                # Some are frozen for a part of a step, as those of a discriminator.
                trains = one.requires_grad or one.grad is not None or one in optimizer.state
                found[id(one)] = one, trains or found.get(id(one), (one, False))[1]
    return list(found.values())


def _count(parameter: Any) -> int:
    """Elements of the whole parameter where this process holds a part of it."""
    for name in ("_unpadded_unsharded_size", "ds_shape"):  # FSDP's flat parameter; DeepSpeed's of ZeRO 3
        size = getattr(parameter, name, None)
        if size is not None:
            return int(size.numel())
    return int(parameter.shape.numel())  # of a DTensor this is the whole


def _precision(torch: Any, dtype: str | None, device: str, convolves: bool) -> str | None:
    cast = _NAMES.get(_autocast or "")
    if cast is not None:
        return cast
    if dtype != "fp32" or device != "cuda":
        return dtype
    # Also where the chip has no tf32: it says what the program would do elsewhere.
    allowed = torch._C._get_cudnn_allow_tf32() if convolves else torch._C._get_cublas_allow_tf32()
    return "tf32" if allowed else "fp32"


def _degrees(torch: Any, parameters: list[Any]) -> dict[str, int]:
    """How the work is divided, as far as the program's process groups and meshes show it."""
    world = _world(torch)
    if world == 1:
        return {"data": 1, "sharded": 1, "tensor": 1, "pipeline": 1}
    megatron: Any = sys.modules.get("megatron.core.parallel_state")
    if megatron is not None:
        return {
            "data": int(megatron.get_data_parallel_world_size()),
            "tensor": int(megatron.get_tensor_model_parallel_world_size()),
            "pipeline": int(megatron.get_pipeline_model_parallel_world_size()),
        }
    if any(getattr(one, "_unpadded_unsharded_size", None) is not None for one in parameters):
        return {"data": world, "tensor": 1, "pipeline": 1}  # FSDP 1: a node or the world shares the shards
    if any(hasattr(one, "ds_shape") for one in parameters):
        return {"data": world, "sharded": world, "tensor": 1}
    meshes = [one for one in parameters if hasattr(one, "device_mesh") and hasattr(one, "placements")]
    if meshes:
        return _mesh(max(meshes, key=lambda one: (one.device_mesh.ndim, one.device_mesh.size())), world)
    if "torch.distributed.pipelining" in sys.modules or "deepspeed" in sys.modules:
        return {}
    return {"data": world, "sharded": 1, "tensor": 1, "pipeline": 1}


def _world(torch: Any) -> int:
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_world_size())
    return 1


def _mesh(parameter: Any, world: int) -> dict[str, int]:
    """Degrees by the mesh of a DTensor. Axes without a name divide state if FSDP is there and the mesh has one axis."""
    mesh, names = parameter.device_mesh, parameter.device_mesh.mesh_dim_names
    if names is None:
        if mesh.ndim == 1 and "torch.distributed.tensor.parallel" not in sys.modules:
            return {"data": world, "sharded": mesh.size(), "tensor": 1, "pipeline": 1}
        return {}
    found = {"sharded": 1, "tensor": 1}
    for axis, (name, placement) in enumerate(zip(names, parameter.placements)):
        if any(word in name for word in _PIPELINE_AXES):
            found["pipeline"] = mesh.size(axis)
        elif any(word in name for word in _TENSOR_AXES):
            found["tensor"] *= mesh.size(axis)
        elif placement.is_shard():
            found["sharded"] *= mesh.size(axis)
    if "torch.distributed.pipelining" not in sys.modules:
        found.setdefault("pipeline", 1)
    if "pipeline" in found:
        found["data"] = world // (found["tensor"] * found["pipeline"])
    return found

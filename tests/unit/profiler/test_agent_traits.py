"""What the agent says of a PyTorch model, by real optimizers, and nothing where it can't tell."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from rightpool_agent import (  # type: ignore[import-not-found]  # noqa: E402
    torch_eight_bits,
    torch_flops,
    torch_roots,
    torch_traits,
)

CUDA = SimpleNamespace()


@pytest.fixture(autouse=True)
def hooks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = {"_optimizers": {}, "_autocast": None, "_found": {}, "_calls": 0, "_flops": None, "_met": 0}
    for name, value in before.items():
        monkeypatch.setattr(torch_traits, name, value)
    monkeypatch.setattr(torch.amp.autocast_mode.autocast, "__enter__", torch.amp.autocast_mode.autocast.__enter__)
    handles = []
    optimizer: Any = sys.modules["torch.optim.optimizer"]
    original = optimizer.register_optimizer_step_post_hook
    monkeypatch.setattr(optimizer, "register_optimizer_step_post_hook", lambda hook: handles.append(original(hook)))
    torch_traits.install()
    torch_eight_bits.forget()
    yield
    torch_eight_bits.forget()
    for handle in handles:
        handle.remove()


def train(module: Any, context: Any = None) -> None:
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    train.kept = optimizer  # type: ignore[attr-defined]
    weight = next(module.parameters())
    batch = torch.zeros(2, 4, dtype=weight.dtype)
    if context is None:
        module(batch).sum().backward()
    else:
        with context:
            loss = module(batch).sum()
        loss.backward()
    optimizer.step()


def test_parameters_and_their_dtype() -> None:
    train(torch.nn.Linear(4, 3))
    assert torch_traits.facts()["model"] == {
        "parameters": 15,
        "parameter_bytes": 60,
        "model_bytes": 60,
        "parameter_dtype": "fp32",
        "precision": "fp32",
        "data": 1,
        "sharded": 1,
        "tensor": 1,
        "pipeline": 1,
    }


def test_autocast_is_the_precision() -> None:
    train(torch.nn.Linear(4, 3), torch.autocast("cpu", torch.bfloat16))
    found = torch_traits.facts()["model"]
    assert (found["precision"], found["parameter_dtype"]) == ("bf16", "fp32")


def test_autocast_that_is_switched_off_is_none() -> None:
    train(torch.nn.Linear(4, 3), torch.autocast("cpu", torch.bfloat16, enabled=False))
    assert torch_traits.facts()["model"]["precision"] == "fp32"


def test_parameters_in_bf16() -> None:
    train(torch.nn.Linear(4, 3).to(torch.bfloat16))
    found = torch_traits.facts()["model"]
    assert (found["precision"], found["parameter_dtype"], found["parameter_bytes"]) == ("bf16", "bf16", 30)


@pytest.mark.parametrize(("matmul", "cudnn", "convolves", "expected"), [
    (False, True, False, "fp32"),
    (True, False, False, "tf32"),
    (False, True, True, "tf32"),
    (True, False, True, "fp32"),
])  # fmt: skip
def test_tf32_switches(matmul: bool, cudnn: bool, convolves: bool, expected: str) -> None:
    switches = SimpleNamespace(_get_cublas_allow_tf32=lambda: matmul, _get_cudnn_allow_tf32=lambda: cudnn)
    fake = SimpleNamespace(**vars(CUDA), _C=switches)
    assert torch_traits._precision(fake, "fp32", "cuda", convolves) == expected
    assert torch_traits._precision(fake, "bf16", "cuda", convolves) == "bf16"
    assert torch_traits._precision(fake, "fp32", "cpu", convolves) == "fp32"


def layer_of(library: str, name: str, *bases: type) -> Any:
    return type(name, bases or (torch.nn.Linear,), {"__module__": library})


AO, TE = "torchao.float8.float8_linear", "transformer_engine.pytorch.module.linear"
EIGHT_BITS = {
    "torchao": lambda: layer_of(AO, "Float8Linear")(4, 3),
    "FSDP 2 changes its class": lambda: layer_of("torch", "FSDPLinear", layer_of(AO, "Float8Linear"))(4, 3),
    "Megatron derives from it": lambda: layer_of("megatron.core", "TELinear", layer_of(TE, "Linear"))(4, 3),
    "FSDP 1 wraps it": lambda: torch.nn.Sequential(torch.nn.Sequential(layer_of(TE, "Linear")(4, 3))),
    "the program's own": lambda: layer_of("nanochat.fp8", "Float8Linear")(4, 3),
}


@pytest.fixture
def searchable() -> Iterator[None]:
    """The tests begin with what there is frozen, which hides it."""
    gc.disable()  # so that what a test makes stays young, and is found without a look through all that was imported
    gc.unfreeze()
    yield
    grown = 2 if gc.get_freeze_count() else 0  # what the test has frozen is old afterwards
    gc.unfreeze()
    gc.collect(grown)  # the classes
    gc.freeze()
    gc.enable()


@pytest.mark.usefixtures("searchable")
@pytest.mark.parametrize("make", EIGHT_BITS.values(), ids=EIGHT_BITS)
def test_a_layer_that_multiplies_in_eight_bits_leaves_the_precision_open(make: Any) -> None:
    train(make(), torch.autocast("cpu", torch.bfloat16))
    assert "precision" not in torch_traits.facts()["model"]


@pytest.mark.usefixtures("searchable")
def test_a_library_of_eight_bits_that_is_merely_imported_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As torchao's quantization imports its float8, which torchtune and the Trainer import."""
    for library in ("torchao.float8", "transformer_engine.pytorch"):
        monkeypatch.setitem(sys.modules, library, SimpleNamespace())
    unused = layer_of(AO, "Float8Linear")
    train(torch.nn.Linear(4, 3), torch.autocast("cpu", torch.bfloat16))
    assert torch_traits.facts()["model"]["precision"] == "bf16"
    del unused


@pytest.mark.usefixtures("searchable")
def test_modules_that_are_hidden_from_the_search_leave_the_precision_open() -> None:
    """A program may freeze what there is, so that the collector of garbage passes it by."""
    module = layer_of(AO, "Float8Linear")(4, 3)
    gc.freeze()
    train(module)
    assert "precision" not in torch_traits.facts()["model"]


@pytest.mark.parametrize("divided", [False, True], ids=["whole", "a part of each in each process"])
def test_weights_of_a_library_s_own_kind_leave_the_precision_open(divided: bool) -> None:
    module = torch.nn.Linear(4, 3)
    train(module)
    local = torch.zeros(1)
    if divided:
        module.weight._local_tensor = local
    held = local if divided else module.weight
    held.__class__ = type("Weights", (type(held),), {"__module__": "torchao.prototype"})
    assert "precision" not in torch_traits.facts()["model"]


@pytest.mark.usefixtures("searchable")
def test_modules_are_not_searched_for_again_and_again() -> None:
    """A program that makes an optimizer for each of many trainings, beside a class of such layers."""
    unused, models = layer_of(AO, "Float8Linear"), []
    for _ in range(9):
        models.append(torch.nn.Linear(4, 3))
        train(models[-1])
        models.append(train.kept)  # type: ignore[attr-defined]
        known = "precision" in torch_traits._look()
        assert known is (len(models) <= 16)
    torch_traits._begin_anew()
    train(models[0])
    assert torch_traits.facts()["model"]["precision"] == "fp32", "in a forked child"
    del unused


@pytest.mark.parametrize("beside", [False, True], ids=["all are trained", "a teacher beside it"])
def test_flops_are_those_of_a_model_that_is_trained_as_a_whole(monkeypatch: pytest.MonkeyPatch, beside: bool) -> None:
    """A teacher's passes have no gradients, and are part of the step."""
    monkeypatch.setattr(torch_roots, "_owners", {})
    monkeypatch.setattr(torch_flops, "_read", [900.0, 900.0])
    module, teacher = torch.nn.Linear(4, 3), torch.nn.Linear(4, 3)
    for one in (module, teacher) if beside else (module,):
        torch_roots._owners.update((id(part), [weakref.ref(part), weakref.ref(one)]) for part in one.parameters())
    train(module)
    assert torch_traits.facts()["model"].get("step_flops") == (None if beside else 900.0)


class Adapted(torch.nn.Module):  # type: ignore[misc]
    """A layer in bf16 that stays as it is, and a small one in fp32 that learns, as PEFT makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.base = torch.nn.Linear(64, 64, dtype=torch.bfloat16).requires_grad_(False)
        self.learns = torch.nn.Linear(64, 2)

    def forward(self, x: Any) -> Any:
        return self.base(x).sum() + self.learns(x.float()).sum()


def test_what_does_not_learn_computes_too() -> None:
    module = Adapted()
    optimizer = torch.optim.SGD(module.learns.parameters(), lr=0.1)
    torch_roots.watch(list(module.learns.parameters()))
    module(torch.zeros(2, 64, dtype=torch.bfloat16)).backward()
    optimizer.step()
    found = torch_traits.facts()["model"]
    assert (found["precision"], found["parameter_dtype"], found["parameters"]) == ("bf16", "fp32", 130)


def lora(given: str) -> dict[str, Any]:
    """What is said of a frozen layer with adapters of a hundredth of it, trained by an optimizer of those or of all."""
    module = torch.nn.Sequential(torch.nn.Linear(2000, 100, bias=False), torch.nn.Linear(100, 20, bias=False))
    module[0].requires_grad_(False)
    optimizer = torch.optim.AdamW((module if given == "all" else module[1]).parameters())
    torch_roots.watch([one for group in optimizer.param_groups for one in group["params"]])
    module(torch.zeros(2, 2000)).sum().backward()
    optimizer.step()
    return dict(torch_traits.facts()["model"])


@pytest.mark.parametrize("given", ["all", "adapters"])
def test_a_frozen_base_is_held_and_not_trained(given: str) -> None:
    found = lora(given)
    assert (found["parameters"], found["parameter_bytes"]) == (2_000, 8_000)
    assert found["model_bytes"] == 808_000


def test_what_is_frozen_for_a_part_of_a_step_is_trained() -> None:
    module = torch.nn.Linear(4, 3)
    train(module)
    module.requires_grad_(False)
    assert torch_traits.facts()["model"]["parameters"] == 15


def test_another_optimizer_is_told_at_once() -> None:
    train(torch.nn.Linear(4, 3))
    assert torch_traits.facts()["model"]["parameters"] == 15
    first = train.kept  # type: ignore[attr-defined]
    train(torch.nn.Linear(4, 2))
    assert (torch_traits.facts()["model"]["parameters"], first.defaults["lr"]) == (25, 0.1)


def test_an_optimizer_that_ended_counts_no_more() -> None:
    train(torch.nn.Linear(4, 3))
    assert torch_traits.facts()["model"]["parameters"] == 15
    train.kept = None  # type: ignore[attr-defined]
    torch_traits._calls = 0
    assert torch_traits.facts() == {}


class Mesh:
    def __init__(self, sizes: tuple[int, ...], names: tuple[str, ...] | None) -> None:
        self._sizes, self.mesh_dim_names, self.ndim = sizes, names, len(sizes)

    def size(self, axis: int | None = None) -> int:
        if axis is not None:
            return self._sizes[axis]
        product = 1
        for size in self._sizes:
            product *= size
        return product


def sharded(mesh: Mesh, *shards: bool) -> Any:
    return SimpleNamespace(
        device_mesh=mesh, placements=[SimpleNamespace(is_shard=lambda shard=shard: shard) for shard in shards]
    )


@pytest.mark.parametrize(("sizes", "names", "shards", "world", "expected"), [
    ((8,), None, (True,), 8, {"data": 8, "sharded": 8, "tensor": 1, "pipeline": 1}),
    ((4, 2), ("dp", "tp"), (True, True), 8, {"data": 4, "sharded": 4, "tensor": 2, "pipeline": 1}),
    ((2, 4), ("replicate", "shard"), (False, True), 8, {"data": 8, "sharded": 4, "tensor": 1, "pipeline": 1}),
    ((4, 2), None, (True, True), 8, {}),
])  # fmt: skip
def test_degrees_by_the_mesh(
    sizes: tuple[int, ...], names: tuple[str, ...] | None, shards: tuple[bool, ...], world: int,
    expected: dict[str, int], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for module in ("torch.distributed.tensor.parallel", "torch.distributed.pipelining"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    assert torch_traits._mesh(sharded(Mesh(sizes, names), *shards), world) == expected

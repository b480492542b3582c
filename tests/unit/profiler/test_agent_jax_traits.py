"""The arithmetic of a JAX program, by jaxprs that JAX itself makes, and nothing where it can't be told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

jax = pytest.importorskip("jax")
from rightpool_agent import jax_traits  # type: ignore[import-not-found]  # noqa: E402

jnp = jax.numpy
ONE, OTHER = jnp.zeros((8, 16)), jnp.zeros((16, 4))
FLOPS = 2.0 * 8 * 16 * 4
IMAGE, KERNEL = jnp.zeros((2, 8, 8, 3)), jnp.zeros((3, 3, 3, 6))


def products(function: Callable[..., Any], *arguments: Any) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = jax_traits.products(jax.make_jaxpr(function)(*arguments))[0]
    return found


def flops(function: Callable[..., Any], *arguments: Any) -> float | None:
    """FLOPs where all are counted."""
    found, whole = jax_traits.products(jax.make_jaxpr(function)(*arguments))
    return sum(found.values()) if whole else None


def convolved(image: Any, kernel: Any) -> Any:
    return jax.lax.conv_general_dilated(image, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda a, b: a @ b, FLOPS),
        (lambda a, b: jax.grad(lambda a: (a @ b).sum())(a), FLOPS),
        (lambda a, b: jax.value_and_grad(lambda a: ((a @ b) ** 2).sum())(a), 2 * FLOPS),
        (lambda a, b: jax.lax.scan(lambda carry, _: (carry, carry @ b), a, None, length=5), 5 * FLOPS),
        (lambda a, b: jax.vmap(lambda row: row @ b)(a), FLOPS),
        (lambda a, b: jax.checkpoint(lambda a: jnp.sin(a @ b))(a), FLOPS),
        (jax.jit(lambda a, b: jax.jit(jnp.dot)(a, b) + 1.0), FLOPS),
        (lambda a, b: a.sum() + b.sum(), None),
    ],
    ids=["product", "gradient alone", "gradient", "scan", "vmap", "checkpoint", "jit in jit", "none"],
)
def test_flops_are_counted(function: Callable[..., Any], expected: float | None) -> None:
    found = products(function, ONE, OTHER)
    assert found == ({} if expected is None else {("float32", ""): expected})
    assert flops(function, ONE, OTHER) == (expected or 0.0)


def spun(a: Any, b: Any) -> Any:
    return jax.lax.while_loop(lambda value: value.sum() < 3.0, lambda value: value @ b @ b.T, a)


def chosen(a: Any, b: Any) -> Any:
    return jax.lax.cond(a.sum() > 0.0, lambda: a @ b, lambda: jnp.zeros((8, 4), a.dtype))


def mapped(a: Any, b: Any) -> Any:
    mesh = jax.make_mesh((1,), ("x",))
    rows = jax.sharding.PartitionSpec(None, None)
    return jax.shard_map(lambda a, b: a @ b, mesh=mesh, in_specs=(rows, rows), out_specs=rows, check_vma=False)(a, b)


@pytest.mark.parametrize(
    "function",
    [
        spun,
        chosen,
        mapped,
        lambda a, b: jax.grad(lambda a: jax.checkpoint(lambda a: jnp.sin(a @ b) @ b.T)(a).sum())(a),
        lambda a, b: jnp.linalg.solve(a @ a.T, a @ b),
        lambda a, b: (a @ b).astype(complex) @ b.T.astype(complex),
        lambda a, b: jax.pure_callback(lambda a, b: a @ b, jax.ShapeDtypeStruct((8, 4), jnp.float32), a, b),
    ],
    ids=["while", "branches", "shard_map", "recomputed", "solver", "complex", "callback"],
)
def test_flops_are_absent_where_not_all_can_be_counted(function: Callable[..., Any]) -> None:
    assert flops(function, ONE, OTHER) is None


def test_loops_of_known_length_and_like_branches_are_counted() -> None:
    assert flops(lambda a, b: jax.lax.fori_loop(0, 5, lambda _, value: value @ b @ b.T, a), ONE, OTHER) == 10 * FLOPS
    assert flops(lambda a, b: jax.lax.cond(a.sum() > 0.0, lambda: a @ b, lambda: -a @ b), ONE, OTHER) == FLOPS


@given(
    st.integers(1, 3),
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 2),
    st.sampled_from(["SAME", "VALID"]),
    st.sampled_from([1, 2]),
)
def test_convolutions_and_their_gradients_are_counted_as_xla_does(
    batch: int, size: int, window: int, stride: int, dilation: int, padding: str, groups: int
) -> None:
    def forward(image: Any, kernel: Any) -> Any:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_general_dilated(
            image, kernel, (stride, 1), padding, rhs_dilation=(dilation, 1), dimension_numbers=numbers,
            feature_group_count=groups,
        )  # fmt: skip

    image, kernel = jnp.zeros((batch, size, 5, 4)), jnp.zeros((window, 2, 4 // groups, 6))
    out, back = jax.vjp(forward, image, kernel)
    own, both = flops(forward, image, kernel), flops(back, out)
    assert own == (jax.jit(forward).lower(image, kernel).cost_analysis() or {}).get("flops", 0.0)
    assert both == 2 * own


def test_what_is_no_jaxpr_has_no_products() -> None:
    assert jax_traits.products(None) == ({}, False) == jax_traits.products("jaxpr")


@pytest.mark.parametrize(
    ("asked", "cpu", "ampere", "volta", "tpu"),
    [
        (None, "fp32", "tf32", "tf32", "bf16"),
        ("default", "fp32", "tf32", "tf32", "bf16"),
        ("tensorfloat32", "fp32", "tf32", "tf32", None),
        ("float32", "fp32", "fp32", "fp32", "fp32"),
        ("BF16_BF16_F32", "bf16", "bf16", "bf16", "bf16"),
        ("TF32_TF32_F32", "tf32", "tf32", "tf32", "tf32"),
        ("F32_F32_F32", "fp32", "fp32", "fp32", "fp32"),
    ],
)
def test_single_precision_is_what_the_program_allows(
    asked: str | None, cpu: str | None, ampere: str | None, volta: str | None, tpu: str | None
) -> None:
    found = products(lambda a, b: jnp.dot(a, b, precision=asked), ONE, OTHER)
    chips = [("cpu", None), ("gpu", 8.0), ("gpu", 7.0), ("tpu", None)]
    assert [jax_traits.precision(found, *chip) for chip in chips] == [cpu, ampere, volta, tpu]


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("bfloat16", "bf16"), ("float16", "fp16"), ("float8_e4m3fn", "fp8"), ("int8", "int8"), ("int32", None)],
)
def test_other_dtypes_are_computed_in_as_they_are(dtype: str, name: str | None) -> None:
    found = products(lambda a, b: jax.lax.dot(a.astype(dtype), b.astype(dtype)), ONE, OTHER)
    assert jax_traits.precision(found, "gpu", 9.0) == name


def test_what_does_most_of_the_work_counts() -> None:
    mixed = {("bfloat16", ""): 90.0, ("float32", "HIGHEST"): 10.0}
    assert jax_traits.precision(mixed, "gpu", 9.0) == "bf16"
    assert jax_traits.precision({("bfloat16", ""): 50.0, ("float32", "HIGHEST"): 50.0}, "gpu", 9.0) is None
    assert jax_traits.precision({}, "gpu", 9.0) is None
    assert jax_traits.precision({("float32", ""): 1.0}, None, None) is None

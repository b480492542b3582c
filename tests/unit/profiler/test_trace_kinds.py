"""Kinds of operations by their names: of kernels and operations that real traces had, and as a division of all time."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rightpool import contract
from rightpool_profiler.traces.kinds import kind_of
from rightpool_profiler.traces.kineto_summary import summarise
from rightpool_profiler.traces.summary import TimeByName

# Names as PyTorch 2.11 and JAX 0.11.2 on H100s and H200s, and both on CPUs, have written them.
_NAMES = {
    contract.KIND_MATRIX: (
        "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT",
        "sm90_xmma_wgrad_indexed_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize",
        "void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_",
        "gemm_fusion_dot_general_17",
        "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64",
        "triton_tem_fused_mm_3",
        "aten::addmm",
        "aten::bmm",
        "aten::convolution",
        "dot.7",
        "dot_general.31",
        "convolution.4",
    ),
    contract.KIND_ELEMENTWISE: (
        "void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c1",
        "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(an",
        "loop_multiply_fusion_7",
        "wrapped_subtract_7",
        "wrapped_tanh",
        "triton_poi_fused_gelu_5",
        "aten::mul_",
    ),
    contract.KIND_REDUCTION: (
        "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<c10::BFloat16, at::n",
        "void at::native::batch_norm_collect_statistics_channels_last_kernel<at::native::V",
        "void at::native::(anonymous namespace)::max_pool_backward_nhwc<c10::BFloat16, flo",
        "triton_per_fused_native_layer_norm_2",
        "input_reduce_fusion_4",
        "aten::sum",
        "aten::_log_softmax",
    ),
    contract.KIND_COPY: (
        "MemcpyH2D",
        "Memcpy DtoD (Device -> Device)",
        "Memset 0",
        "memcpy128",
        "void at::native::unrolled_elementwise_kernel<at::native::direct_copy_kernel_cuda(",
        "void at::native::vectorized_elementwise_kernel<8, at::native::bfloat16_copy_kerne",
        "aten::copy_",
        "copy.1",
    ),
    contract.KIND_COMMUNICATION: (
        "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "all-reduce.4",
        "gloo:all_reduce",
        "c10d::allreduce_",
        "psum.3",
    ),
    contract.KIND_OTHER: ("my_kernel", "fusion.3", "aten::randperm", ""),
}


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in _NAMES.items() for name in names])
def test_names_of_real_operations(kind: str, name: str) -> None:
    assert kind_of(name) == kind


@given(st.lists(st.tuples(st.text(max_size=90), st.integers(0, 1000))))
def test_each_operation_is_of_one_kind(operations: list[tuple[str, int]]) -> None:
    times = TimeByName(1.0)
    for name, time in operations:
        times.add(name, time)
    found = times.by_kind().most(100, 1)
    assert {one.name for one in found} <= set(contract.TRACE_KINDS)
    assert sum(one.count for one in found) == len(operations)
    assert sum(one.share for one in found) == pytest.approx(sum(time for _, time in operations))


@pytest.mark.skipif(not os.environ.get("RIGHTPOOL_SHARED"), reason="fixtures of the shared folder")
def test_a_recorded_trace_of_a_network_of_convolutions() -> None:
    """One fifth of its time goes to kernels; few of them have names that say nothing."""
    recorded = Path(os.environ["RIGHTPOOL_SHARED"]) / "fixtures" / "kineto_h200_ddp2.json.gz"
    found = {one.name: one.share for one in summarise([gzip.decompress(recorded.read_bytes())]).kinds}
    assert found[contract.KIND_MATRIX] > 0 and found[contract.KIND_COMMUNICATION] > 0
    assert found.get(contract.KIND_OTHER, 0.0) < 0.05 * sum(found.values())

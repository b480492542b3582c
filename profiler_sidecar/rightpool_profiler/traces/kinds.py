"""What kind of work an operation is, by its name: those of CUDA's libraries, PyTorch, Triton and XLA.

Names are all that a trace has of a kernel. One that fits no pattern, such as a kernel of the program's own, is `other`.
"""

import re
from typing import Final

from rightpool import contract
from rightpool_profiler.traces.devices import COLLECTIVE, COPY

_HOST_COLLECTIVE: Final = re.compile(r"^(gloo|mpi|ucc|c10d)(:|::)")
_COPYING: Final = re.compile(
    r"_copy_ker|CatArrayBatchedCopy|transpose|concatenate|^memcpy\d|^aten::(copy_|_to_copy|clone|contiguous|cat|stack)$"
    r"|^(%?copy|dynamic-(update-)?slice)([.\-_\d]|$)",
    re.IGNORECASE,
)
_MATRIX: Final = re.compile(
    r"gemm|gemv|nvjet|cutlass|cublas|xmma|wgmma|winograd|convolution|conv[123]d|flash|fmha|attention|triton_(mm|tem|bmm)"
    r"|^aten::(_?(scaled_)?(add|ba?)?(mm|mv)|addbmm|matmul|linear|conv|dot|einsum)|(^%?|_)dot(_general)?([._\d]|$)",
    re.IGNORECASE,
)
_REDUCTION: Final = re.compile(
    r"reduc|softmax|_norm|norm_|layernorm|rmsnorm|triton_(red|per)_|pool|nll_loss|cross_entropy|cumsum|scan|topk|sort"
    r"|^aten::(sum|mean|max|min|amax|amin|argmax|norm|var|std|all|any)(_|$)",
    re.IGNORECASE,
)
_ELEMENTWISE: Final = re.compile(
    r"elementwise|pointwise|multi_tensor_apply|triton_poi_|^%?(loop_|wrapped_)|CUDAFunctor|gelu|relu|silu|sigmoid|tanh"
    r"|dropout|^aten::(add|sub|mul|div|pow|sqrt|exp|log|where|fill|zero|neg|lerp|addcmul|addcdiv|_foreach)"
    r"|^%?(add|subtract|multiply|divide|power|exponential|select|compare|convert|maximum|minimum)([._\d]|_fusion|$)",
    re.IGNORECASE,
)


def kind_of(name: str) -> str:
    """One of contract.TRACE_KINDS."""
    if COLLECTIVE.search(name) or _HOST_COLLECTIVE.search(name):
        return contract.KIND_COMMUNICATION
    for kind, pattern in (
        (contract.KIND_COPY, COPY),
        (contract.KIND_COPY, _COPYING),
        (contract.KIND_MATRIX, _MATRIX),
        (contract.KIND_REDUCTION, _REDUCTION),
        (contract.KIND_ELEMENTWISE, _ELEMENTWISE),
    ):
        if pattern.search(name):
            return kind
    return contract.KIND_OTHER

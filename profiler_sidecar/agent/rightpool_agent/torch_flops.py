"""FLOPs of a PyTorch step: those of its matrix products, convolutions and attention, by the graph of the backward pass.

Right before a backward pass the graph has a node for each operation that is differentiated, and each node knows the
shapes of its arrays. The graph is read, not changed: nothing saved in it is touched, no operation takes another way,
and nothing is compiled anew. Reading takes some microseconds a node, so it is done in a few steps only, at ever
greater distances.

An operation costs as much again for each of its operands that gets a gradient. What is computed twice to save memory
counts once. FLOPs are told only where each node is known and most of the steps that were read agree: a compiled graph,
an operation of the program's own, a recurrent layer of cuDNN's, and batches of many lengths have none. Nor have
programs with parameters that they don't train (a frozen part, a teacher, a target network): passes without gradients
are in no graph.
"""

from __future__ import annotations

from typing import Any

from . import torch_roots

_FIRST = 4  # steps until the first that is read
_MAX_NODES = 20_000
_ALIKE = 0.01
_MOST = 0.75  # of the steps that were read: so many must agree
_LEAST = 2

# Nodes of products, with the places of their operands, and those without any: PyTorch's operations, by their names.
_PRODUCTS = {"Mm": (0, 1), "Addmm": (1, 2), "Bmm": (0, 1), "Baddbmm": (1, 2), "Mv": (0, 1), "Dot": (0, 1)}
_PLAIN = """
Abs Add Addcdiv Addcmul Alias Amax Amin AdaptiveAvgPool2D AdaptiveMaxPool2D AsStrided AvgPool2D AvgPool3D
BinaryCrossEntropy BinaryCrossEntropyWithLogits Cat Clamp ClampMax ClampMin Clone ConstantPadNd Copy Cos
CudnnBatchNorm Cumsum Div Elu Embedding Erf Exp Expand Fill Flip FusedRmsNorm Gather Gelu Glu Hardsigmoid
Hardswish Hardtanh HuberLoss Index IndexAdd IndexPut IndexSelect KlDiv L1Loss LeakyRelu Lerp LinalgVectorNorm
Log Log1P LogSigmoid LogSoftmax Logsumexp MaskedFill MaskedScatter MaskedSelect Max MaxPool2DWithIndices
MaxPool3DWithIndices Maximum Mean Min Minimum MiopenBatchNorm Mish MseLoss Mul NativeBatchNorm NativeDropout
NativeGroupNorm NativeLayerNorm Neg NllLoss NllLoss2D Norm Permute PixelShuffle Pow Prelu Reciprocal
ReflectionPad2D Relu Repeat Reshape ReshapeAlias Roll Rsqrt Rsub SafeSoftmax Scatter ScatterAdd Select Selu
Sigmoid Silu Sin Slice SmoothL1Loss SoftMarginLoss Softmax Softplus Split SplitWithSizes Sqrt Squeeze Stack Std
StdMean Sub Sum T Tanh Threshold ToCopy Transpose Tril Triu Unbind Unfold Unsqueeze UnsafeSplit UnsafeView
UpsampleBilinear2D UpsampleNearest1D UpsampleNearest2D Var VarMean View ViewAs Where
"""
# Other nodes without any. The last ones are of DistributedDataParallel and of fully_shard, and pass on what they get.
_OTHERS = ("AccumulateGrad", "CopySlices", "CopyBackwards", "_DDPSinkBackward", "RegisterPostBackwardFunctionBackward")

_plain = frozenset(_PLAIN.split())
count = 0  # steps so far
due = _FIRST  # the step after which the state below changes
looking = False  # are the passes of the present step read?
_present: float | None = 0.0  # of the passes of this step
_read: list[float | None] = []  # of the steps that were read; None where a node is not known


def turn() -> None:
    """Step `due` has ended: begin to read, or keep what was read."""
    global due, looking, _present
    if looking:
        _read.append(_present)
        due = 2 * count
    else:
        due = count + 1
    looking, _present = not looking, 0.0


def look(args: Any, kwargs: Any) -> None:
    """A backward pass of a step that is read is about to begin. Takes the arguments of `torch.autograd.backward`."""
    global _present
    if _present is None or torch_roots.in_backward:
        return
    try:
        if any(kwargs.get(name) for name in ("retain_graph", "create_graph", "inputs")) or any(args[2:]):
            raise ValueError  # the same graph may be passed again, or a part of it only
        tensors = args[0] if args else kwargs["tensors"]
        _present += _of_graph(tensors if isinstance(tensors, (list, tuple)) else [tensors])
    except Exception:
        _present = None


def known() -> float | None:
    """FLOPs of a step; None where they can't be told."""
    found = [one for one in list(_read) if one]
    if len(found) < _LEAST:
        return None
    usual = sorted(found)[len(found) // 2]
    agree = sum(abs(one - usual) <= _ALIKE * usual for one in found)
    return usual if agree >= _MOST * len(_read) else None


def forget() -> None:
    """In a forked child."""
    global count, due, looking, _present
    _read.clear()
    count, due, looking, _present = 0, _FIRST, False, 0.0


def _of_graph(tensors: Any) -> float:
    """Raises where a node is not known."""
    left = [one.grad_fn for one in tensors]
    met = {id(one): one for one in left}  # holds them: else another one may get the same id
    total = 0.0
    while left:
        node = left.pop()
        total += _of_node(node)
        for one, _ in node.next_functions:
            if one is not None and id(one) not in met:
                met[id(one)] = one
                left.append(one)
        if len(met) > _MAX_NODES:
            raise OverflowError
    return total


def _of_node(node: Any) -> float:
    whole = node.name().rpartition("::")[2]
    name, _, version = whole.rpartition("Backward")
    if whole in _OTHERS or (version.isdigit() and name in _plain):
        return 0.0
    if not version.isdigit():  # an operation of the program's own
        raise LookupError(whole)
    if name in _PRODUCTS:
        return _product(node, *_PRODUCTS[name])
    if name == "Convolution":
        return _convolution(node)
    if name.startswith("ScaledDotProduct"):
        return _attention(node)
    raise LookupError(whole)


def _shape(node: Any, operand: int) -> Any:
    """Shape of an operand that gets a gradient; None of another one."""
    source, index = node.next_functions[operand]
    return None if source is None else source._input_metadata[index].shape


def _size(shape: Any) -> float:
    size = 1.0
    for length in shape:
        size *= length
    return size


def _product(node: Any, left: int, right: int) -> float:
    one, other = _shape(node, left), _shape(node, right)
    inner = one[-1] if one is not None else other[-2 if len(other) > 1 else -1]
    gradients = (one is not None) + (other is not None)
    return 2.0 * _size(node._input_metadata[0].shape) * inner * (1 + gradients)


def _convolution(node: Any) -> float:
    image, weight, out = _shape(node, 0), _shape(node, 1), node._input_metadata[0].shape
    places = image if node._saved_transposed else out
    return 2.0 * places[0] * _size(places[2:]) * _size(weight) * (2 + (image is not None))


def _attention(node: Any) -> float:
    key, out = _shape(node, 1), node._input_metadata[0].shape
    if None in (_shape(node, 0), key, _shape(node, 2)) or len(out) != 4:
        raise LookupError
    return 2.0 * _size(out[:3]) * key[-2] * (key[-1] + out[-1]) * 3

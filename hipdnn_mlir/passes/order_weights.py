"""hipdnn-order-weights: store constant filters and matrices in the order in which the target's libraries read them."""

from collections.abc import Callable, Iterable

from torch_mlir import ir
from torch_mlir.dialects import torch

from ..ir.blocks import functions, operations
from ..ir.claims import has_code
from ..ir.constants import constant_values, kept
from ..ir.convolutions import convolutions_of_constants, is_of_one_pixel
from ..ir.layout import order_matters
from ..ir.module_pass import module_pass
from ..ir.operators import is_operator
from ..ir.types import tensor_type, torch_tensor
from ..ir.view import argument, producer, readers
from ..ir.view_chains import dims_of, movement_of, permuted, reshaped
from ..ops.spec import Permute
from ..ops.strides import Dims
from ..targets.table import find_target
from ..targets.target import Target

_ACTIVATIONS = (torch.AtenHardsigmoidOp, torch.AtenHardswishOp, torch.AtenReluOp, torch.AtenSigmoidOp, torch.AtenSiluOp)

_WEIGHT = 1
"""The operand of a convolution or product that is a filter or a right matrix."""


@module_pass("hipdnn-order-weights")
def order_weights(module: ir.Operation, *, target: str = "host") -> None:
    """Store filters of convolutions as (k, r, s, c), and right operands of matmuls with their columns along memory.

    Kernels for matrix units read adjacent channels of image and filter at once; a library that is given another order has to bring the
    filter into this one at every run, or has slower kernels for it. Generated kernels of depthwise convolutions read filters of
    adjacent channels at once: (r, s, k). A matmul of few rows reads each column as one line of memory. The
    convolution of images of one pixel is such a matmul, with the activation behind it: those between squeeze and excitation.

    Before: `torch.aten.convolution %x, %w, ...` with `%w[64, 32, 3, 3]`; `torch.aten.matmul %x, %m` with `%m[768, 3072]`.
    After: the convolution of a permuted view of `torch.aten.clone`, which is constant arithmetic, of `%w` permuted to [64, 3, 3, 32];
    `torch.aten.linear %x, %n` with `%n[3072, 768]`, a clone of `%m` permuted.

    Before: `Float8MatMul` of `%x` and `%w[768, 3072]` transposed. After: of a clone of that view.

    Before: a convolution of `%x[n, 96, 1, 1]` with `%w[24, 96, 1, 1]` and a bias, `torch.aten.silu` of it.
    After: `torch.aten.linear` of `%x[n, 96]` and `%w[24, 96]`, the sum with the bias, `torch.aten.silu` of it, seen as `[n, 24, 1, 1]`.

    Args:
        module: the module operation.
        target: whose needs to follow.
    """
    library = find_target(target)
    for function in functions(module):
        ordered: dict[ir.Value, ir.Value] = {}
        if library.matrices_by_columns:
            for convolution in convolutions_of_constants(function):
                if is_of_one_pixel(convolution):
                    _as_matmul(convolution)
        if library.filters_channels_last:
            _order_filters(convolutions_of_constants(function), library, ordered)
        constants = constant_values(function)
        for op in operations(function):
            if len(op.operands) < _WEIGHT + 1 or op.operands[_WEIGHT] not in constants:
                continue
            if library.filters_channels_last and is_operator(op, "QuantizedConv"):
                _order(op, ordered)
            elif is_operator(op, "Float8MatMul"):
                _store_view(op, ordered)
            elif library.matrices_by_columns and is_operator(op, "QuantizedMatMul"):
                _show_columns(op, ordered)
            elif library.matrices_by_columns and isinstance(op, torch.AtenMatmulOp | torch.AtenMmOp):
                _by_columns(op, ordered)


def _order_filters(
    convolutions: Iterable[torch.AtenConvolutionOp], library: Target, ordered: dict[ir.Value, ir.Value]
) -> None:
    for convolution in convolutions:
        if _is_depthwise(convolution) and has_code(convolution, library):
            _replace_filter(convolution, ordered, _by_taps)
        else:
            _order(convolution, ordered)


def _as_matmul(convolution: torch.AtenConvolutionOp) -> None:
    """A matmul and the activation that alone reads it, in the place of a convolution."""
    x, weight = convolution.input, convolution.weight
    last, dims = convolution, dims_of(convolution.result)
    kind = torch_tensor(dims[:2], tensor_type(convolution.result.type).dtype)
    with ir.InsertionPoint(convolution), convolution.location:
        made = torch.aten_linear(
            kind, reshaped(x, dims_of(x)[:2]), reshaped(weight, dims_of(weight)[:2]), torch.constant_none()
        )
        if argument(convolution.bias) is not None:
            made = torch.aten_add_Tensor(kind, made, convolution.bias, torch.constant_int(1))
    reading = readers(convolution.result)
    if len(reading) == 1 and isinstance(reading[0], _ACTIVATIONS):
        last = reading[0]
    with ir.InsertionPoint(last), last.location:
        if last is not convolution:
            made = type(last)(kind, made).result
        last.result.replace_all_uses_with(reshaped(made, dims))
    last.erase()
    if last is not convolution:
        convolution.erase()


def _by_columns(matmul: torch.AtenMatmulOp | torch.AtenMmOp, ordered: dict[ir.Value, ir.Value]) -> None:
    x, weight = matmul.operands
    if len(dims_of(weight)) != 2 or len(dims_of(x)) < 2 or not tensor_type(weight.type).is_static:
        return
    with ir.InsertionPoint(matmul), matmul.location:
        if weight not in ordered:
            ordered[weight] = _columns(weight)
        made = torch.aten_linear(matmul.result.type, x, ordered[weight], torch.constant_none())
    matmul.result.replace_all_uses_with(made)
    matmul.erase()


def _show_columns(product: torch.OperatorOp, ordered: dict[ir.Value, ir.Value]) -> None:
    """The product of a view of the transposed matrix, which is stored."""
    weight = product.operands[_WEIGHT]
    with ir.InsertionPoint(product), product.location:
        if weight not in ordered:
            ordered[weight] = _columns(weight)
        product.operands[_WEIGHT] = kept(permuted(ordered[weight], (1, 0)))


def _store_view(product: torch.OperatorOp, ordered: dict[ir.Value, ir.Value]) -> None:
    """The product of a stored copy, where the matrix is a view: libraries multiply bytes along memory alone."""
    weight = product.operands[_WEIGHT]
    if producer(weight) is None:
        return
    if weight not in ordered:
        with ir.InsertionPoint(product), product.location:
            ordered[weight] = torch.aten_clone(weight.type, weight, torch.constant_none())
    product.operands[_WEIGHT] = ordered[weight]


def _columns(weight: ir.Value) -> ir.Value:
    """The weight transposed: what the model itself transposes, as embeddings that are the last layer's weights, or a stored copy."""
    source = producer(weight)
    if source is not None and movement_of(source) == Permute((1, 0)) and producer(source.operands[0]) is None:
        return source.operands[0]
    columns = permuted(weight, (1, 0))
    return torch.aten_clone(columns.type, columns, torch.constant_none())


def _is_depthwise(convolution: torch.AtenConvolutionOp) -> bool:
    kind = tensor_type(convolution.weight.type)
    return kind.is_static and kind.static_dims()[1] == 1 and argument(convolution.groups) == kind.static_dims()[0]


def _order(convolution: ir.OpView, ordered: dict[ir.Value, ir.Value]) -> None:
    kind = tensor_type(convolution.operands[_WEIGHT].type)
    if kind.is_static and order_matters(kind.static_dims()):
        _replace_filter(convolution, ordered, _channels_last)


def _replace_filter(
    convolution: ir.OpView, ordered: dict[ir.Value, ir.Value], store: Callable[[ir.Value], ir.Value]
) -> None:
    weight = convolution.operands[_WEIGHT]
    if weight not in ordered:
        with ir.InsertionPoint(convolution), convolution.location:
            ordered[weight] = store(weight)
    convolution.operands[_WEIGHT] = ordered[weight]


def _channels_last(weight: ir.Value) -> ir.Value:
    """The filter, stored with channels innermost and seen with its own dims."""
    rank = len(dims_of(weight))
    return _stored(weight, (0, *range(2, rank), 1), (0, rank - 1, *range(1, rank - 1)))


def _by_taps(weight: ir.Value) -> ir.Value:
    """The filter of a depthwise convolution, stored tap by tap and seen with its own dims."""
    rank = len(dims_of(weight))
    return _stored(weight, (*range(1, rank), 0), (rank - 1, *range(rank - 1)))


def _stored(weight: ir.Value, order: Dims, back: Dims) -> ir.Value:
    inner = permuted(weight, order)
    stored = torch.aten_clone(inner.type, inner, torch.constant_none())
    return kept(permuted(stored, back))

"""The body of a hipDNN graph of pointwise nodes, reductions and norms."""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.abi import Reduce as R
from hipdnn_mlir_runtime.dtypes import ALL, BOOL, F32, I8, I64, U8, DType

from ...ops.graph import Graph, Node
from ...ops.spec import Refusal
from ...ops.strides import Dims, broadcast
from ..core.kernel import Operand
from .activations import ACTIVATIONS
from .body import GIVEN, Body, Instruction

_BY_HIPDNN = {int(dtype.hipdnn): dtype for dtype in ALL if dtype.hipdnn is not None}
_INSTRUCTIONS = {
    P.ADD: "add", P.SUB: "sub", P.MUL: "mul", P.DIV: "div", P.MIN: "min", P.MAX: "max", P.NEG: "neg", P.ABS: "abs", P.CEIL: "ceil",
    P.FLOOR: "floor", P.SQRT: "sqrt", P.RSQRT: "rsqrt", P.EXP: "exp", P.LOG: "log", P.SIN: "sin", P.TAN: "tan", P.ERF: "erf",
    P.TANH_FWD: "tanh", P.RECIPROCAL: "reciprocal", P.CMP_EQ: "eq", P.CMP_NEQ: "ne", P.CMP_LT: "lt", P.CMP_LE: "le", P.CMP_GT: "gt",
    P.CMP_GE: "ge",
}  # fmt: skip
_LOGIC = {P.LOGICAL_AND: "and", P.LOGICAL_OR: "or", P.LOGICAL_NOT: "not"}
_FOLDS = {
    R.ADD: "add", R.MUL: "mul", R.MIN: "min", R.MAX: "max", R.AVG: "add", R.NORM1: "add", R.NORM2: "add", R.AMAX: "max",
    R.MUL_NO_ZEROS: "mul",
}  # fmt: skip


def graph_body(graph: Graph, *, given: Sequence[Node] = (), before: Sequence[Node] = ()) -> Body:
    """The body of a graph; its operands are `graph.operands()`, in that order. Raises Refusal.

    Args:
        graph: what it computes.
        given: nodes of one result that are left out: the instruction GIVEN, whose data is the node's number here, is its result.
        before: nodes that are left out since only nodes of `given` read their results.
    """
    return _Lowering(graph, given, before).run()


class _Lowering:
    def __init__(self, graph: Graph, given: Sequence[Node], before: Sequence[Node]) -> None:
        self.graph, self.given, self.before = graph, given, before
        self.axes: set[tuple[int, ...]] = set()
        self.values: dict[int, int] = {}
        self.places: dict[int, int] = {}

    def run(self) -> Body:
        graph, given = self.graph, self.given
        used = dict.fromkeys(i for node in graph.nodes for i in (*node.inputs.values(), *node.outputs.values()))
        nodes = [node for node in graph.nodes if all(node is not left for left in (*given, *self.before))]
        inside = {i for node in nodes for i in (*node.inputs.values(), *node.outputs.values())}
        inside.update(index for node in given for index in node.outputs.values())
        shown = [graph.tensors[i].dims for i in used if i in inside and graph.tensors[i].value is None]
        dims = broadcast(*shown) if shown else None
        if dims is None:
            raise Refusal("shape", "tensors of different sizes in a dimension")
        self.body = Body(dims)
        for index in used:
            tensor = graph.tensors[index]
            if tensor.operand is not None or tensor.result is not None:
                self.places[index] = len(self.body.operands)
                self.body.operands.append(self._operand(index, dims if index in inside else tensor.dims))
        for number, node in enumerate(given):
            (index,) = node.outputs.values()
            self.define(index, self.body.append(GIVEN, graph.tensors[index].dtype, data=number))
        for node in nodes:
            self._node(node)
        if len(self.axes) > 1:
            raise Refusal("reduction", "reductions over different dimensions")
        self.body.reduced = frozenset(next(iter(self.axes), ()))
        self._check_results()
        return self.body

    def _operand(self, index: int, dims: Dims) -> Operand:
        tensor = self.graph.tensors[index]
        strides = tuple(0 if size == 1 else step for size, step in zip(tensor.dims, tensor.strides, strict=True))
        shown = (0,) * (len(dims) - len(strides)) + strides
        return Operand("in" if tensor.operand is not None else "out", tensor.dtype, dims, shown, tensor.alignment)

    def _check_results(self) -> None:
        body = self.body
        for index, place in self.places.items():
            tensor = self.graph.tensors[index]
            if tensor.result is None:
                continue
            sizes = (1,) * (len(body.dims) - len(tensor.dims)) + tensor.dims
            if any(
                a != b and axis not in body.reduced for axis, (a, b) in enumerate(zip(sizes, body.dims, strict=True))
            ):
                raise Refusal("shape", f"a result of dims {tensor.dims} in a graph over {body.dims}")
            store = next(s for s in body.code if s.name == "store" and s.data == place)
            if not any(body.operands[place].strides[a] for a in body.reduced) and self._varies(store.operands[0]):
                raise Refusal("shape", "a result varies along a reduced dimension that it does not have")

    def _varies(self, value: int) -> bool:
        return self.body.varying()[value] and any(self.body.dims[a] > 1 for a in self.body.reduced)

    # -- tensors --------------------------------------------------------------------------------------------------

    def value(self, index: int) -> int:
        """The instruction that holds a tensor."""
        if index not in self.values:
            tensor = self.graph.tensors[index]
            if tensor.value is not None:
                number = np.frombuffer(tensor.value, tensor.dtype.numpy)[0]
                known = float(number) if tensor.dtype.is_float else int(number)
                self.values[index] = self.body.constant(known, tensor.dtype)
            else:
                self.values[index] = self.body.append("load", tensor.dtype, data=self.places[index])
        return self.values[index]

    def define(self, index: int, value: int) -> None:
        """Say what a tensor holds, and write it where it is a result."""
        dtype = self.graph.tensors[index].dtype
        nearest = self._saturated(value, dtype)
        value = self.body.cast(value, dtype) if nearest is None else self.body.append("saturate", dtype, nearest)
        self.values[index] = value
        if self.graph.tensors[index].result is not None:
            self.body.append("store", self.graph.tensors[index].dtype, value, data=self.places[index])

    # -- nodes ----------------------------------------------------------------------------------------------------

    def _node(self, node: Node) -> None:
        lower: dict[int, Callable[[Node], None]] = {
            D.OPERATION_POINTWISE_DESCRIPTOR: self._pointwise,
            D.OPERATION_REDUCTION_DESCRIPTOR: self._reduction,
            D.OPERATION_RMSNORM_DESCRIPTOR_EXT: self._rms_norm,
            D.OPERATION_LAYERNORM_DESCRIPTOR_EXT: self._layer_norm,
            D.OPERATION_BATCHNORM_INFERENCE_VARIANCE_DESCRIPTOR_EXT: self._batch_norm,
            D.OPERATION_BATCHNORM_INFERENCE_DESCRIPTOR_EXT: self._batch_norm_of_deviation,
        }
        if node.type not in lower:
            raise Refusal("kernel", f"no code for {D(node.type).name.removesuffix('_DESCRIPTOR').lower()} on GPUs")
        lower[node.type](node)

    def _pointwise(self, node: Node) -> None:
        p = self.body
        mode, out = P(node.get(A.POINTWISE_MODE)), node.outputs[A.OPERATION_POINTWISE_OUT_0_EXT]
        inputs = [self.value(index) for index in node.inputs.values()]
        result = self.graph.tensors[out].dtype
        if mode is P.IDENTITY:
            return self.define(out, inputs[0])
        if mode is P.GEN_INDEX:
            first = len(p.dims) - len(self.graph.tensors[out].dims)
            return self.define(out, p.append("index", I64, data=first + node.get(A.POINTWISE_AXIS)))
        if mode is P.BINARY_SELECT:
            condition, a, b = p.cast(inputs[2], BOOL), p.cast(inputs[0], result), p.cast(inputs[1], result)
            return self.define(out, self._rounded(condition, a, b) or p.apply("where", condition, a, b))
        if mode in _LOGIC:
            return self.define(out, p.apply(_LOGIC[mode], *(p.cast(value, BOOL) for value in inputs)))
        work = self._work_type(node, inputs)
        operands = [p.cast(value, work) for value in inputs]
        if mode not in _INSTRUCTIONS and mode not in ACTIVATIONS:
            raise Refusal("kernel", f"no code for pointwise {mode.name} on GPUs")
        made = (
            p.apply(_INSTRUCTIONS[mode], *operands) if mode in _INSTRUCTIONS else ACTIVATIONS[mode](p, node, *operands)
        )
        if result in (I8, U8) and any(p.code[value].dtype.is_float for value in inputs):
            made = p.append("saturate", result, made)
        return self.define(out, made)

    def _rounded(self, condition: int, high: int, low: int) -> int | None:
        """A number rounded to the nearest, halves to even, where a choice is the last of the nodes that the op table writes for that."""
        p = self.body
        floor = p.code[low]
        if floor.name != "floor" or p.code[high] != Instruction("add", floor.dtype, (low, self._constant(1.0, low))):
            return None
        (x,), half = floor.operands, self._constant(0.5, low)
        # What is written already is found again.
        rest, halved = p.apply("sub", x, low), p.apply("mul", low, half)
        is_tie_up = p.apply("and", p.apply("eq", rest, half), p.apply("ne", p.apply("floor", halved), halved))
        is_up = p.apply("or", p.apply("gt", rest, half), is_tie_up)
        return p.apply("round", x) if is_up == condition else None

    def _saturated(self, value: int, dtype: DType) -> int | None:
        """What a type of bytes saturates, where an integer was cut to its range."""
        p = self.body
        if dtype not in (I8, U8):
            return None
        limits = np.iinfo(dtype.numpy)
        for name, limit in (("max", limits.min), ("min", limits.max)):
            step = p.code[value]
            if step.name != name or not self._is_constant(step.operands[1]) or p.code[step.operands[1]].data != limit:
                return None
            value = step.operands[0]
        step = p.code[value]
        is_moved = step.name == "add" and self._is_constant(step.operands[1])
        rounded = p.code[step.operands[0]] if is_moved else step
        moved = p.code[step.operands[1]].data if is_moved else 0
        if rounded.name != "round" or moved != int(moved):
            return None
        return value if moved else rounded.operands[0]

    def _is_constant(self, value: int) -> bool:
        return self.body.code[value].name == "const"

    def _work_type(self, node: Node, inputs: list[int]) -> DType:
        """The type of the operands where they agree on an integer, else the one the node computes in."""
        kinds = {self.body.code[value].dtype for value in inputs}
        compute = _BY_HIPDNN[node.get(A.POINTWISE_MATH_PREC, F32.hipdnn_value)]
        only = next(iter(kinds))
        return only if len(kinds) == 1 and not only.is_float and not compute.is_float and only is not BOOL else compute

    def _fold(self, operator: str, value: int, axes: tuple[int, ...]) -> int:
        self.axes.add(axes)
        return self.body.append("reduce", self.body.code[value].dtype, value, data=operator)

    def _constant(self, number: float, like: int) -> int:
        return self.body.constant(number, self.body.code[like].dtype)

    def _reduction(self, node: Node) -> None:
        p, graph = self.body, self.graph
        source, target = node.inputs[A.OPERATION_REDUCTION_XDESC], node.outputs[A.OPERATION_REDUCTION_YDESC]
        x, y = graph.tensors[source].dims, graph.tensors[target].dims
        pad = len(p.dims) - len(x)
        axes = tuple(pad + axis for axis in range(len(x)) if x[axis] != y[axis])
        operator = R(node.get(A.REDUCTION_OPERATOR))
        value = self.value(source)
        compute = _BY_HIPDNN[node.get(A.REDUCTION_COMP_TYPE, F32.hipdnn_value)]
        value = p.cast(value, compute)
        if operator in (R.NORM1, R.AMAX):
            value = p.apply("abs", value)
        elif operator is R.NORM2:
            value = p.apply("mul", value, value)
        elif operator is R.MUL_NO_ZEROS:
            value = p.apply("where", p.apply("eq", value, self._constant(0, value)), self._constant(1, value), value)
        folded = self._fold(_FOLDS[operator], value, axes) if axes else value
        if operator is R.AVG:
            folded = p.apply("div", folded, self._constant(prod(x[axis - pad] for axis in axes), folded))
        elif operator is R.NORM2:
            folded = p.apply("sqrt", folded)
        self.define(target, folded)

    # -- norms ----------------------------------------------------------------------------------------------------

    def _norm(self, node: Node, x: Any, axes: tuple[int, ...], compute: DType) -> tuple[int, int]:
        """X in the type of the arithmetic, and the number of elements of a row as a constant."""
        value = self.body.cast(self.value(node.inputs[x]), compute)
        return value, self._constant(prod(self.body.dims[axis] for axis in axes), value)

    def _inverse_root(self, square: int, epsilon: int) -> int:
        dtype = self.body.code[square].dtype
        return self.body.apply("rsqrt", self.body.apply("add", square, self.body.cast(epsilon, dtype)))

    def _scaled(self, value: int, node: Node, scale: Any, bias: Any) -> int:
        p, dtype = self.body, self.body.code[value].dtype
        if scale in node.inputs:
            value = p.apply("mul", value, p.cast(self.value(node.inputs[scale]), dtype))
        if bias in node.inputs:
            value = p.apply("add", value, p.cast(self.value(node.inputs[bias]), dtype))
        return value

    def _mean(self, value: int, count: int, axes: tuple[int, ...]) -> int:
        return self.body.apply("div", self._fold("add", value, axes), count) if axes else value

    def _rms_norm(self, node: Node) -> None:
        p = self.body
        scale = self.graph.tensors[node.inputs[A.OPERATION_RMSNORM_SCALE_EXT]].dims
        pad = len(p.dims) - len(scale)
        axes = tuple(pad + axis for axis, size in enumerate(scale) if size != 1)
        x, count = self._norm(node, A.OPERATION_RMSNORM_X_EXT, axes, _BY_HIPDNN[node.get(A.RMSNORM_COMP_TYPE_EXT, 0)])
        epsilon = self.value(node.inputs[A.OPERATION_RMSNORM_EPSILON_EXT])
        inverse = self._inverse_root(self._mean(p.apply("mul", x, x), count, axes), epsilon)
        if A.OPERATION_RMSNORM_INV_RMS_EXT in node.outputs:
            self.define(node.outputs[A.OPERATION_RMSNORM_INV_RMS_EXT], inverse)
        y = self._scaled(p.apply("mul", x, inverse), node, A.OPERATION_RMSNORM_SCALE_EXT, A.OPERATION_RMSNORM_BIAS_EXT)
        self.define(node.outputs[A.OPERATION_RMSNORM_Y_EXT], y)

    def _layer_norm(self, node: Node) -> None:
        p = self.body
        dims = self.graph.tensors[node.inputs[A.OPERATION_LAYERNORM_X_EXT]].dims
        normalized = node.get(A.OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT)
        axes = tuple(axis for axis in range(len(p.dims) - normalized, len(p.dims)) if p.dims[axis] > 1)
        if len(dims) != len(p.dims):
            raise Refusal("shape", f"layer norm of rank {len(dims)} in a graph of rank {len(p.dims)}")
        x, count = self._norm(
            node, A.OPERATION_LAYERNORM_X_EXT, axes, _BY_HIPDNN[node.get(A.LAYERNORM_COMP_TYPE_EXT, 0)]
        )
        mean = self._mean(x, count, axes)
        centred = p.apply("sub", x, mean)
        epsilon = self.value(node.inputs[A.OPERATION_LAYERNORM_EPSILON_EXT])
        inverse = self._inverse_root(self._mean(p.apply("mul", centred, centred), count, axes), epsilon)
        for output, value in (
            (A.OPERATION_LAYERNORM_MEAN_EXT, mean),
            (A.OPERATION_LAYERNORM_INV_VARIANCE_EXT, inverse),
        ):
            if output in node.outputs:
                self.define(node.outputs[output], value)
        y = self._scaled(
            p.apply("mul", centred, inverse), node, A.OPERATION_LAYERNORM_SCALE_EXT, A.OPERATION_LAYERNORM_BIAS_EXT
        )
        self.define(node.outputs[A.OPERATION_LAYERNORM_Y_EXT], y)

    def _batch_norm(self, node: Node) -> None:
        p = self.body
        compute = _BY_HIPDNN[node.get(A.BATCHNORM_INF_VAR_COMP_TYPE_EXT, 0)]
        x, mean, variance, epsilon = (
            p.cast(self.value(node.inputs[name]), compute)
            for name in (
                A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_X_EXT, A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_MEAN_EXT,
                A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_VARIANCE_EXT, A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_EPSILON_EXT,
            )
        )  # fmt: skip
        centred = p.apply("mul", p.apply("sub", x, mean), self._inverse_root(variance, epsilon))
        y = self._scaled(
            centred,
            node,
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_SCALE_EXT,
            A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_BIAS_EXT,
        )
        self.define(node.outputs[A.OPERATION_BATCHNORM_INFERENCE_VARIANCE_Y_EXT], y)

    def _batch_norm_of_deviation(self, node: Node) -> None:
        p = self.body
        compute = _BY_HIPDNN[node.get(A.BATCHNORM_INF_COMP_TYPE_EXT, 0)]
        x, mean, inverse = (
            p.cast(self.value(node.inputs[name]), compute)
            for name in (
                A.OPERATION_BATCHNORM_INFERENCE_X_EXT, A.OPERATION_BATCHNORM_INFERENCE_MEAN_EXT,
                A.OPERATION_BATCHNORM_INFERENCE_INV_VARIANCE_EXT,
            )
        )  # fmt: skip
        centred = p.apply("mul", p.apply("sub", x, mean), inverse)
        y = self._scaled(
            centred, node, A.OPERATION_BATCHNORM_INFERENCE_SCALE_EXT, A.OPERATION_BATCHNORM_INFERENCE_BIAS_EXT
        )
        self.define(node.outputs[A.OPERATION_BATCHNORM_INFERENCE_Y_EXT], y)

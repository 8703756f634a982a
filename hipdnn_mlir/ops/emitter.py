"""Builds one hipDNN graph from the torch ops of a region; a dry run of the same code is what claims them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Attribute, AttributeType, Descriptor, Pointwise, Reduce
from hipdnn_mlir_runtime.dtypes import DType

from .graph import DEFAULT_ALIGNMENT, Graph, Node, Tensor, TensorKey
from .spec import Refusal, TensorArg, TensorType
from .strides import Dims, Strides, broadcast, memory_order, packed, restride


@dataclass(frozen=True)
class Value:
    """A tensor during emission: index into Graph.tensors, dims, dtype; `pads` (low, high, value) is a border not yet applied.

    `dtype` is the type that the model's arithmetic has here; a baked number of a 16-bit type is kept in f32.
    """

    tensor: int
    dims: Dims
    dtype: DType
    pads: tuple[Dims, Dims, float] | None = None

    @property
    def rank(self) -> int:
        """Number of dims."""
        return len(self.dims)


@dataclass(frozen=True)
class Storage:
    """Where a buffer keeps a tensor: strides and offset from an aligned allocation, in elements."""

    strides: Strides
    offset: int = 0


@dataclass(frozen=True)
class Operand:
    """A region operand: dims, dtype and, once known, how its buffer stores it."""

    dims: Dims
    dtype: DType
    storage: Storage | None = None


class Emitter:
    """Collects nodes while rows emit. One per region; not reusable."""

    def __init__(self, compute: DType) -> None:
        self.graph = Graph(compute)
        self._values: dict[Any, Value] = {}
        self._views: dict[tuple[int, Dims], Value] = {}

    # -- values ---------------------------------------------------------------------------------------------------

    def bind(self, key: Any, operand: Operand, index: int) -> None:
        """Make SSA value `key` mean region operand `index`."""
        dims = operand.dims or (1,)
        stored = operand.storage
        strides = stored.strides if stored and operand.dims else packed(dims)
        alignment = alignment_bytes(stored, operand.dtype)
        self._values[key] = self._new(Tensor(dims, operand.dtype, strides, operand=index, alignment=alignment))

    def define(self, key: Any, value: Value, kind: TensorType) -> None:
        """Make SSA value `key`, of type `kind`, mean the result of an emission."""
        if value.dtype is not kind.dtype:
            raise Refusal("dtype", f"computed in {value.dtype}, the result is {kind.dtype}")
        if kind.is_static and not value.pads and [d for d in value.dims if d != 1] != [d for d in kind.dims if d != 1]:
            raise Refusal("shape", f"computed as {value.dims}, the result is {kind}")
        self._values[key] = value

    def value(self, arg: Any, *, pads: bool = False) -> Value:
        """The value of a tensor argument; a known scalar is baked. Refuses a padded value unless `pads`."""
        if not isinstance(arg, TensorArg):
            raise Refusal("operand", f"expected a tensor operand, got {arg!r}")
        if arg.key in self._values:
            value = self._values[arg.key]
            if value.pads and not pads:
                raise Refusal("pad", "a constant border can only be fused into a convolution or pooling")
            if not value.pads and math.prod(value.dims) != 1 and value.dims != arg.type.static_dims():
                raise Refusal(
                    "virtual-view", f"an intermediate of dims {value.dims} cannot be read as {arg.type.static_dims()}"
                )
            return value
        if arg.scalar is not None:
            return self.scalar(arg.scalar, arg.type.dtype)
        raise Refusal("operand", "operand is defined outside the region")

    def scalar(self, number: float | int | bool, dtype: DType) -> Value:
        """A baked scalar of dims (1,).

        Beside 16-bit floats it is kept in f32, in which they are computed anyway: 1/6 in f16 is off by half a unit in its last place,
        which HardSwish would add to its own rounding.
        """
        if dtype.hipdnn is None:
            raise Refusal("dtype", f"hipDNN has no data type for {dtype}")
        kept = dtypes.F32 if dtype.is_narrow else dtype
        raw = np.asarray(number).astype(kept.numpy).tobytes()
        known = (i for i, t in enumerate(self.graph.tensors) if t.value == raw and t.dtype is kept)
        index = next(known, None)
        if index is None:
            index = self._new(Tensor((1,), kept, (1,), value=raw)).tensor
        return Value(index, (1,), dtype)

    def is_operand(self, value: Value) -> bool:
        """Whether a value is an operand of the graph, as it is or viewed."""
        return self.graph.tensors[value.tensor].operand is not None

    def view(self, value: Value, dims: Dims) -> Value:
        """`value` under other dims, by strides alone; refuses where data would have to move."""
        if value.dims == dims:
            return value
        tensor = self.graph.tensors[value.tensor]
        if tensor.value is not None:
            shown = self._remember((value.tensor, dims), replace(tensor, dims=dims, strides=packed(dims)))
            return replace(shown, dtype=value.dtype)
        if tensor.operand is None:
            raise Refusal("virtual-view", f"an intermediate of dims {value.dims} cannot be viewed as {dims}")
        strides = restride(value.dims, tensor.strides, dims)
        if strides is None:
            raise Refusal(
                "view", f"dims {value.dims} with strides {tensor.strides} cannot be viewed as {dims} without a copy"
            )
        return self._remember((value.tensor, dims), replace(tensor, dims=dims, strides=strides))

    def reinterpret(self, value: Value, dtype: DType, dims: Dims, strides: Strides) -> Value:
        """An operand's bytes as elements of another type; refuses what is computed in the graph."""
        tensor = self.graph.tensors[value.tensor]
        if tensor.operand is None:
            raise Refusal("virtual-view", f"an intermediate of {value.dtype} cannot be read as {dtype}")
        plain = packed(tensor.dims)
        if any(size > 1 and a != b for size, a, b in zip(tensor.dims, tensor.strides, plain, strict=True)):
            raise Refusal("view", f"{value.dtype} with strides {tensor.strides} cannot be read as {dtype}")
        return self._new(replace(tensor, dims=dims, dtype=dtype, strides=strides))

    def _remember(self, key: tuple[int, Dims], tensor: Tensor) -> Value:
        if key not in self._views:
            self._views[key] = self._new(tensor)
        return self._views[key]

    def _new(self, tensor: Tensor) -> Value:
        self.graph.tensors.append(tensor)
        return Value(len(self.graph.tensors) - 1, tensor.dims, tensor.dtype)

    # -- nodes ----------------------------------------------------------------------------------------------------

    def node(
        self,
        kind: Descriptor,
        inputs: Mapping[TensorKey, Value],
        outputs: Mapping[TensorKey, tuple[Dims, DType]],
        attributes: Sequence[tuple[Attribute, AttributeType, Any]],
    ) -> list[Value]:
        """Append one operation and return its results, all virtual until the region's results are bound."""
        for value in inputs.values():
            if value.dtype.hipdnn is None:
                raise Refusal("dtype", f"hipDNN has no data type for {value.dtype}")
        if any(0 in value.dims for value in inputs.values()):
            raise Refusal("empty", "a tensor has no elements")
        results = [self._new(Tensor(dims, dtype, packed(dims))) for dims, dtype in outputs.values()]
        self.graph.nodes.append(
            Node(
                kind,
                {name: value.tensor for name, value in inputs.items()},
                {name: value.tensor for name, value in zip(outputs, results, strict=True)},
                list(attributes),
            )
        )
        return results

    def pointwise(
        self,
        mode: Pointwise,
        *operands: Value,
        dtype: DType | None = None,
        dims: Dims | None = None,
        **options: float,
    ) -> Value:
        """One pointwise node with broadcasting; `options` are RELU_LOWER_CLIP, SWISH_BETA and the like."""
        shape = broadcast(*(value.dims for value in operands), *([dims] if dims else []))
        if shape is None:
            raise Refusal("broadcast", f"shapes {', '.join(str(v.dims) for v in operands)} do not broadcast")
        aligned = [self.view(value, (1,) * (len(shape) - value.rank) + value.dims) for value in operands]
        out = dtype or operands[-1].dtype
        names = (
            Attribute.OPERATION_POINTWISE_IN_0_EXT,
            Attribute.OPERATION_POINTWISE_IN_1_EXT,
            Attribute.OPERATION_POINTWISE_IN_2_EXT,
        )
        extra = [
            (Attribute[f"POINTWISE_{key}"], AttributeType.FLOAT, [float(number)]) for key, number in options.items()
        ]
        precision = compute_type([value.dtype for value in operands], out)
        return self.node(
            Descriptor.OPERATION_POINTWISE_DESCRIPTOR,
            dict(zip(names, aligned, strict=False)),
            {Attribute.OPERATION_POINTWISE_OUT_0_EXT: (shape, out)},
            [
                (Attribute.POINTWISE_MODE, AttributeType.POINTWISE_MODE, [int(mode)]),
                *extra,
                (Attribute.POINTWISE_MATH_PREC, AttributeType.DATA_TYPE, [precision.hipdnn_value]),
            ],
        )[0]

    def reduction(self, operator: Reduce, value: Value, axes: Sequence[int]) -> Value:
        """Reduce over `axes`, which stay as dims of 1."""
        dims = tuple(1 if axis in axes else size for axis, size in enumerate(value.dims))
        precision = compute_type([value.dtype], value.dtype)
        return self.node(
            Descriptor.OPERATION_REDUCTION_DESCRIPTOR,
            {Attribute.OPERATION_REDUCTION_XDESC: value},
            {Attribute.OPERATION_REDUCTION_YDESC: (dims, value.dtype)},
            [
                (Attribute.REDUCTION_OPERATOR, AttributeType.REDUCTION_OPERATOR_TYPE, [int(operator)]),
                (Attribute.REDUCTION_IS_DETERMINISTIC, AttributeType.BOOLEAN, [False]),
                (Attribute.REDUCTION_COMP_TYPE, AttributeType.DATA_TYPE, [precision.hipdnn_value]),
            ],
        )[0]

    # -- results --------------------------------------------------------------------------------------------------

    def finish(self, results: Sequence[tuple[Any, TensorType]], storage: Sequence[Storage | None]) -> Graph:
        """Bind the region's results, give virtual tensors the memory order of the first result, and return the graph.

        Args:
            results: per region result its SSA key and type.
            storage: per region result how its buffer stores it, or None for a packed one.
        """
        taken: set[int] = set()
        for index, ((key, kind), stored) in enumerate(zip(results, storage, strict=True)):
            value = self._result(key, kind, taken)
            taken.add(value.tensor)
            dims = kind.static_dims()
            shown = restride(dims, stored.strides if stored else packed(dims), value.dims)
            if shown is None:
                raise Refusal("view", f"result of dims {dims} cannot be written as {value.dims}")
            tensor = self.graph.tensors[value.tensor]
            tensor.result, tensor.strides, tensor.alignment = index, shown, alignment_bytes(stored, value.dtype)
        self._lay_out_virtual_tensors()
        self.graph.compute = self._compute_type()
        return self.graph

    def _result(self, key: Any, kind: TensorType, taken: set[int]) -> Value:
        if key not in self._values:
            raise Refusal("result", "a result is used that hipDNN's operation does not produce")
        value = self._values[key]
        if value.pads:
            raise Refusal("pad", "a value with a border is used outside the region")
        if not self.graph.tensors[value.tensor].is_virtual or value.tensor in taken:
            dims = kind.static_dims() or (1,)
            return self.pointwise(Pointwise.IDENTITY, value, dims=dims if broadcast(value.dims, dims) == dims else None)
        return value

    def _lay_out_virtual_tensors(self) -> None:
        reference = next(t for t in self.graph.tensors if t.result is not None)
        order = memory_order(reference.dims, reference.strides)
        for tensor in self.graph.tensors:
            if tensor.is_virtual and len(tensor.dims) == len(order):
                tensor.strides = packed(tensor.dims, order)

    def _compute_type(self) -> DType:
        used = [
            self.graph.tensors[i].dtype
            for node in self.graph.nodes
            for i in (*node.inputs.values(), *node.outputs.values())
        ]
        return compute_type(used, used[-1])


def alignment_bytes(stored: Storage | None, dtype: DType) -> int:
    """Bytes that every address of the buffer is a multiple of: the part of the offset's that an aligned allocation leaves, at most 16."""
    return math.gcd(DEFAULT_ALIGNMENT, stored.offset * dtype.bytes) if stored else DEFAULT_ALIGNMENT


def compute_type(inputs: Sequence[DType], output: DType) -> DType:
    """The type arithmetic is done in: f64 if any operand is, else f32 if any is a float, else i64."""
    kinds = {*inputs, output}
    if dtypes.F64 in kinds:
        return dtypes.F64
    return dtypes.F32 if any(kind.is_float for kind in kinds) else dtypes.I64

"""Kernels for what hipDNN has no operation for: elementwise kernels, written instruction by instruction, and calls of whole functions."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.abi import Attribute, AttributeType, Descriptor
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import BOOL, DType

from .emitter import Emitter, Operand, Storage, Value
from .graph import TensorKey, json_number
from .spec import Refusal, TensorArg, TensorType
from .strides import Dims, Strides, broadcast, packed, restride

ELEMENTWISE, PAD = "elementwise", "pad"
_MODES = {
    P.ADD: "add", P.SUB: "sub", P.MUL: "mul", P.DIV: "div", P.MIN: "min", P.MAX: "max", P.NEG: "neg", P.ABS: "abs", P.CMP_EQ: "eq",
    P.CMP_NEQ: "ne", P.CMP_LT: "lt", P.CMP_LE: "le", P.CMP_GT: "gt", P.CMP_GE: "ge", P.LOGICAL_AND: "and", P.LOGICAL_OR: "or",
    P.LOGICAL_NOT: "not", P.CEIL: "ceil", P.FLOOR: "floor", P.SQRT: "sqrt", P.RSQRT: "rsqrt", P.EXP: "exp", P.LOG: "log", P.SIN: "sin",
    P.TAN: "tan", P.ERF: "erf", P.TANH_FWD: "tanh", P.RECIPROCAL: "reciprocal",
}  # fmt: skip
"""hipDNN's modes that are one instruction of an elementwise kernel."""
_UNCHANGED_INTEGERS = frozenset({"ceil", "floor"})


@dataclass(frozen=True)
class KernelTensor:
    """One tensor of a kernel.

    Attributes:
        role, index: which operand or result of the region it is.
        dims, strides: how it is seen; strides in elements, 0 broadcasts.
        offset: elements from the operand's first one to the first that is seen.
    """

    role: Literal["in", "out"]
    index: int
    dtype: DType
    dims: Dims
    strides: Strides
    offset: int = 0


@dataclass
class Kernel:
    """A kernel as docs/program-format.md describes it: function, tensors (operands first), attributes."""

    function: str
    tensors: list[KernelTensor] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)

    def description(self) -> dict[str, Any]:
        """The JSON object of the program, without name and summary."""
        tensors = [
            {"role": t.role, "dtype": t.dtype.name, "dims": list(t.dims), "strides": list(t.strides)}
            for t in self.tensors
        ]
        return {"function": self.function, "tensors": tensors, "attributes": self.attributes}

    def digest(self) -> str:
        """First 16 hex digits of SHA-256 over the canonical description: equal kernels have equal digests."""
        canonical = json.dumps(self.description(), separators=(",", ":"), sort_keys=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def summary(self) -> str:
        """One line for people: the function, or what an elementwise kernel computes."""
        if self.function != ELEMENTWISE:
            return self.function
        names = [step[0] for step in self.attributes["code"] if step[0] not in ("load", "store", "const", "index")]
        return " + ".join(names) or "copy"


class ElementwiseBuilder(Emitter):
    """Writes rows as the instructions of one elementwise kernel; a Value's `tensor` is a register. One per region; not reusable.

    Emissions for hipDNN work here too as far as they are made of pointwise nodes.
    """

    def __init__(self, space: Dims) -> None:
        super().__init__(dtypes.F32)
        self.space = space
        self.code: list[list[Any]] = []
        self.tensors: list[KernelTensor] = []
        self._operands: dict[Any, tuple[int, Operand]] = {}
        self._registers: dict[str, int] = {}
        self._loads: dict[int, tuple[int, Operand]] = {}

    def _append(self, instruction: list[Any], dims: Dims, dtype: DType) -> Value:
        """A new register, or the one that holds the same already."""
        spelled = json.dumps(instruction)
        if spelled not in self._registers:
            self._registers[spelled] = len(self.code)
            self.code.append(instruction)
        return Value(self._registers[spelled], dims, dtype)

    def bind(self, key: Any, operand: Operand, index: int) -> None:
        """Make SSA value `key` mean region operand `index`, loaded when it is read."""
        self._operands[key] = index, operand

    def value(self, arg: Any, *, pads: bool = False) -> Value:
        """The value of a tensor argument; a known scalar is a constant."""
        if isinstance(arg, TensorArg) and arg.key in self._operands:
            return self.load(arg, arg.type.static_dims() or (1,))
        return super().value(arg, pads=pads)

    def load(self, arg: TensorArg, dims: Dims) -> Value:
        """A tensor argument seen under other dims of as many elements."""
        if arg.key not in self._operands:
            return self.view(super().value(arg), dims)
        return self._load(*self._operands[arg.key], dims)

    def element(self, arg: TensorArg, position: int) -> Value:
        """One element of a tensor argument of rank 1."""
        if arg.key not in self._operands:
            raise Refusal("operand", "a single element of an intermediate is read")
        index, operand = self._operands[arg.key]
        (step,) = operand.storage.strides if operand.storage else (1,)
        return self._loaded(
            index, operand, (1,), KernelTensor("in", index, operand.dtype, self.space, self._still, position * step)
        )

    @property
    def _still(self) -> Strides:
        """Strides of what is one number everywhere."""
        return (0,) * len(self.space)

    def _load(self, index: int, operand: Operand, dims: Dims) -> Value:
        strides = broadcast_strides(dims, seen_strides(operand.dims, operand.storage, dims), self.space)
        return self._loaded(index, operand, dims, KernelTensor("in", index, operand.dtype, self.space, strides))

    def _loaded(self, index: int, operand: Operand, dims: Dims, tensor: KernelTensor) -> Value:
        if tensor not in self.tensors:
            self.tensors.append(tensor)
        value = self._append(["load", self.tensors.index(tensor)], dims, operand.dtype)
        self._loads[value.tensor] = (index, operand)
        return value

    def scalar(self, number: float | int | bool, dtype: DType) -> Value:
        """A constant of dims (1,)."""
        exact = np.asarray(number).astype(dtype.numpy)
        spelled = json_number(float(exact)) if dtype.is_float else int(exact)
        return self._append(["const", dtype.name, spelled], (1,), dtype)

    def is_operand(self, value: Value) -> bool:
        """Whether a value is an operand of the kernel, as it is."""
        return value.tensor in self._loads

    def view(self, value: Value, dims: Dims) -> Value:
        """`value` under other dims: free where they align from the right, another load of an operand else."""
        if _unpadded(value.dims) == _unpadded(dims):
            return Value(value.tensor, dims, value.dtype)
        if value.tensor not in self._loads:
            raise Refusal("virtual-view", f"an intermediate of dims {value.dims} cannot be viewed as {dims}")
        return self._load(*self._loads[value.tensor], dims)

    def node(
        self,
        kind: Descriptor,
        inputs: Mapping[TensorKey, Value],
        outputs: Mapping[TensorKey, tuple[Dims, DType]],
        attributes: Sequence[tuple[Attribute, AttributeType, Any]],
    ) -> list[Value]:
        """No node but pointwise ones is elementwise."""
        del inputs, outputs, attributes
        raise Refusal("kernel", f"no kernel computes {kind.name.removesuffix('_DESCRIPTOR').lower()}")

    def pointwise(
        self, mode: P, *operands: Value, dtype: DType | None = None, dims: Dims | None = None, **options: float
    ) -> Value:
        """What a pointwise node of hipDNN computes."""
        if mode is P.IDENTITY:
            source = operands[0] if dtype is None else self.cast(operands[0], dtype)
            return self.expand(source, dims) if dims else source
        if mode is P.BINARY_SELECT:
            return self.op("where", operands[2], *operands[:2])
        if mode is P.RELU_FWD and not options:
            return self.op("max", operands[0], self.scalar(0, operands[0].dtype))
        if mode not in _MODES or options:
            raise Refusal("kernel", f"no kernel computes {mode.name} with options {', '.join(options) or 'none'}")
        name = _MODES[mode]
        if name in _UNCHANGED_INTEGERS and not operands[0].dtype.is_float:
            return operands[0]
        made = self.op(name, *operands)
        return made if dtype is None else self.cast(made, dtype)

    # -- instructions ---------------------------------------------------------------------------------------------

    def op(self, name: str, *operands: Value) -> Value:
        """One instruction on operands of one dtype that broadcast; tests give booleans, others that dtype."""
        shape = broadcast(*(value.dims for value in operands))
        if shape is None:
            raise Refusal("broadcast", f"shapes {', '.join(str(v.dims) for v in operands)} do not broadcast")
        kinds = {value.dtype for value in (operands[1:] if name == "where" else operands)}
        if len(kinds) > 1:
            raise Refusal("dtype", f"{name} of {' and '.join(sorted(kind.name for kind in kinds))}")
        operand = operands[-1].dtype
        if not _is_defined(name, operand):
            raise Refusal("dtype", f"{name} of {operand}")
        result = BOOL if name in _TESTS else operand
        return self._append([name, *(value.tensor for value in operands)], shape, result)

    def cast(self, value: Value, dtype: DType, *, saturate: bool = False) -> Value:
        """Another element type; `saturate` rounds halves to even and clamps to the range."""
        if value.dtype is dtype:
            return value
        return self._append(["saturate" if saturate else "cast", dtype.name, value.tensor], value.dims, dtype)

    def position(self, axis: int, dims: Dims) -> Value:
        """The position (i64) along an axis of `dims`, which broadcast to the kernel's space."""
        if dims[axis] == 1:
            return self.scalar(0, dtypes.I64)
        shape = tuple(size if index == axis else 1 for index, size in enumerate(dims))
        return self._append(["index", axis + len(self.space) - len(dims)], shape, dtypes.I64)

    def expand(self, value: Value, dims: Dims) -> Value:
        """A value in broadcast dims."""
        shape = broadcast(value.dims, dims)
        if shape is None:
            raise Refusal("broadcast", f"dims {value.dims} do not broadcast to {dims}")
        return Value(value.tensor, shape, value.dtype)

    def store(self, key: Any, kind: TensorType, stored: Storage | None, index: int) -> None:
        """Write region result `index`, which has every position of the kernel's space."""
        value, dims = self._values[key], kind.static_dims()
        if _unpadded(dims) != _unpadded(self.space):
            raise Refusal("space", f"a result of dims {dims} in an elementwise kernel over {self.space}")
        self.tensors.append(result_tensor(index, kind, stored, self.space))
        self.code.append(["store", len(self.tensors) - 1, value.tensor])


def broadcast_strides(dims: Dims, strides: Strides, space: Dims) -> Strides:
    """Strides that show a tensor of `dims` at every position of a space that it broadcasts to."""
    if broadcast(dims, space) != space:
        raise Refusal("space", f"an operand of dims {dims} in a kernel over {space}")
    shown = tuple(0 if size == 1 else stride for size, stride in zip(dims, strides, strict=True))
    return (0,) * (len(space) - len(dims)) + shown


_COMPARISONS = frozenset({"eq", "ne", "lt", "le", "gt", "ge"})
_TESTS = _COMPARISONS | {"is_nan", "is_inf", "is_pos_inf", "is_neg_inf"}
_NUMBERS = frozenset({"neg", "abs", "sign", "add", "sub", "mul", "div", "mod", "fmod", "pow"})
_LOGIC = frozenset({"not", "and", "or", "xor"})
_BITS = frozenset({"bit_not", "bit_and", "bit_or", "bit_xor", "shl", "shr"})


def _is_defined(name: str, dtype: DType) -> bool:
    """Whether an instruction takes operands of a dtype (docs/program-format.md)."""
    if name in _COMPARISONS or name in ("min", "max", "where"):
        return True
    if name in _NUMBERS:
        return dtype is not BOOL
    if name in _LOGIC:
        return dtype is BOOL
    return not dtype.is_float and dtype is not BOOL if name in _BITS else dtype.is_float


def _unpadded(dims: Dims) -> Dims:
    """Dims without leading ones."""
    first = next((axis for axis, size in enumerate(dims) if size != 1), len(dims))
    return dims[first:]


def result_tensor(index: int, kind: TensorType, stored: Storage | None, dims: Dims) -> KernelTensor:
    """A result seen under other dims; one without elements has no strides of 0 either."""
    strides = packed([max(size, 1) for size in dims]) if 0 in dims else seen_strides(kind.static_dims(), stored, dims)
    return KernelTensor("out", index, kind.dtype, dims, strides)


def seen_strides(dims: Dims, stored: Storage | None, shown: Dims) -> Strides:
    """Strides that show a stored tensor under other dims."""
    strides = stored.strides if stored else packed(dims)
    seen = strides if dims == shown else restride(dims, strides, shown)
    if seen is None:
        raise Refusal("view", f"dims {dims} with strides {strides} cannot be viewed as {shown} without a copy")
    return seen

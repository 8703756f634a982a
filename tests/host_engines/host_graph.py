"""Builds graphs on the host library's C API from numpy arrays and runs them on a named engine."""

import ctypes
import os
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

import installed
from hipdnn_mlir_runtime.abi import Attribute, AttributeType, DataType, Descriptor, NormPhase, Pointwise, Reduce

ROWWISE = "HOST_ROWWISE_ENGINE"
REDUCTION = "HOST_REDUCTION_ENGINE"
# The host library's own extension: HIPDNN_ATTR_EXECUTION_PLAN_CONSTANT_UIDS_MLIR_EXT and _POINTERS_ of enums.json.
CONSTANT_UIDS, CONSTANT_POINTERS = 9000001, 9000002

_TYPES = {
    np.dtype(np.float32): DataType.FLOAT,
    np.dtype(np.float64): DataType.DOUBLE,
    np.dtype(np.float16): DataType.HALF,
    np.dtype(ml_dtypes.bfloat16): DataType.BFLOAT16,
    np.dtype(ml_dtypes.float8_e4m3fn): DataType.FP8_E4M3,
    np.dtype(ml_dtypes.float8_e5m2): DataType.FP8_E5M2,
    np.dtype(ml_dtypes.float8_e8m0fnu): DataType.FP8_E8M0,
    np.dtype(ml_dtypes.int4): DataType.INT4,
    np.dtype(np.int8): DataType.INT8,
    np.dtype(np.uint8): DataType.UINT8,
    np.dtype(np.int32): DataType.INT32,
    np.dtype(np.int64): DataType.INT64,
    np.dtype(np.bool_): DataType.BOOLEAN,
}
_PARAMETERS = {
    "lower": Attribute.POINTWISE_RELU_LOWER_CLIP,
    "upper": Attribute.POINTWISE_RELU_UPPER_CLIP,
    "slope": Attribute.POINTWISE_RELU_LOWER_CLIP_SLOPE,
    "swish_beta": Attribute.POINTWISE_SWISH_BETA,
    "elu_alpha": Attribute.POINTWISE_ELU_ALPHA,
    "softplus_beta": Attribute.POINTWISE_SOFTPLUS_BETA,
}
_INPUTS = (
    Attribute.OPERATION_POINTWISE_IN_0_EXT,
    Attribute.OPERATION_POINTWISE_IN_1_EXT,
    Attribute.OPERATION_POINTWISE_IN_2_EXT,
)


def library_path() -> Path:
    """The host library: `HIPDNN_HOST_LIBRARY`, else the one installed with the package."""
    given = os.environ.get("HIPDNN_HOST_LIBRARY")
    return Path(given) if given else installed.library("host")


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(str(library_path()))
    for name in ("hipdnnBackendSetAttribute", "hipdnnBackendGetAttribute"):
        function = getattr(library, name)
        function.argtypes = [
            ctypes.c_void_p,
            ctypes.c_int,
            ctypes.c_int,
            ctypes.c_int64,
            *([ctypes.c_void_p] if name.endswith("SetAttribute") else [ctypes.c_void_p, ctypes.c_void_p]),
        ]
    for name in ("hipdnnBackendFinalize", "hipdnnBackendDestroyDescriptor"):
        getattr(library, name).argtypes = [ctypes.c_void_p]
    library.hipdnnBackendExecute.argtypes = [ctypes.c_void_p] * 3
    library.hipdnnHostSetThreads_ext.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.hipdnnPortDescribePlan_ext.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t]
    library.hipdnnGetEngineIdByName_ext.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return library


class HostError(Exception):
    """A call failed; the text is the library's own last error."""


def _check(status: int) -> None:
    if status != 0:
        message = ctypes.create_string_buffer(4096)
        _library().hipdnnGetLastErrorString(message, ctypes.c_size_t(len(message)))
        raise HostError(message.value.decode())


_ELEMENTS: dict[int, Any] = {
    AttributeType.INT64: ctypes.c_int64,
    AttributeType.FLOAT: ctypes.c_float,
    AttributeType.BOOLEAN: ctypes.c_bool,
    AttributeType.VOID_PTR: ctypes.c_void_p,
    AttributeType.HANDLE: ctypes.c_void_p,
    AttributeType.BACKEND_DESCRIPTOR: ctypes.c_void_p,
}


class Backend:
    """One backend descriptor."""

    def __init__(self, kind: int) -> None:
        self.pointer = ctypes.c_void_p()
        _check(_library().hipdnnBackendCreateDescriptor(ctypes.c_int(kind), ctypes.byref(self.pointer)))

    def __del__(self) -> None:
        _library().hipdnnBackendDestroyDescriptor(self.pointer)

    def set(self, name: int, kind: int, values: Any) -> "Backend":
        if kind == AttributeType.CHAR:
            data: Any = ctypes.create_string_buffer(values, len(values))
        else:
            values = [v.pointer if isinstance(v, Backend) else v for v in values]
            data = (_ELEMENTS.get(kind, ctypes.c_int32) * len(values))(*values)
        _check(_library().hipdnnBackendSetAttribute(self.pointer, name, kind, len(values), data))
        return self

    def finalize(self) -> "Backend":
        _check(_library().hipdnnBackendFinalize(self.pointer))
        return self

    def integer(self, name: int) -> int:
        value, count = ctypes.c_int64(), ctypes.c_int64()
        status = _library().hipdnnBackendGetAttribute(
            self.pointer, name, AttributeType.INT64, 1, ctypes.byref(count), ctypes.byref(value)
        )
        _check(status)
        return value.value


@dataclass
class Operand:
    """One tensor of a graph: its descriptor and, unless virtual or baked, the array behind it."""

    uid: int
    descriptor: Backend
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    array: np.ndarray | None = None


def strided_like(shape: tuple[int, ...], dtype: Any, order: tuple[int, ...], gap: int = 0) -> np.ndarray:
    """An uninitialized array whose axes lie in memory in the given order, outermost first.

    Args:
        shape: Logical dims.
        dtype: Element type.
        order: Axes from outermost to innermost; (0, 2, 3, 1) stores NCHW dims channels-last.
        gap: Unused elements after each innermost run.
    """
    stored = [shape[axis] for axis in order]
    stored[-1] += gap
    base = np.full(stored, 77, dtype=dtype)
    view = base[..., : stored[-1] - gap] if gap else base
    return np.transpose(view, np.argsort(order))


@dataclass
class HostGraph:
    """A graph under construction. Methods return operands; `run` executes on the engine of that name."""

    operands: list[Operand] = field(default_factory=list)
    operations: list[Backend] = field(default_factory=list)

    def _tensor(self, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any], virtual: bool) -> Backend:
        tensor = Backend(Descriptor.TENSOR_DESCRIPTOR)
        tensor.set(Attribute.TENSOR_UNIQUE_ID, AttributeType.INT64, [len(self.operands) + 1])
        tensor.set(Attribute.TENSOR_DATA_TYPE, AttributeType.DATA_TYPE, [_TYPES[dtype]])
        tensor.set(Attribute.TENSOR_DIMENSIONS, AttributeType.INT64, list(shape))
        tensor.set(Attribute.TENSOR_STRIDES, AttributeType.INT64, list(strides))
        return tensor.set(Attribute.TENSOR_IS_VIRTUAL, AttributeType.BOOLEAN, [virtual])

    def _add(self, descriptor: Backend, shape: tuple[int, ...], dtype: Any, array: np.ndarray | None) -> Operand:
        operand = Operand(len(self.operands) + 1, descriptor.finalize(), shape, np.dtype(dtype), array)
        self.operands.append(operand)
        return operand

    def tensor(self, array: np.ndarray) -> Operand:
        """An input or output in the array's own memory and layout."""
        strides = tuple(s // array.itemsize for s in array.strides)
        return self._add(self._tensor(array.shape, strides, array.dtype, False), array.shape, array.dtype, array)

    def int4(self, array: np.ndarray, shape: tuple[int, ...], strides: tuple[int, ...]) -> Operand:
        """An input of int4 in an array of bytes, two to a byte with the first in the lower half; strides in elements."""
        kind = np.dtype(ml_dtypes.int4)
        return self._add(self._tensor(shape, strides, kind, False), shape, kind, array)

    def virtual(self, shape: tuple[int, ...], dtype: Any = np.float32) -> Operand:
        strides = tuple(int(np.prod(shape[i + 1 :], dtype=np.int64)) for i in range(len(shape)))
        return self._add(self._tensor(shape, strides, np.dtype(dtype), True), shape, dtype, None)

    def scalar(self, value: Any, dtype: Any = np.float32) -> Operand:
        tensor = self._tensor((1,), (1,), np.dtype(dtype), False)
        tensor.set(Attribute.TENSOR_VALUE_EXT, AttributeType.CHAR, np.array(value, dtype).tobytes())
        return self._add(tensor, (1,), dtype, None)

    def pointwise(
        self,
        mode: int,
        inputs: list[Operand],
        out: Operand,
        *,
        math: int = DataType.FLOAT,
        axis: int | None = None,
        **parameters: float,
    ) -> Operand:
        operation = Backend(Descriptor.OPERATION_POINTWISE_DESCRIPTOR)
        operation.set(Attribute.POINTWISE_MODE, AttributeType.POINTWISE_MODE, [mode])
        operation.set(Attribute.POINTWISE_MATH_PREC, AttributeType.DATA_TYPE, [math])
        for name, operand in zip(_INPUTS, inputs, strict=False):
            operation.set(name, AttributeType.BACKEND_DESCRIPTOR, [operand.descriptor])
        operation.set(Attribute.OPERATION_POINTWISE_OUT_0_EXT, AttributeType.BACKEND_DESCRIPTOR, [out.descriptor])
        if axis is not None:
            operation.set(Attribute.POINTWISE_AXIS, AttributeType.INT64, [axis])
        for name, value in parameters.items():
            operation.set(_PARAMETERS[name], AttributeType.FLOAT, [value])
        self.operations.append(operation.finalize())
        return out

    def reduction(self, operator: int, x: Operand, y: Operand, *, math: int = DataType.FLOAT) -> Operand:
        operation = Backend(Descriptor.OPERATION_REDUCTION_DESCRIPTOR)
        operation.set(Attribute.REDUCTION_OPERATOR, AttributeType.REDUCTION_OPERATOR_TYPE, [operator])
        operation.set(Attribute.REDUCTION_COMP_TYPE, AttributeType.DATA_TYPE, [math])
        operation.set(Attribute.REDUCTION_IS_DETERMINISTIC, AttributeType.BOOLEAN, [True])
        operation.set(Attribute.OPERATION_REDUCTION_XDESC, AttributeType.BACKEND_DESCRIPTOR, [x.descriptor])
        operation.set(Attribute.OPERATION_REDUCTION_YDESC, AttributeType.BACKEND_DESCRIPTOR, [y.descriptor])
        self.operations.append(operation.finalize())
        return y

    def norm(self, kind: str, x: Operand, scale: Operand, epsilon: Operand, y: Operand, **others: Operand) -> Operand:
        """A layer norm (`kind` "LAYERNORM") or RMS norm ("RMSNORM"); `others`: bias, mean, inv_variance, inv_rms."""
        operation = Backend(Descriptor[f"OPERATION_{kind}_DESCRIPTOR_EXT"])
        named = {"x": x, "scale": scale, "epsilon": epsilon, "y": y, **others}
        for name, operand in named.items():
            attribute = Attribute[f"OPERATION_{kind}_{name.upper()}_EXT"]
            operation.set(attribute, AttributeType.BACKEND_DESCRIPTOR, [operand.descriptor])
        phase = NormPhase.TRAINING if {"mean", "inv_rms"} & set(others) else NormPhase.INFERENCE
        operation.set(Attribute[f"OPERATION_{kind}_FWD_PHASE_EXT"], AttributeType.NORM_FWD_PHASE, [phase])
        operation.set(Attribute[f"{kind}_COMP_TYPE_EXT"], AttributeType.DATA_TYPE, [DataType.FLOAT])
        if kind == "LAYERNORM":
            count = sum(1 for dim in scale.shape if dim > 1)
            operation.set(Attribute.OPERATION_LAYERNORM_NORMALIZED_DIM_COUNT_EXT, AttributeType.INT64, [count])
        self.operations.append(operation.finalize())
        return y

    def batch_norm(self, tensors: dict[str, Operand]) -> None:
        """A batch norm of training; tensors by their attribute's name: "X", "NEXT_RUNNING_MEAN"."""
        operation = Backend(Descriptor.OPERATION_BATCHNORM_DESCRIPTOR_EXT)
        for name, operand in tensors.items():
            key = Attribute[f"OPERATION_BATCHNORM_{name}_EXT"]
            operation.set(key, AttributeType.BACKEND_DESCRIPTOR, [operand.descriptor])
        operation.set(Attribute.BATCHNORM_COMP_TYPE_EXT, AttributeType.DATA_TYPE, [DataType.FLOAT])
        self.operations.append(operation.finalize())

    def softmax(self, x: Operand, y: Operand, axis: int = -1, *, log: bool = False) -> Operand:
        """The node sequence of a (log-)softmax over one axis."""
        reduced = list(x.shape)
        reduced[axis] = 1
        rows = tuple(reduced)
        high = self.reduction(Reduce.MAX, x, self.virtual(rows))
        shifted = self.pointwise(Pointwise.SUB, [x, high], self.virtual(x.shape))
        power = self.pointwise(Pointwise.EXP, [shifted], self.virtual(x.shape))
        total = self.reduction(Reduce.ADD, power, self.virtual(rows))
        if not log:
            return self.pointwise(Pointwise.DIV, [power, total], y)
        return self.pointwise(Pointwise.SUB, [shifted, self.pointwise(Pointwise.LOG, [total], self.virtual(rows))], y)

    def plan(self, engine: str, threads: int = 2, constants: tuple[Operand, ...] = ()) -> "HostPlan":
        """A plan; the arrays of `constants` never change while it lives."""
        return HostPlan(self, engine, threads, constants)

    def run(self, engine: str = ROWWISE, threads: int = 2) -> None:
        """Builds a plan on that engine and executes it once.

        Raises:
            HostError: The engine refuses the graph or a call fails.
        """
        self.plan(engine, threads).execute()


@dataclass(frozen=True)
class Binding:
    """What one execution reads and writes: the variant pack and the memory it points to."""

    pack: Backend
    workspace: np.ndarray
    arrays: list[np.ndarray]


class HostPlan:
    """A finalized execution plan with the graph's own arrays bound to it."""

    def __init__(self, graph: HostGraph, engine: str, threads: int, constants: tuple[Operand, ...] = ()) -> None:
        library = _library()
        self._graph = graph
        self._handle = ctypes.c_void_p()
        _check(library.hipdnnCreate(ctypes.byref(self._handle)))
        _check(library.hipdnnHostSetThreads_ext(self._handle, threads))
        described = Backend(Descriptor.OPERATIONGRAPH_DESCRIPTOR)
        described.set(Attribute.OPERATIONGRAPH_OPS, AttributeType.BACKEND_DESCRIPTOR, graph.operations)
        for name in ("COMPUTE", "INTERMEDIATE", "IO"):
            described.set(Attribute[f"OPERATIONGRAPH_{name}_DATA_TYPE_EXT"], AttributeType.DATA_TYPE, [DataType.FLOAT])
        described.set(Attribute.OPERATIONGRAPH_HANDLE, AttributeType.HANDLE, [self._handle])
        described.finalize()
        identifier = ctypes.c_int64()
        _check(library.hipdnnGetEngineIdByName_ext(self._handle, engine.encode(), ctypes.byref(identifier)))
        chosen = Backend(Descriptor.ENGINE_DESCRIPTOR)
        chosen.set(Attribute.ENGINE_OPERATION_GRAPH, AttributeType.BACKEND_DESCRIPTOR, [described])
        chosen.set(Attribute.ENGINE_GLOBAL_INDEX, AttributeType.INT64, [identifier.value]).finalize()
        config = Backend(Descriptor.ENGINECFG_DESCRIPTOR)
        config.set(Attribute.ENGINECFG_ENGINE, AttributeType.BACKEND_DESCRIPTOR, [chosen]).finalize()
        self._plan = Backend(Descriptor.EXECUTION_PLAN_DESCRIPTOR)
        self._plan.set(Attribute.EXECUTION_PLAN_ENGINE_CONFIG, AttributeType.BACKEND_DESCRIPTOR, [config])
        if constants:
            pointers = [o.array.ctypes.data for o in constants if o.array is not None]
            self._plan.set(CONSTANT_UIDS, AttributeType.INT64, [o.uid for o in constants])
            self._plan.set(CONSTANT_POINTERS, AttributeType.VOID_PTR, pointers)
        self._plan.finalize()
        self._binding = self.bind({o.uid: o.array for o in graph.operands if o.array is not None})

    def bind(self, arrays: dict[int, np.ndarray]) -> Binding:
        """Arrays by uid, in the layouts of the graph's own, with a workspace that no other execution uses."""
        size = self._plan.integer(Attribute.EXECUTION_PLAN_WORKSPACE_SIZE)
        workspace = np.zeros(size + 64, np.uint8)
        pack = Backend(Descriptor.VARIANT_PACK_DESCRIPTOR)
        pack.set(Attribute.VARIANT_PACK_UNIQUE_IDS, AttributeType.INT64, list(arrays))
        pointers = [array.ctypes.data for array in arrays.values()]
        pack.set(Attribute.VARIANT_PACK_DATA_POINTERS, AttributeType.VOID_PTR, pointers)
        aligned = (workspace.ctypes.data + 63) // 64 * 64
        pack.set(Attribute.VARIANT_PACK_WORKSPACE, AttributeType.VOID_PTR, [aligned]).finalize()
        return Binding(pack, workspace, list(arrays.values()))

    def describe(self) -> str:
        text = ctypes.create_string_buffer(512)
        _check(_library().hipdnnPortDescribePlan_ext(self._plan.pointer, text, len(text)))
        return text.value.decode()

    def execute(self, binding: Binding | None = None) -> None:
        """Runs on the graph's own arrays, or on others that `bind` took."""
        pack = (binding or self._binding).pack
        _check(_library().hipdnnBackendExecute(self._handle, self._plan.pointer, pack.pointer))

    def __del__(self) -> None:
        _library().hipdnnDestroy(self._handle)

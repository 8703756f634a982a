"""Estimated times: of ONNX nodes on the host's CPU, of programs on the target."""

from collections.abc import Sequence
from math import prod
from typing import Any

import onnx

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import Descriptor as D
from hipdnn_mlir_runtime.dtypes import ALL, BY_NAME, I4

from ..frontend.onnx_types import BY_ONNX
from ..ops.strides import Dims, extent
from ..program.schema import Executable, Execute, Kernel, Launch, ProgramModel, Step
from ..targets.target import CostModel, Rates
from .graph import OnnxGraph
from .shapes import Types

_BYTES = {int(dtype.hipdnn): dtype.bytes for dtype in ALL if dtype.hipdnn is not None} | {I4.hipdnn_value: 0.5}
_CONVOLUTIONS = frozenset({"Conv", "ConvInteger", "FusedConv"})
_MATMULS = frozenset({"MatMul", "Gemm"})
_WEIGHTED = {
    int(D.OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR): (A.OPERATION_CONVOLUTION_FORWARD_Y, A.OPERATION_CONVOLUTION_FORWARD_W),
    int(D.OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR): (A.OPERATION_CONVOLUTION_BWD_DATA_DY, A.OPERATION_CONVOLUTION_BWD_DATA_W),
}  # fmt: skip
"""Convolutions: the tensor of which each element meets one filter, and the filters."""

_Attributes = dict[int, Any]


def value_bytes(graph: OnnxGraph, types: Types, name: str) -> int:
    """Size of a value; 0 where it is not known."""
    tensor = graph.constants.get(name)
    dims = tuple(tensor.dims) if tensor is not None else types.dims.get(name, (0,))
    kind = BY_ONNX.get(tensor.data_type if tensor is not None else types.kinds.get(name, 0))
    return prod(dims) * (kind.bytes if kind is not None else 0)


def node_us(graph: OnnxGraph, types: Types, index: int, rates: Rates) -> float:
    """Estimated time of one ONNX node."""
    node = graph.nodes[index]
    moved = sum(value_bytes(graph, types, name) for name in dict.fromkeys([*node.input, *node.output]) if name)
    return rates.time_us(node_flops(graph, types, node), moved)


def is_counted(node: onnx.NodeProto) -> bool:
    """Whether `node_flops` counts the work of a node."""
    return node.op_type in _CONVOLUTIONS | _MATMULS | {"ConvTranspose"}


def node_flops(graph: OnnxGraph, types: Types, node: onnx.NodeProto) -> float:
    """Floating-point operations of convolutions and matmuls; 0 of what else there is, which waits for memory."""

    def dims(name: str) -> Dims:
        tensor = graph.constants.get(name)
        return tuple(tensor.dims) if tensor is not None else types.dims.get(name, ())

    results = sum(prod(dims(name)) for name in node.output if name)
    if node.op_type in _CONVOLUTIONS:
        return 2.0 * results * prod(dims(node.input[1])[1:])
    if node.op_type == "ConvTranspose":
        return 2.0 * prod(dims(node.input[0])) * prod(dims(node.input[1])[1:])
    if node.op_type in _MATMULS:
        is_transposed = any(attribute.name == "transA" and attribute.i for attribute in node.attribute)
        return 2.0 * results * (dims(node.input[0]) or (1,))[0 if is_transposed else -1]
    return 0.0


def program_us(program: ProgramModel, model: CostModel) -> float:
    """Estimated time of a program: its steps one after the other, values inside a graph not moved."""
    executables = [_executable_us(executable, model.device) for executable in program.executables]
    kernels = [_kernel_us(kernel, model.device) for kernel in program.kernels]

    def step_us(step: Step) -> float:
        match step:
            case Execute():
                return executables[step.executable]
            case Launch():
                return kernels[step.kernel]
        return model.device.time_us(0, 2 * step.bytes)

    return sum(map(step_us, program.steps))


def _kernel_us(kernel: Kernel, rates: Rates) -> float:
    """Of a kernel, which waits for memory: what it writes, and as much of each operand as it can read for that."""
    sizes = [(t["role"], prod(t["dims"]), BY_NAME[t["dtype"]].bytes, _extent(t)) for t in kernel.tensors]
    most = sum(count for role, count, _, _ in sizes if role == "out")
    moved = sum(width * (count if role == "out" else min(most, extent)) for role, count, width, extent in sizes)
    return rates.time_us(0, moved)


def _extent(tensor: dict[str, Any]) -> int:
    return extent(tensor["dims"], tensor["strides"])


def _executable_us(executable: Executable, rates: Rates) -> float:
    descriptors = [(kind, {name: value for name, _, value in entries}) for kind, entries in executable.descriptors]
    stored = [a for kind, a in descriptors if kind == D.TENSOR_DESCRIPTOR and not a[A.TENSOR_IS_VIRTUAL][0]]
    moved = sum(prod(a[A.TENSOR_DIMENSIONS]) * _BYTES[a[A.TENSOR_DATA_TYPE][0]] for a in stored)
    return rates.time_us(sum(_operation_flops(kind, a, descriptors) for kind, a in descriptors), moved)


def _operation_flops(kind: int, attributes: _Attributes, descriptors: Sequence[tuple[int, _Attributes]]) -> float:
    def dims(name: A) -> Dims:
        return tuple(descriptors[attributes[name][0]][1][A.TENSOR_DIMENSIONS])

    if kind in _WEIGHTED:
        outer, weight = _WEIGHTED[kind]
        return 2.0 * prod(dims(outer)) * prod(dims(weight)[1:])
    if kind == D.OPERATION_MATMUL_DESCRIPTOR:
        return 2.0 * prod(dims(A.OPERATION_MATMUL_CDESC)) * dims(A.OPERATION_MATMUL_ADESC)[-1]
    if kind == D.OPERATION_SDPA_FWD_DESCRIPTOR:
        q, v = dims(A.OPERATION_SDPA_FWD_QDESC), dims(A.OPERATION_SDPA_FWD_VDESC)
        return 2.0 * prod(q[:3]) * v[2] * (q[3] + v[3])
    return 0.0

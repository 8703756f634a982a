"""Operation graphs as the op table emits them, on NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from gpu.emulated import check_writes, memory_for, results_in, run_launch
from hipdnn_mlir.codegen.core.arch import find_architecture
from hipdnn_mlir.codegen.generate import launch_of_graph
from hipdnn_mlir.ops.emitter import Emitter, Operand, Storage, Value
from hipdnn_mlir.ops.graph import Graph
from hipdnn_mlir.ops.registry import ONNX
from hipdnn_mlir.ops.spec import OpView, TensorArg, TensorType
from hipdnn_mlir.ops.table import find
from hipdnn_mlir_runtime import dtypes
from hipdnn_mlir_runtime.dtypes import BY_NAME
from host_kernels.kernel_runs import spec_of
from runtime_programs import Array, TensorSpec

Body = Callable[..., Value | list[Value]]


def graph_of(body: Body, arrays: Sequence[Array], outs: Sequence[TensorSpec]) -> Graph:
    """The graph that `body(emitter, values...)` writes for arrays of any strides."""
    emitter = Emitter(dtypes.F32)
    values = []
    for index, array in enumerate(arrays):
        spec = spec_of(array)
        emitter.bind(index, Operand(spec.dims, BY_NAME[spec.dtype], Storage(spec.steps)), index)
        values.append(emitter.value(TensorArg(index, TensorType(spec.dims, BY_NAME[spec.dtype]))))
    made = body(emitter, *values)
    results = []
    for index, (value, out) in enumerate(zip(made if isinstance(made, list) else [made], outs, strict=True)):
        kind = TensorType(out.dims, BY_NAME[out.dtype])
        emitter.define(("result", index), value, kind)
        results.append((("result", index), kind))
    return emitter.finish(results, [Storage(out.steps) for out in outs])


def row(name: str, *arguments: Any, results: Sequence[TensorSpec], **attributes: Any) -> Body:
    """A row of the op table, with attributes that of an ONNX operator; arguments that are `...` stand for the operands, in order."""

    def body(emitter: Emitter, *values: Value) -> Value | list[Value]:
        number = iter(range(len(values)))
        kinds = [TensorType(out.dims, BY_NAME[out.dtype]) for out in results]
        args = [_argument(emitter, next(number)) if argument is ... else argument for argument in arguments]
        full = f"{ONNX}{name}" if name[0].isupper() else f"torch.{name}"
        found = find(full)
        assert found is not None
        assert found.emit is not None
        used = (True,) + (False,) * (len(kinds) - 1)
        return found.emit(emitter, OpView(full, args, kinds, used=used, attributes=attributes))

    return body


def _argument(emitter: Emitter, key: int) -> TensorArg:
    tensor = emitter.graph.tensors[key]
    return TensorArg(key, TensorType(tensor.dims, tensor.dtype))


def run_graph(
    body: Body, arrays: Sequence[Array], outs: Sequence[TensorSpec], architecture: str = "sm_90"
) -> list[Array]:
    """Run a graph in the emulator and return its outputs."""
    arch = find_architecture(architecture)
    graph = graph_of(body, arrays, outs)
    order = [(operand["role"], operand["index"]) for operand in graph.operands()]
    assert len(order) == len(arrays) + len(outs)
    launch = launch_of_graph(graph, arch)
    places = [index if role == "in" else len(arrays) + index for role, index in order]
    memory = memory_for(arrays, outs)
    written = run_launch(launch, [memory[place] for place in places], arch)
    check_writes([written[places.index(len(arrays) + i)] for i in range(len(outs))], outs)
    return results_in(memory[len(arrays) :], outs)

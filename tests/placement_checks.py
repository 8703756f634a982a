"""Placements checked from outside: paths by direct search, values by running every part on its own and the rest on ONNX Runtime."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper

import hipdnn_mlir
from containers import memory_file, write_container
from hipdnn_mlir.frontend.shape_inference import static_dims
from hipdnn_mlir.placement import Partition, Placement
from hipdnn_mlir.service import server

Values = dict[str, np.ndarray]


def captured_names(node: onnx.NodeProto) -> set[str]:
    """Return every name that a node's subgraphs mention."""
    graphs = [a.g for a in node.attribute if a.HasField("g")]
    inner = [n for graph in graphs for n in graph.node]
    return {name for n in inner for name in {*n.input, *captured_names(n)}} | {v.name for g in graphs for v in g.output}


def successors(model: onnx.ModelProto) -> dict[str, set[str]]:
    """Return per node the nodes that read its results."""
    nodes = model.graph.node
    return {
        node.name: {
            other.name for other in nodes if (set(other.input) | captured_names(other)) & (set(node.output) - {""})
        }
        for node in nodes
    }


def assert_no_path_comes_back(model: onnx.ModelProto, parts: Iterable[Iterable[str]]) -> None:
    """No path leaves a part and comes back, other parts taken as wholes: from every exit, search for the part."""
    follow = successors(model)
    part_of = {name: frozenset(part) for part in parts for name in part}
    groups = {part_of.get(name, frozenset([name])) for name in follow}
    after = {g: {part_of.get(n, frozenset([n])) for m in g for n in follow[m]} - {g} for g in groups}
    for start in groups:
        seen: set[frozenset[str]] = set()
        stack = list(after[start])
        while stack:
            group = stack.pop()
            assert group != start, f"a path leaves {sorted(start)} and comes back"
            if group not in seen:
                seen.add(group)
                stack += after[group]


def submodel(model: onnx.ModelProto, names: Sequence[str]) -> onnx.ModelProto:
    """Return some nodes as a model of their own, types as the whole model declares them."""
    graph = model.graph
    nodes = [node for node in graph.node if node.name in set(names)]
    weights = [tensor for tensor in graph.initializer if any(tensor.name in node.input for node in nodes)]
    known = {tensor.name for tensor in weights} | {name for node in nodes for name in node.output} | {""}
    read = dict.fromkeys(name for node in nodes for name in node.input if name not in known)
    others = [node for node in graph.node if node.name not in set(names)]
    outside = {name for node in others for name in {*node.input, *captured_names(node)}} | {
        v.name for v in graph.output
    }
    written = [name for node in nodes for name in node.output if name in outside]
    types = {value.name: value for value in (*graph.value_info, *graph.input, *graph.output)}
    part = helper.make_graph(nodes, "part", [types[n] for n in read], [types[n] for n in written], weights)
    part.value_info.extend(types[n] for node in nodes for n in node.output if n in types and n not in written)
    made = helper.make_model(part, opset_imports=list(model.opset_import), functions=list(model.functions))
    made.ir_version = model.ir_version
    return made


def run_partition(model: onnx.ModelProto, partition: Partition, values: Values) -> Values:
    """Compile a partition as a host does, on request, and run it."""
    part = submodel(model, partition.nodes)
    dynamic = any(static_dims(value) is None for value in part.graph.input)
    assert partition.is_dynamic == dynamic
    request = {"action": "compile", "target": "host", "name": "part"}
    if dynamic:
        request["shapes"] = {value.name: list(values[value.name].shape) for value in part.graph.input}
    descriptors = [write_container(part), memory_file()]
    try:
        reply = json.loads(server.answer(json.dumps(request).encode(), descriptors))
        assert "result" in reply, reply
        session = hipdnn_mlir.load(f"/proc/self/fd/{descriptors[1]}")
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    outputs = session.run(None, {port.name: values[port.name] for port in session.inputs})
    return {port.name: array for port, array in zip(session.outputs, outputs, strict=True)}


def run_on_cpu(model: onnx.ModelProto, name: str, values: Values) -> Values:
    """Run one node on ONNX Runtime."""
    (node,) = (node for node in model.graph.node if node.name == name)
    graph = model.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    read = {*node.input, *captured_names(node)}
    fed = {n: values[n] for n in read if n in values}
    inputs = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in fed.items()
    ]
    outputs = [onnx.ValueInfoProto(name=n) for n in node.output if n]
    single = helper.make_graph([node], "single", inputs, outputs, [weights[n] for n in read if n in weights])
    made = helper.make_model(single, opset_imports=list(model.opset_import), functions=list(model.functions))
    made.ir_version = model.ir_version
    session = ort.InferenceSession(made.SerializeToString(), providers=["CPUExecutionProvider"])
    return dict(zip([n for n in node.output if n], session.run(None, fed), strict=True))


def run_assembled(model: onnx.ModelProto, placement: Placement, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Run partitions as programs and every other node on ONNX Runtime, each as soon as what it reads is there."""
    values: Values = dict(feeds)
    placed = {name for partition in placement.partitions for name in partition.nodes}
    units: list[Partition | str] = [*placement.partitions]
    units += [node.name for node in model.graph.node if node.name not in placed]
    by_name = {node.name: node for node in model.graph.node}
    constant = {tensor.name for tensor in model.graph.initializer} | {""}
    while units:
        for unit in units:
            nodes = [by_name[unit]] if isinstance(unit, str) else [by_name[name] for name in unit.nodes]
            inner = {name for node in nodes for name in node.output}
            needed = {name for node in nodes for name in node.input} - inner - constant
            if needed <= set(values):
                values |= (
                    run_on_cpu(model, unit, values) if isinstance(unit, str) else run_partition(model, unit, values)
                )
                units.remove(unit)
                break
        else:
            raise AssertionError(f"the parts wait for each other: {units}")
    return [values[output.name] for output in model.graph.output]


def assert_equals_onnxruntime(
    model: onnx.ModelProto,
    placement: Placement,
    feeds: Mapping[str, np.ndarray],
    rtol: float = 1e-3,
    atol: float = 1e-4,
) -> None:
    """Every node is placed, dropped or rejected, exactly once, and the parts together compute what ONNX Runtime does."""
    named = [name for partition in placement.partitions for name in partition.nodes]
    named += [name for nodes, _ in placement.dropped for name in nodes]
    named += sorted({reject.node for reject in placement.rejects})
    assert sorted(named) == sorted(node.name for node in model.graph.node)
    assert_no_path_comes_back(model, [partition.nodes for partition in placement.partitions])
    options = ort.SessionOptions()
    # One of its optimizations (1.31.1) takes the zeros of a Pad before a MaxPool for the pool's own padding.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    reference = session.run(None, dict(feeds))
    for got, want in zip(run_assembled(model, placement, feeds), reference, strict=True):
        np.testing.assert_allclose(got, want, rtol=rtol, atol=atol)

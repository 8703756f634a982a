"""Rowwise and reduction engines of the host library against one-operation models on ONNX Runtime's CPU EP, interleaved.

Usage: python bench/host_rowwise.py [--threads 2] [--rounds 400] [--json FILE]
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from hipdnn_mlir_runtime.abi import Pointwise, Reduce
from host_engines.host_graph import REDUCTION, ROWWISE, HostGraph, HostPlan

CHANNELS_LAST = (0, 2, 3, 1)
BATCH = 20


@dataclass
class Case:
    """One comparison: a model of one node, and the same computation as a host graph."""

    name: str
    operation: str
    inputs: list[np.ndarray]
    output: np.ndarray
    build: Callable[[HostGraph, list[np.ndarray], np.ndarray], None]
    attributes: dict[str, Any]
    engine: str = ROWWISE
    constants: tuple[np.ndarray, ...] = ()


def ort_runner(case: Case, threads: int) -> tuple[Callable[[], None], np.ndarray]:
    """An ONNX Runtime call into preallocated output, and that output."""
    dense = [np.ascontiguousarray(a) for a in case.inputs]
    names = [f"i{i}" for i in range(len(dense))]
    constants = [numpy_helper.from_array(c, f"c{i}") for i, c in enumerate(case.constants)]
    node = helper.make_node(case.operation, names + [c.name for c in constants], ["y"], **case.attributes)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in zip(names, dense, strict=True)]
    graph = helper.make_graph(
        [node], "g", infos, [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    result = session.run(None, dict(zip(names, dense, strict=True)))[0]
    binding = session.io_binding()
    for name, array in zip(names, dense, strict=True):
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    target = ort.OrtValue.ortvalue_from_numpy(np.empty_like(result))
    binding.bind_ortvalue_output("y", target)
    return lambda: session.run_with_iobinding(binding), result


def host_runner(case: Case, threads: int) -> HostPlan:
    """A finalized plan of the case's graph."""
    graph = HostGraph()
    case.build(graph, case.inputs, case.output)
    return graph.plan(case.engine, threads)


def binary(mode: int) -> Callable[[HostGraph, list[np.ndarray], np.ndarray], None]:
    """A builder of one two-operand node."""
    return lambda g, ins, out: void(g.pointwise(mode, [g.tensor(a) for a in ins], g.tensor(out)))


def void(_: object) -> None:
    """Drop a builder's result."""


def unary(mode: int, **parameters: float) -> Callable[[HostGraph, list[np.ndarray], np.ndarray], None]:
    """A builder of one one-operand node."""
    return lambda g, ins, out: void(g.pointwise(mode, [g.tensor(ins[0])], g.tensor(out), **parameters))


def reduction(operator: int) -> Callable[[HostGraph, list[np.ndarray], np.ndarray], None]:
    """A builder of one reduction to the output's shape."""
    return lambda g, ins, out: void(g.reduction(operator, g.tensor(ins[0]), g.tensor(out)))


def layer_norm(g: HostGraph, ins: list[np.ndarray], out: np.ndarray) -> None:
    """A layer norm over the last axis."""
    void(g.norm("LAYERNORM", g.tensor(ins[0]), g.tensor(ins[1]), g.scalar(1e-5), g.tensor(out), bias=g.tensor(ins[2])))


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 64 bytes, where a program's buffers and ONNX Runtime's lie."""
    room = np.empty(array.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    copy = room[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def cases(rng: np.random.Generator) -> list[Case]:
    """All comparisons."""

    def a(*shape: int) -> np.ndarray:
        return aligned(rng.standard_normal(shape, dtype=np.float32))

    def like(*shape: int) -> np.ndarray:
        return aligned(np.zeros(shape, np.float32))

    def channels_last(array: np.ndarray) -> np.ndarray:
        return aligned(np.ascontiguousarray(array.transpose(CHANNELS_LAST))).transpose(0, 3, 1, 2)

    def transposed(*shape: int) -> Case:
        view = channels_last(np.zeros(shape, np.float32))
        return Case(
            f"Transpose NCHW->NHWC {shape}",
            "Transpose",
            [a(*shape)],
            view,
            unary(Pointwise.IDENTITY),
            {"perm": [0, 2, 3, 1]},
        )

    softmax = lambda g, i, o: void(g.softmax(g.tensor(i[0]), g.tensor(o)))  # noqa: E731
    full, bias, row = a(1, 64, 56, 56), a(1, 64, 1, 1), a(1, 1, 1, 56)
    mean = {"keepdims": 1}
    axes = (np.array([2, 3], np.int64),)
    wide = a(1, 2048, 7, 7)
    return [
        Case("Softmax [12,128,128]", "Softmax", [a(12, 128, 128)], like(12, 128, 128), softmax, {"axis": -1}),
        Case("Softmax [1,1000]", "Softmax", [a(1, 1000)], like(1, 1000), softmax, {"axis": -1}),
        Case("Add [1,64,56,56] full", "Add", [full, a(*full.shape)], like(*full.shape), binary(Pointwise.ADD), {}),
        Case("Add [1,64,56,56] channel", "Add", [full, bias], like(*full.shape), binary(Pointwise.ADD), {}),
        Case("Add [1,64,56,56] row", "Add", [full, row], like(*full.shape), binary(Pointwise.ADD), {}),
        Case("Relu [1,64,56,56]", "Relu", [full], like(*full.shape), unary(Pointwise.RELU_FWD), {}),
        Case(
            "LayerNorm [128,768]",
            "LayerNormalization",
            [a(128, 768), a(1, 768), a(1, 768)],
            like(128, 768),
            layer_norm,
            {"axis": -1},
        ),
        Case("Gelu [128,3072]", "Gelu", [a(128, 3072)], like(128, 3072), unary(Pointwise.GELU_FWD), {}),
        Case("Tanh [128,3072]", "Tanh", [a(128, 3072)], like(128, 3072), unary(Pointwise.TANH_FWD), {}),
        Case("Erf [128,3072]", "Erf", [a(128, 3072)], like(128, 3072), unary(Pointwise.ERF), {}),
        Case("Sigmoid [128,3072]", "Sigmoid", [a(128, 3072)], like(128, 3072), unary(Pointwise.SIGMOID_FWD), {}),
        Case("Exp [128,3072]", "Exp", [a(128, 3072)], like(128, 3072), unary(Pointwise.EXP), {}),
        Case(
            "ReduceMean HW [1,2048,7,7]",
            "ReduceMean",
            [wide],
            like(1, 2048, 1, 1),
            reduction(Reduce.AVG),
            mean,
            REDUCTION,
            axes,
        ),
        Case(
            "  the same, channels-last",
            "ReduceMean",
            [channels_last(wide)],
            like(1, 2048, 1, 1),
            reduction(Reduce.AVG),
            mean,
            REDUCTION,
            axes,
        ),
        Case(
            "ReduceMean HW [1,64,56,56]",
            "ReduceMean",
            [full],
            like(1, 64, 1, 1),
            reduction(Reduce.AVG),
            mean,
            REDUCTION,
            axes,
        ),
        Case(
            "  the same, channels-last",
            "ReduceMean",
            [channels_last(full)],
            like(1, 64, 1, 1),
            reduction(Reduce.AVG),
            mean,
            REDUCTION,
            axes,
        ),
        transposed(1, 3, 224, 224),
        transposed(1, 64, 56, 56),
    ]


def elapsed_us(call: Callable[[], None]) -> float:
    """Time of one call in microseconds."""
    start = time.perf_counter_ns()
    call()
    return (time.perf_counter_ns() - start) / 1000


def batch(call: Callable[[], None]) -> list[float]:
    """Times of a batch of calls, after a pause in which the other library's threads stop spinning, and a warm-up."""
    time.sleep(0.02)
    call()
    return [elapsed_us(call) for _ in range(BATCH)]


def main() -> None:
    """Run all cases and print medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=400)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = []
    print(f"{'case':38} {'host us':>9} {'ORT us':>9} {'host/ORT':>9} {'max diff':>9}")
    for case in cases(np.random.default_rng(0)):
        reference, expected = ort_runner(case, options.threads)
        plan = host_runner(case, options.threads)
        plan.execute()
        got = case.output.transpose(0, 2, 3, 1) if case.operation == "Transpose" else case.output
        difference = float(np.abs(got - expected).max())
        host, other = [], []
        for _ in range(options.rounds // BATCH):
            host += batch(plan.execute)
            other += batch(reference)
        row = {
            "case": case.name.strip(),
            "host_us": median(host),
            "ort_us": median(other),
            "max_difference": difference,
        }
        rows.append(row)
        ratio = median(host) / median(other)
        print(f"{case.name:38} {median(host):9.1f} {median(other):9.1f} {ratio:9.2f} {difference:9.1e}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()

"""Convolutions and matrix products of ResNet-50, MobileNetV2 and BERT on the oneDNN engine, against ONNX Runtime's CPU provider.

One-node models and plans take turns; the time a plan takes to build is printed beside them.
ONNX Runtime's share includes the reorders into and out of its blocked layout, which a whole model pays only at its ends.

Usage: python bench/host_onednn.py [--threads 2] [--rounds 60] [--json FILE]
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from hipdnn_mlir_runtime.abi import Pointwise
from host_engines.anchor_graph import ONEDNN, AnchorGraph, channels_last

PAUSE_S = 0.01
"""Between the two libraries' turns, until the other one's threads have gone to sleep."""


@dataclass
class Convolution:
    """A square convolution with bias and relu on a channels-last image of batch 1."""

    channels: int
    size: int
    filters: int
    taps: int
    stride: int = 1
    groups: int = 1
    residual: bool = False

    def __str__(self) -> str:
        kind = "dw" if self.groups > 1 else "conv"
        end = " + add" if self.residual else ""
        return f"{kind}{self.taps}x{self.taps}/{self.stride} {self.channels}x{self.size}x{self.size} -> {self.filters}{end}"

    @property
    def pads(self) -> list[int]:
        """Half the filter on every side."""
        return [self.taps // 2] * 4

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Image, filters, bias, residual."""
        rng = np.random.default_rng(0)
        out = (self.size + 2 * (self.taps // 2) - self.taps) // self.stride + 1
        shapes = (
            (1, self.channels, self.size, self.size),
            (self.filters, self.channels // self.groups, self.taps, self.taps),
            (1, self.filters, 1, 1),
            (1, self.filters, out, out),
        )
        return tuple(rng.standard_normal(s, np.float32) for s in shapes)  # type: ignore[return-value]

    def model(self) -> tuple[list[object], dict[str, np.ndarray], dict[str, np.ndarray]]:
        """ONNX nodes, inputs, weights."""
        x, w, bias, residual = self.arrays()
        attributes = {"strides": [self.stride] * 2, "pads": self.pads, "group": self.groups}
        nodes = [helper.make_node("Conv", ["x", "w", "b"], ["c"], **attributes)]
        inputs = {"x": x}
        last = "c"
        if self.residual:
            nodes.append(helper.make_node("Add", ["c", "r"], ["s"]))
            inputs["r"], last = residual, "s"
        nodes.append(helper.make_node("Relu", [last], ["y"]))
        return nodes, inputs, {"w": w, "b": bias.reshape(-1)}

    def graph(self) -> tuple[AnchorGraph, tuple[object, ...]]:
        """The same for the host library, and its constants."""
        x, w, bias, residual = self.arrays()
        graph = AnchorGraph()
        weights = graph.tensor(w)
        value = graph.virtual(residual.shape)
        graph.convolution(graph.tensor(channels_last(x)), weights, value, [self.stride] * 2, self.pads, [1, 1])
        value = graph.then(Pointwise.ADD, value, graph.tensor(bias))
        if self.residual:
            value = graph.then(Pointwise.ADD, value, graph.tensor(channels_last(residual)))
        graph.then(Pointwise.RELU_FWD, value, out=graph.tensor(channels_last(np.zeros_like(residual))))
        return graph, (weights,)


@dataclass
class Product:
    """A matrix product with constant right operand and bias."""

    rows: int
    inner: int
    columns: int

    def __str__(self) -> str:
        return f"matmul {self.rows}x{self.inner} * {self.inner}x{self.columns}"

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Left and right operand, bias."""
        rng = np.random.default_rng(0)
        shapes = ((self.rows, self.inner), (self.inner, self.columns), (1, self.columns))
        return tuple(rng.standard_normal(s, np.float32) for s in shapes)  # type: ignore[return-value]

    def model(self) -> tuple[list[object], dict[str, np.ndarray], dict[str, np.ndarray]]:
        """ONNX nodes, inputs, weights."""
        x, w, bias = self.arrays()
        return [helper.make_node("Gemm", ["x", "w", "b"], ["y"])], {"x": x}, {"w": w, "b": bias}

    def graph(self) -> tuple[AnchorGraph, tuple[object, ...]]:
        """The same for the host library, and its constants."""
        x, w, bias = self.arrays()
        graph = AnchorGraph()
        weights = graph.tensor(w)
        value = graph.matmul(graph.tensor(x), weights, graph.virtual((self.rows, self.columns)))
        graph.then(
            Pointwise.ADD, value, graph.tensor(bias), out=graph.tensor(np.zeros((self.rows, self.columns), np.float32))
        )
        return graph, (weights,)


CASES: list[Convolution | Product] = [
    Convolution(3, 224, 64, 7, 2),
    *(
        case
        for channels, size in ((64, 56), (128, 28), (256, 14), (512, 7))
        for case in (
            Convolution(4 * channels, size, channels, 1),
            Convolution(channels, size, channels, 3),
            Convolution(channels, size, 4 * channels, 1, residual=True),
        )
    ),
    Convolution(256, 56, 512, 1, 2),
    Convolution(128, 56, 128, 3, 2),
    Convolution(32, 112, 32, 3, groups=32),
    Convolution(16, 112, 96, 1),
    Convolution(144, 56, 144, 3, groups=144),
    Convolution(384, 14, 64, 1, residual=True),
    Convolution(576, 14, 576, 3, 2, groups=576),
    Convolution(320, 7, 1280, 1),
    Product(1, 2048, 1000),
    Product(128, 768, 768),
    Product(128, 768, 3072),
    Product(128, 3072, 768),
]


def ort_call(case: Convolution | Product, threads: int) -> Callable[[], None]:
    """One run of the case's model into preallocated memory."""
    nodes, inputs, weights = case.model()
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, a.shape) for n, a in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in inputs.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    result = session.run(None, inputs)[0]
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.empty_like(result)))
    return lambda: session.run_with_iobinding(binding)


def times_us(call: Callable[[], None], rounds: int) -> list[float]:
    """Microseconds of each of `rounds` calls, after one that does not count."""
    call()
    samples = []
    for _ in range(rounds):
        start = time.perf_counter_ns()
        call()
        samples.append((time.perf_counter_ns() - start) / 1000)
    return samples


def measure(case: Convolution | Product, threads: int, rounds: int) -> dict[str, object]:
    """Medians of both libraries in turns of a tenth of the rounds, and what building the plan took."""
    graph, constants = case.graph()
    start = time.perf_counter_ns()
    plan = graph.plan(ONEDNN, threads, constants)  # type: ignore[arg-type]
    build_us = (time.perf_counter_ns() - start) / 1000
    reference = ort_call(case, threads)
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(10):
        for call, samples in ((plan.execute, ours), (reference, theirs)):
            time.sleep(PAUSE_S)
            samples.extend(times_us(call, max(rounds // 10, 1)))
    return {
        "case": str(case),
        "plan": plan.describe(),
        "ours_us": median(ours),
        "ort_us": median(theirs),
        "ratio": median(ours) / median(theirs),
        "build_us": build_us,
    }


def main() -> None:
    """Prints one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    for case in CASES:
        row = measure(case, arguments.threads, arguments.rounds)
        rows.append(row)
        line = (
            "{case:42s} {ours_us:9.1f} us  ort {ort_us:9.1f} us  ratio {ratio:5.2f}  build {build_us:8.0f} us  {plan}"
        )
        sys.stdout.write(line.format(**row) + "\n")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()

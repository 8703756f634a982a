"""Any convolution of two spatial dims runs wholly on the provider and equals ONNX Runtime's CPU provider in f32."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from drawing import draws
from ort_ep import sessions

ROUNDING = {"float32": 2.0**-20, "float16": 2.0**-10}
"""Largest error, as a part of the sum of the products' magnitudes.

f32: both sides sum hundreds of products, each addition rounded by 2^-24. f16: the products are summed in f32; the sum, and the sum with the
bias, are rounded by 2^-11.
"""
SMALLEST = {"float32": 2.0**-149, "float16": 2.0**-24}
"""What a result below the normal numbers may miss besides."""


@dataclass(frozen=True)
class Convolution:
    """One Conv node; pairs are of height and width, pads as ONNX orders them: low h, low w, high h, high w."""

    batch: int
    groups: int
    c_in_per_group: int
    c_out_per_group: int
    size: tuple[int, int]
    kernel: tuple[int, int]
    strides: tuple[int, int]
    dilations: tuple[int, int]
    pads: tuple[int, int, int, int]
    has_bias: bool
    has_constant_weights: bool
    dtype: str
    kind: str
    seed: int

    def operands(self) -> dict[str, np.ndarray]:
        """Return x, w and, where there is one, b."""
        rng = np.random.default_rng(self.seed)
        c_in, c_out = self.groups * self.c_in_per_group, self.groups * self.c_out_per_group
        dims = {"x": (self.batch, c_in, *self.size), "w": (c_out, self.c_in_per_group, *self.kernel), "b": (c_out,)}
        if not self.has_bias:
            del dims["b"]
        return {name: rng.standard_normal(shape).astype(self.dtype) for name, shape in dims.items()}

    def node(self, result: str, prefix: str = "") -> onnx.NodeProto:
        """Return the node on operands whose names have a prefix."""
        return helper.make_node(
            "Conv",
            [prefix + name for name in ("x", "w", "b")[: 2 + self.has_bias]],
            [result],
            name=f"{prefix}conv",
            kernel_shape=self.kernel,
            strides=self.strides,
            dilations=self.dilations,
            pads=self.pads,
            group=self.groups,
        )

    def model(self) -> onnx.ModelProto:
        """Return the model under test."""
        operands = self.operands()
        given = {name: operands[name] for name in (["x"] if self.has_constant_weights else operands)}
        constant = [numpy_helper.from_array(array, name) for name, array in operands.items() if name not in given]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        inputs = [helper.make_tensor_value_info(name, kind, array.shape) for name, array in given.items()]
        outputs = [helper.make_tensor_value_info("y", kind, [self.batch, None, None, None])]
        return _model([self.node("y")], inputs, outputs, constant)

    def reference(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the result and the sum of the products' magnitudes, both computed by ONNX Runtime in f32."""
        operands = {name: array.astype(np.float32) for name, array in self.operands().items()}
        operands |= {f"abs_{name}": np.abs(array) for name, array in operands.items()}
        inputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, array.shape) for n, array in operands.items()]
        outputs = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 4) for n in ("y", "magnitude")]
        model = _model([self.node("y"), self.node("magnitude", "abs_")], inputs, outputs, [])
        y, magnitude = sessions.reference(model, operands)
        return y, magnitude


def _model(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: list[onnx.TensorProto],
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "convolution", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@st.composite
def convolutions(draw: st.DrawFn) -> Convolution:
    """Draw a convolution: ordinary, grouped or depthwise, its kernel inside the padded image."""
    kernel = draw(st.sampled_from([(1, 1), (3, 3), (5, 5), (7, 7), (1, 3), (3, 5)]))
    dilations = draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    reach = [d * (k - 1) + 1 for d, k in zip(dilations, kernel, strict=True)]
    symmetric = draw(st.booleans())
    low = [draw(st.integers(0, k // 2 + 1)) for k in kernel]
    high = low if symmetric else [draw(st.integers(0, k // 2 + 1)) for k in kernel]
    least = [max(1, r - a - b) for r, a, b in zip(reach, low, high, strict=True)]
    groups = draw(st.sampled_from([1, 1, 2, 3, 8, 16]))
    is_depthwise = groups > 1 and draw(st.booleans())
    return Convolution(
        batch=draw(st.integers(1, 16)),
        groups=groups,
        c_in_per_group=1 if is_depthwise else draw(st.integers(1, 17)),
        c_out_per_group=draw(st.integers(1, 2 if is_depthwise else 9)),
        size=(least[0] + draw(st.integers(0, 12)), least[1] + draw(st.integers(0, 12))),
        kernel=kernel,
        strides=draw(st.tuples(st.integers(1, 3), st.integers(1, 3))),
        dilations=dilations,
        pads=(*low, *high),
        has_bias=draw(st.booleans()),
        has_constant_weights=draw(st.booleans()),
        dtype=draw(st.sampled_from(sorted(ROUNDING))),
        kind=draw(st.sampled_from(sessions.KINDS)),
        seed=draw(st.integers(0, 99)),
    )


@pytest.fixture(scope="module")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@draws(30)
@given(case=convolutions())
@example(Convolution(1, 1, 3, 64, (28, 28), (7, 7), (2, 2), (1, 1), (3, 3, 3, 3), True, True, "float32", "cpu", 0))
@example(Convolution(2, 32, 1, 1, (14, 14), (3, 3), (2, 2), (1, 1), (0, 0, 1, 1), True, True, "float16", "cpu", 0))
def test_convolution_equals_the_cpu_provider_when_wholly_placed(cache_dir: Path, case: Convolution) -> None:
    session = sessions.make_session(case.model(), cache_dir, kind=case.kind, wholly=True)
    assert sessions.placed_nodes(session) == (["conv"], [])
    operands = case.operands()
    (got,) = session.run(None, {port.name: operands[port.name] for port in session.get_inputs()})
    want, magnitude = case.reference()
    assert got.dtype == case.dtype
    error = np.abs(got.astype(np.float64) - want)
    assert np.all(error <= ROUNDING[case.dtype] * magnitude + SMALLEST[case.dtype]), (
        f"error {error.max()}, allowed at its place {magnitude.flat[error.argmax()]}"
    )

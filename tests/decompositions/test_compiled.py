"""Models of operators that are written out run wholly in one program, and give what ONNX Runtime's CPU provider gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import hipdnn_mlir
from decompositions.node_models import Arrays, node_model, run
from decompositions.test_attention import CACHE, GROUPS, KEY_MASK, group_query, numbers
from decompositions.test_quantized import A, Y, scale, signed, unsigned, zero


def compiled_steps(model: onnx.ModelProto, inputs: Arrays) -> list[str]:
    """Assert that the compiled model gives the same; return the kinds of its steps."""
    program = hipdnn_mlir.compile(model)
    session = program.session()
    got = session.run(None, {port.name: inputs[port.name] for port in session.inputs})
    for mine, theirs in zip(got, run(model, inputs), strict=True):
        np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=1e-4, atol=1e-5)
    return [step["kind"] for step in program.model.to_dict()["steps"]]


@pytest.mark.parametrize("is_causal", [0, 1])
def test_attention_is_one_graph_behind_the_projection(is_causal: int) -> None:
    inputs = {"x": numbers(2, 5, 32), "w": numbers(32, 96) / 6, "b": numbers(96)}
    model = node_model("Attention", inputs, constants=["w", "b"], num_heads=4, unidirectional=is_causal)
    assert compiled_steps(model, inputs) == ["execute", "execute"]


def test_masked_attention_runs() -> None:
    inputs = {"x": numbers(2, 5, 32), "w": numbers(32, 96) / 6, "b": numbers(96), "mask": KEY_MASK}
    compiled_steps(node_model("Attention", inputs, constants=["w", "b"], num_heads=4), inputs)


@pytest.mark.parametrize(("queries", "past", "batch"), [(5, None, 2), (5, 3, 1), (1, 3, 2)])
def test_group_query_attention_runs(queries: int, past: int | None, batch: int) -> None:
    inputs, operands = group_query(queries, past, batch, is_rotated=True)
    model = node_model("GroupQueryAttention", inputs, CACHE, operands=operands, do_rotary=1, **GROUPS)
    compiled_steps(model, inputs)


def test_group_query_attention_runs_when_batch_sequence_and_past_are_open() -> None:
    inputs, operands = group_query(1, 3, 2, is_rotated=True)
    weights = ["cos", "sin"]
    model = node_model(
        "GroupQueryAttention", inputs, CACHE, operands=operands, constants=weights, do_rotary=1, **GROUPS
    )
    symbols = {"q": "bs", "k": "bs", "v": "bs", "past_k": "b p", "past_val": "b p", "last": "b"}
    for value in model.graph.input:
        for dim, symbol in zip(value.type.tensor_type.shape.dim, symbols.get(value.name, ""), strict=False):
            if symbol != " ":
                dim.dim_param = symbol
    session = hipdnn_mlir.compile(model).session()
    for queries, past, last in ((1, 3, [3, 3]), (1, 9, [9, 2, 5, 0]), (6, 2, [7])):
        fed, _ = group_query(queries, past, len(last), is_rotated=True, last=last)
        got = session.run(None, {port.name: fed[port.name] for port in session.inputs})
        want = run(model, fed)
        np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)
        for mine, theirs in zip(got[1:], want[1:], strict=True):
            for row, end in enumerate(last):
                np.testing.assert_allclose(mine[row, :, : end + 1], theirs[row, :, : end + 1], rtol=1e-5, atol=1e-6)


def test_norms_and_activations_are_few_graphs() -> None:
    gamma = {"gamma": numbers(8)}
    skip = {"x": numbers(2, 5, 8), "skip": numbers(2, 5, 8, seed=1), **gamma, "bias": numbers(8, seed=2)}
    rms = node_model("SkipSimplifiedLayerNormalization", skip, ("y", "", "", "sum"))
    assert len(compiled_steps(rms, skip)) <= 2
    inputs = {"x": numbers(2, 5, 8), **gamma}
    norm = node_model("SimplifiedLayerNormalization", inputs, domain="")
    assert compiled_steps(norm, inputs) == ["execute"]
    assert compiled_steps(node_model("BiasGelu", inputs), inputs) == ["execute"]


def test_quantized_products_run() -> None:
    inputs = {"a": unsigned(2, 5, 16), **A, "b": signed(16, 7), "b_scale": scale(0.05), "b_zero": zero(3, np.int8), **Y}
    compiled_steps(node_model("QLinearMatMul", inputs, domain=""), inputs)


@pytest.mark.parametrize("align_corners", [0, 1])
def test_affine_grid_has_the_sizes_of_each_run(align_corners: int) -> None:
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 20]>
        g (float[n,2,3] theta, float[n,c,h,w] x) => (float[n,p,q,2] y) {{
            s = Shape(x) y = AffineGrid<align_corners={align_corners}>(theta, s) }}""")
    session = hipdnn_mlir.compile(model).session()
    for n, h, w in ((2, 4, 5), (1, 3, 7)):
        feeds = {"theta": numbers(n, 2, 3), "x": numbers(n, 2, h, w)}
        np.testing.assert_allclose(session.run(None, feeds)[0], run(model, feeds)[0], rtol=1e-4, atol=1e-5)

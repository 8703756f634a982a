"""Outputs at the last valid position alone are what ONNX Runtime computes there of the model as it is."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper, numpy_helper

import hipdnn_mlir
from hipdnn_mlir_runtime.errors import ModelError

WIDTH, WORDS = 48, 70
HEADS = {
    "product": "logits = MatMul(h, w)",
    "soft cap": "a = MatMul(h, w) b = Div(a, cap) c = Tanh(b) logits = Mul(c, cap)",
    "bias and cast": "a = MatMul(h, w) b = Add(a, bias) logits = Cast<to=1>(b)",
    "weights of the embedding": "t = Transpose<perm=[1, 0]>(tied) logits = MatMul(h, t)",
    "4 bits": "logits = com.microsoft.MatMulNBits<K=48, N=70, bits=4, block_size=16>(h, codes, scales)",
    "operands in the other order": "a = MatMul(h, w) logits = Sub(cap, a)",
    "no product": "n = ReduceMean<keepdims=1>(h, axis) a = Sub(h, n) logits = Exp(a)",
    "sum over positions": "a = MatMul(h, w) logits = CumSum(a, one)",
    "product that is read twice": "a = MatMul(h, w) logits = Identity(a) y = ReduceMax(a)",
    "logits that are read": "logits = MatMul(h, w) y = ReduceMax(logits)",
}
"""How logits come of a hidden state h."""


def _model(head: str) -> onnx.ModelProto:
    more = ", float[] y" if " y = " in head else ""
    words = WIDTH if head == HEADS["no product"] else WORDS
    model = onnx.parser.parse_model(
        f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
        g (float[b,s,{WIDTH}] x, int64[b,t] attention_mask) => (float[b,s,{words}] logits{more}) {{
        cap = Constant<value = float {{2.0}}>() axis = Constant<value_ints=[1]>() one = Constant<value_int=1>()
        h = Relu(x) {head} }}"""
    )
    if more:  # a scalar, whatever the reduction keeps
        next(node for node in model.graph.node if node.op_type == "ReduceMax").attribute.append(
            helper.make_attribute("keepdims", 0)
        )
    rng = np.random.default_rng(3)
    constants = {
        "w": rng.standard_normal((WIDTH, WORDS), np.float32),
        "tied": rng.standard_normal((WORDS, WIDTH), np.float32),
        "bias": rng.standard_normal(WORDS, np.float32),
        "codes": rng.integers(0, 256, (WORDS, 3, 8), np.uint8),
        "scales": rng.random((WORDS, 3), np.float32),
    }
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(numpy_helper.from_array(a, name) for name, a in constants.items() if name in read)
    return model


def _feeds(valid: list[int], sequence: int) -> dict[str, np.ndarray]:
    x = np.random.default_rng(4).standard_normal((len(valid), sequence, WIDTH), np.float32)
    total = max(*valid, sequence)
    return {"x": x, "attention_mask": (np.arange(total) < np.array(valid)[:, None]).astype(np.int64)}


@pytest.mark.parametrize("head", list(HEADS))
def test_outputs_are_those_of_the_last_valid_position(head: str) -> None:
    model = _model(HEADS[head])
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = hipdnn_mlir.compile(model, last_valid={"logits": "attention_mask"}).session()
    # Rows that are padded, rows behind a cache, and a step of one token.
    for valid, sequence in (([5], 5), ([5, 1, 3], 5), ([9, 4, 12], 4), ([7, 3], 1)):
        feeds = _feeds(valid, sequence)
        (want, *others), (got, *more) = reference.run(None, feeds), session.run(None, feeds)
        last = np.minimum(valid, sequence) - 1
        np.testing.assert_allclose(got, want[np.arange(len(valid)), last][:, None], rtol=1e-4, atol=1e-4)
        for one, other in zip(others, more, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4)


@pytest.mark.parametrize("head", ["product", "soft cap", "bias and cast", "weights of the embedding", "4 bits"])
def test_products_are_of_one_row_for_each_text(head: str) -> None:
    sizes = {"b": 3, "s": 40, "t": 40}
    program = hipdnn_mlir.compile(_model(HEADS[head]), shapes=sizes, last_valid={"logits": "attention_mask"})
    written = [buffer.bytes for buffer in program.model.buffers if buffer.kind != "constant"]
    assert max(written) == 4 * 3 * 40 * WIDTH  # the hidden states; logits of all positions would be larger


@pytest.mark.parametrize("kind", [onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16])
@pytest.mark.parametrize(
    "head",
    ["a = MatMul(h, w) logits = Cast<to={kind}>(a)", "a = MatMul(h, w) b = Sigmoid(a) logits = Cast<to={kind}>(b)"],
)
def test_floats_of_16_bits_are_given_as_32(head: str, kind: int) -> None:
    model = _model(head.format(kind=kind))
    model.graph.output[0].type.tensor_type.elem_type = kind
    session = hipdnn_mlir.compile(model, last_valid={"logits": "attention_mask"}).session()
    feeds = _feeds([5, 3], 5)
    (got,) = session.run(None, feeds)
    assert got.dtype == np.float32
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    wide = helper.make_node("Cast", ["narrow"], ["logits"], to=onnx.TensorProto.FLOAT)
    model.graph.node[-1].output[0] = "narrow"
    model.graph.node.append(wide)
    (want,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)
    np.testing.assert_allclose(got[:, 0], want[[0, 1], [4, 2]], rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("masks", "message"),
    [
        ({"probabilities": "attention_mask"}, r"last_valid: no output 'probabilities'.*'logits'"),
        ({"logits": "mask"}, r"last_valid: no input 'mask'.*'x', 'attention_mask'"),
        ({"logits": "x"}, r"last_valid: the input 'x' has rank 3.*\[batch, total\]"),
    ],
)
def test_what_there_is_not_is_refused(masks: dict[str, str], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        hipdnn_mlir.compile(_model(HEADS["product"]), last_valid=masks)


def test_modules_are_refused() -> None:
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: pip install '.[export]'")
    with pytest.raises(ModelError, match="last_valid is for ONNX models"):
        hipdnn_mlir.compile(torch.nn.ReLU(), (torch.ones(1, 2, 3),), last_valid={"y": "m"})

"""Inputs that may be filled up with zeros: lengths of a mask that is only summed. What else reads the mask, or its length, forbids it."""

from __future__ import annotations

import onnx
import pytest

import hipdnn_mlir
from hipdnn_mlir_runtime.expressions import Expressions, Ref
from test_decoder_caches import CHANGED, WINDOWS, cache_model

FILLED = {
    "nothing else": ("", None),
    "a sum of a cast": ("f = Cast<to=1>(mask) z = ReduceSum<keepdims=1>(f, axis)", ["b", 1]),
    "the length of the cache": ("n = Shape<start=2, end=3>(k) f = Cast<to=1>(n) z = Mul(y, f)", ["b", "s", 128]),
}
KEPT = {
    "an output": ("z = Cast<to=1>(mask)", ["b", "t"]),
    "a sum over rows": ("r = Constant<value_ints=[0]>() f = Cast<to=1>(mask) z = ReduceSum<keepdims=0>(f, r)", ["t"]),
    "a sum of what is not zero": ("f = Sub(mask, one) g = Cast<to=1>(f) z = ReduceSum<keepdims=1>(g, axis)", ["b", 1]),
    "a mean": ("f = Cast<to=1>(mask) z = ReduceMean<keepdims=1>(f, axis)", ["b", 1]),
    "a largest one": ("f = Cast<to=1>(mask) z = ReduceMax<keepdims=1>(f, axis)", ["b", 1]),
    "a softmax": ("f = Cast<to=1>(mask) g = Softmax(f) z = ReduceSum<keepdims=1>(g, axis)", ["b", 1]),
    "the length as a number": ("f = Cast<to=1>(total) z = Mul(y, f)", ["b", "s", 128]),
    "the length as a size": ("f = Reshape(mask, sizes) n = Cast<to=1>(f) z = ReduceMax<keepdims=0>(n, axis)", ["b"]),
    "what lies before": (
        "f = CumSum<reverse=1>(mask, at) g = Cast<to=1>(f) z = ReduceSum<keepdims=1>(g, axis)",
        ["b", 1],
    ),
}
"""What reads a mask beside attention, and the dims of its result z."""


def _filled(model: onnx.ModelProto) -> dict[str, str]:
    """Symbols that are filled, and up to the larger of which two."""
    program = hipdnn_mlir.compile(model).model
    entries = program.expressions
    found = {}
    for name, size in zip(program.symbols, program.filled, strict=False):
        assert isinstance(size, Ref)
        kind, *operands = entries[size.index]
        if kind != "symbol":
            assert kind == "max"
            found[name] = {program.symbols[entries[operand["expr"]][1]] for operand in operands}
    return found


def _with(nodes: str, dims: list[int | str] | None) -> onnx.ModelProto:
    model = cache_model("")
    if dims is not None:
        graph = onnx.parser.parse_graph(f"g (int64[b,t] mask) => (float[] z) {{ {nodes} }}")
        model.graph.node.extend(graph.node)
        model.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, dims))
    return model


@pytest.mark.parametrize("case", FILLED)
def test_a_mask_that_is_only_summed_is_filled_up_to_the_cache(case: str) -> None:
    assert _filled(_with(*FILLED[case])) == {"t": {"p", "t"}}


@pytest.mark.parametrize("case", KEPT)
def test_a_mask_that_is_read_otherwise_stays(case: str) -> None:
    assert _filled(_with(*KEPT[case])) == {}


def test_a_cache_of_a_window_is_no_limit() -> None:
    attributes, more, _ = WINDOWS["plain"]
    assert _filled(cache_model(attributes, more=more)) == {}


def test_a_bias_is_not_filled() -> None:
    attributes, more = CHANGED["bias"]
    assert _filled(cache_model(attributes, more=more)) == {}


def test_names_of_a_size_leave_out_an_entry() -> None:
    table = Expressions(("p", "t"))
    larger = table.make("max", table.symbol("p"), table.symbol("t"))
    size = table.make("+", table.make("*", larger, 2), table.symbol("p"))
    assert table.names(size) == {"p", "t"}
    assert table.names(size, but=larger) == {"p"}
    assert table.names(larger, but=larger) == set()

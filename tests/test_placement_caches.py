"""Placement of attention with caches where other nodes of the model stay on the CPU."""

from __future__ import annotations

import onnx

import untaken
from hipdnn_mlir.placement import place

ATTENTION = "com.microsoft.GroupQueryAttention<num_heads=4, kv_num_heads=2>"


def _model(before: str, query: str, after: str) -> onnx.ModelProto:
    """One layer of attention with its mask as onnxruntime-genai's builder writes it, and other nodes before and after it."""
    inputs = "float[b,s,64] q, float[b,s,32] k, float[b,s,32] v, int64[b,t] mask, float[b,2,p,d] pk, float[b,2,p,d] pv"
    text = f"""g ({inputs}) => (float[b,s,64] y, float[b,2,t,d] nk, float[b,2,t,d] nv) <float[b,s,64] a> {{
      one = Constant<value_int=1>() axes = Constant<value_ints=[1]>() dims = Shape(mask) total = Gather(dims, one) count = Cast<to=6>(total)
      ones = ReduceSum<keepdims=0>(mask, axes) most = Sub(ones, axes) last = Cast<to=6>(most) {before}
      a, nk, nv = {ATTENTION}({query}, k, v, pk, pv, last, count) {after} }}"""
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, {untaken.OPSET_TEXT}]> {untaken.in_text(text)}'
    )
    for node in model.graph.node:
        node.name = f"n_{node.output[0]}"
    return model


def test_sizes_that_attention_fixes_are_found_beside_a_node_on_the_cpu() -> None:
    """The last dim of the caches, d, is 16, whatever it is called: one number for all dims fits no part of the model."""
    placement = place(_model("", "q", "y = Untaken(a)"), mode="maximal")
    assert {reject.node for reject in placement.rejects} == {"n_y"}
    assert any("n_a" in partition.nodes for partition in placement.partitions)


def test_attention_stays_on_the_cpu_where_its_number_of_keys_would_be_data() -> None:
    """The number of keys is read before attention by a node on the CPU too, so it is computed in another part of the model."""
    before = "f = Cast<to=1>(count) u = Untaken(f) q2 = Add(q, u)"
    placement = place(_model(before, "q2", "y = Tanh(a)"), mode="maximal")
    assert {reject.node: reject.rule for reject in placement.rejects} == {"n_u": "no-row", "n_a": "cut-off"}

"""`suppress_boxes` against ONNX Runtime's NonMaxSuppression."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper

from drawing import draws
from hipdnn_mlir_runtime.errors import ProgramError
from host_kernels import kernel_runs as runs
from host_kernels.kernel_runs import Array, TensorSpec, run_kernel


def onnx_runtime(
    boxes: Array, scores: Array, limit: Array, least: Array, most: int, center: bool
) -> dict[Any, list[int]]:
    """Return the boxes of each batch and class, the best first."""
    inputs = {"boxes": boxes, "scores": scores, "most": np.array([most]), "limit": limit, "least": least}
    kinds = {name: onnx.helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in inputs.items()}
    node = helper.make_node("NonMaxSuppression", [*inputs], ["y"], center_point_box=int(center))
    graph = helper.make_graph(
        [node],
        "nms",
        [helper.make_tensor_value_info(name, kinds[name], array.shape) for name, array in inputs.items()],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT64, ["n", 3])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (rows,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, inputs)
    found: dict[Any, list[int]] = {place: [] for place in np.ndindex(*scores.shape[:2])}
    for batch, of_class, box in rows.tolist():
        found[batch, of_class].append(box)
    return found


def check(
    boxes: Array, scores: Array, limit: float, least: float, most: int, center: bool, outs: list[TensorSpec]
) -> None:
    numbers = [np.array([number], np.float32) for number in (limit, least)]
    chosen, counts, _ = run_kernel("suppress_boxes", [boxes, scores, *numbers], outs, {"center": center})
    want = onnx_runtime(boxes, scores, *numbers, most, center)
    assert {place: chosen[place][: counts[place]].tolist() for place in want} == want
    for place in want:
        assert not chosen[place][counts[place] :].any()  # still positions that there are


@draws(15)
@given(data=st.data(), center=st.booleans())
def test_boxes_equal_onnx_runtime(data: st.DataObject, center: bool) -> None:
    batches, classes, count = (data.draw(st.integers(1, most)) for most in (2, 3, 40))
    most = data.draw(st.integers(1, count + 2))
    rng = np.random.default_rng(data.draw(st.integers(0, 1000)))
    boxes = rng.integers(0, 6, (batches, count, 4)).astype(np.float32)  # equal ones, empty ones, corners either way
    scores = rng.integers(0, 9, (batches, classes, count)).astype(np.float32) / 8
    dims = (batches, classes, most), (batches, classes), (batches, classes, count)
    outs = [data.draw(runs.out_spec("i64", each)) for each in dims[:2]] + [TensorSpec("i32", dims[2])]
    limit, least = data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])), data.draw(st.sampled_from([-1.0, 0.0, 0.5, 2.0]))
    check(boxes, scores, limit, least, most, center, outs)


def test_many_boxes_equal_onnx_runtime() -> None:
    rng = np.random.default_rng(1)
    corners = rng.uniform(0, 100, (1, 2100, 2))
    boxes = np.concatenate([corners, corners + rng.uniform(5, 30, (1, 2100, 2))], 2).astype(np.float32)
    scores = rng.uniform(0, 1, (1, 2, 2100)).astype(np.float32)
    outs = [TensorSpec("i64", (1, 2, 20)), TensorSpec("i64", (1, 2)), TensorSpec("i32", (1, 2, 2100))]
    check(boxes, scores, 0.45, 0.25, 20, False, outs)


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ([(1, 5, 3), (1, 2, 5), (1,), (1,), (1, 2, 3), (1, 2), (1, 2, 5)], "tensors[0].dims"),
        (
            [(1, 5, 4), (2, 5), (1,), (1,), (1, 2, 3), (1, 2), (1, 2, 5)],
            "tensors[1].dims: expected [batches, classes, boxes]",
        ),
        ([(1, 5, 4), (1, 2, 5), (1,), (1,), (1, 3, 6), (1, 2), (1, 2, 5)], "tensors[4].dims"),
        ([(1, 5, 4), (1, 2, 5), (1,), (1,), (1, 2, 3), (1, 2), (1, 2, 4)], "tensors[6].dims"),
    ],
)
def test_refused_when_dims_do_not_fit(dims: list[tuple[int, ...]], message: str) -> None:
    arrays = [np.zeros(each, np.float32) for each in dims[:4]]
    outs = [TensorSpec(kind, each) for kind, each in zip(("i64", "i64", "i32"), dims[4:], strict=True)]
    with pytest.raises(ProgramError) as caught:
        run_kernel("suppress_boxes", arrays, outs, {"center": False})
    assert message in str(caught.value)

"""NonMaxSuppression against ONNX Runtime's CPU provider, interleaved, one thread: ``python bench/boxes.py``.

Boxes of a detector of 8400 places; medians in milliseconds, and whether the boxes are the same ones in the same order.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

import hipdnn_mlir

PLACES, TURNS = 8400, 25
CASES = {"few candidates": (80, 0.25, 97), "one class": (1, 0.25, 1), "many candidates": (80, 0.5, 1)}
"""Classes, the least score, and how many places there are to one that may exceed it."""


def model(classes: int, least: float) -> onnx.ModelProto:
    """Return a model of the operator alone, of at most 100 boxes of each class."""
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        boxes (float[1,{PLACES},4] boxes, float[1,{classes},{PLACES}] scores) => (int64[n,3] chosen) {{
            most = Constant<value=int64[1] {{100}}>() limit = Constant<value=float[1] {{0.45}}>()
            least = Constant<value=float[1] {{{least}}}>()
            chosen = NonMaxSuppression<center_point_box=1>(boxes, scores, most, limit, least) }}""")


def inputs(classes: int, every: int) -> dict[str, Any]:
    """Return boxes and scores; but for every so manieth place, scores are low."""
    rng = np.random.default_rng(0)
    boxes = np.concatenate([rng.uniform(0, 640, (1, PLACES, 2)), rng.uniform(10, 100, (1, PLACES, 2))], 2)
    scores = rng.uniform(0, 0.1, (1, classes, PLACES))
    scores[:, :, ::every] = rng.uniform(0, 1, scores[:, :, ::every].shape)
    return {"boxes": boxes.astype(np.float32), "scores": scores.astype(np.float32)}


def milliseconds(call: Callable[[], Any]) -> float:
    """Return the time of one call."""
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e3


def main() -> None:
    """Print a line for each case."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    for name, (classes, least, every) in CASES.items():
        made, feeds = model(classes, least), inputs(classes, every)
        theirs = ort.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])
        ours = hipdnn_mlir.compile(made).session(threads=1)
        run_ours, run_theirs = partial(ours.run, None, feeds), partial(theirs.run, None, feeds)
        is_same = np.array_equal(run_ours()[0], run_theirs()[0])
        turns = [(milliseconds(run_ours), milliseconds(run_theirs)) for _ in range(TURNS)]
        mine, other = (statistics.median(column) for column in zip(*turns, strict=True))
        print(f"{name:16} {mine:6.2f} / {other:6.2f} = {mine / other:.2f}  {'same' if is_same else 'DIFFERENT'}")


if __name__ == "__main__":
    main()

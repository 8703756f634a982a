"""Detection models of torchvision, wholly in one program, against ONNX Runtime's CPU provider: ``python bench/detectors.py [MODEL...]``.

Random weights, exported with `torch.onnx.export(..., dynamo=False)`; thresholds such that images have no, few and many detections. A line
for each image: how many there are, how many of ours ONNX Runtime does not have, how many it has without its optimizations alone (which is
what rounding does), and milliseconds of both, two threads. Needs torchvision, of which the ops in C++ may be missing.
"""

from __future__ import annotations

import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import torch

import hipdnn_mlir

THREADS, DISTANCE = 2, 1e-3
MODELS: dict[str, tuple[int, float, float, dict[str, Any]]] = {
    "retinanet_resnet50_fpn": (160, 0.7, 0.05, {"min_size": 160, "max_size": 160}),
    "fcos_resnet50_fpn": (160, 0.5, 0.05, {"min_size": 160, "max_size": 160}),
    "ssdlite320_mobilenet_v3_large": (320, 0.99, 0, {}),
    "fasterrcnn_resnet50_fpn": (160, 0.02, 0.05, {"min_size": 160, "max_size": 160}),
}
"""The size of an image, the score that a box has to exceed, the deviation of the heads' weights, 0 for what the model has, and options."""
_HEADS = ("cls_logits", "cls_score", "bbox_pred", "bbox_ctrness")


def has_ops() -> bool:
    """Take torchvision's ops in C++ for loaded."""
    return True


def _some(_: torch.Tensor, scores: torch.Tensor, __: float) -> torch.Tensor:
    return scores.argsort(descending=True)[::2]


def _empty(x: torch.Tensor, rois: torch.Tensor, _: float, height: int, width: int, *__: Any) -> torch.Tensor:
    return x.new_zeros(len(rois), x.shape[1], height, width)


def declare_ops() -> torch.library.Library:
    """Stand in for torchvision's ops in C++ where they do not load: an export traces them, and nothing looks at what they return."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    box = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
    image = "(Tensor input, Tensor rois, float scale, SymInt height, SymInt width, int sampling_ratio, bool aligned) -> Tensor"
    for name, signature in (("nms", box), ("qnms", box), ("roi_align", image)):
        library.define(f"{name}{signature}")
    library.impl("nms", _some, "CPU")
    library.impl("roi_align", _empty, "CPU")
    return library


def exported(name: str, folder: Path) -> Path:
    """Return the file of a model."""
    import torchvision

    size, least, deviation, options = MODELS[name]
    score = "box_score_thresh" if name.startswith("faster") else "score_thresh"
    torch.manual_seed(0)
    module = getattr(torchvision.models.detection, name)(
        weights=None, weights_backbone=None, **{score: least}, **options
    ).eval()
    for key, weight in module.named_parameters():
        if deviation and weight.ndim > 1 and any(head in key for head in _HEADS):
            torch.nn.init.normal_(weight, std=deviation * (0.2 if "bbox" in key else 1))
        elif not deviation and weight.ndim == 4:
            torch.nn.init.kaiming_normal_(weight)
    path = folder / f"{name}.onnx"
    with torch.no_grad():
        torch.onnx.export(
            module, ([torch.rand(3, size, size)],), path, dynamo=False, opset_version=17, input_names=["x"]
        )
    return path


def without(found: list[Any], others: list[Any]) -> int:
    """Return how many detections there are that others do not have."""
    ours, theirs = (
        np.concatenate([part.reshape(len(part), 4 if part.ndim > 1 else 1) for part in parts], 1)
        for parts in (found, others)
    )
    return sum(bool((np.abs(theirs - row) / (1 + np.abs(row))).max(1).min(initial=1) > DISTANCE) for row in ours)


def images(size: int) -> Iterator[Any]:
    """Make images of no, little and much contrast."""
    rng = np.random.default_rng(0)
    yield from (np.full((3, size, size), number, np.float32) for number in (0, 0.5, 1))
    yield from (rng.random((3, size, size), np.float32) * most for most in (1, 1.5, 3))


def measure(name: str, folder: Path) -> None:
    """Print the lines of a model."""
    path = exported(name, folder)
    start = time.perf_counter()
    ours = hipdnn_mlir.compile(path).session(threads=THREADS)
    print(f"{name}: compiled in {time.perf_counter() - start:.1f} s")
    options, plain = ort.SessionOptions(), ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    plain.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    theirs, unoptimized = (
        ort.InferenceSession(path, each, providers=["CPUExecutionProvider"]) for each in (options, plain)
    )
    for x in images(MODELS[name][0]):
        runs = []
        for session in (ours, theirs):
            session.run(None, {"x": x})
            start = time.perf_counter()
            runs.append((session.run(None, {"x": x}), (time.perf_counter() - start) * 1e3))
        (mine, us), (other, them) = runs
        rounded = without(unoptimized.run(None, {"x": x}), other)
        shapes = "same shapes" if [a.shape for a in mine] == [b.shape for b in other] else "OTHER SHAPES"
        print(f"{len(other[0]):5} {shapes} {without(mine, other):4} {rounded:4} {us:8.1f} / {them:8.1f} ms")


def main() -> None:
    """Measure the models that are asked for, or all."""
    warnings.simplefilter("ignore")
    keep = declare_ops()
    import torchvision

    assert torchvision.extension
    for module in [each for key, each in sys.modules.items() if key.startswith("torchvision")]:
        for check in ("_assert_has_ops", "_has_ops"):
            if hasattr(module, check):
                setattr(module, check, has_ops)
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:] or MODELS:
            measure(name, Path(folder))
    del keep


if __name__ == "__main__":
    main()

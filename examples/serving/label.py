"""Labels handwritten digits with Ray Data: two workers, each with a program and one thread.

``pip install 'hipdnn-mlir[serve,examples]'``, then ``python examples/serving/label.py``. Ray starts on this machine, unless RAY_ADDRESS
names a cluster. There the program has to be in a folder that all nodes see: give it, ``label.py /shared/programs``. Exits with 1 where
fewer than nine in ten labels are right.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import ray
import ray.data
from sklearn.datasets import load_digits

import hipdnn_mlir
from hipdnn_mlir.serving import Predictor

MODEL = Path(__file__).resolve().parent.parent / "digits" / "digits.onnx"
HELD_OUT = 360
BUCKETS = [1, 8, 64]
RIGHT = 0.9


def right_labels(program: Path) -> float:
    """Return the share of the held-out images whose labels are right."""
    digits = load_digits()
    rows = [
        {"image": (image / 16).astype("float32")[None], "label": int(label)}
        for image, label in zip(digits.images[-HELD_OUT:], digits.target[-HELD_OUT:], strict=True)
    ]
    labelled = ray.data.from_items(rows).map_batches(
        Predictor,
        fn_constructor_kwargs={"program": str(program)},
        batch_size=100,
        num_cpus=1,
        compute=ray.data.ActorPoolStrategy(size=2),
    )
    return sum(row["probabilities"].argmax() == row["label"] for row in labelled.take_all()) / HELD_OUT


def main() -> None:
    """Compile the model, and label."""
    with tempfile.TemporaryDirectory() as scratch:
        program = Path(sys.argv[1] if len(sys.argv) > 1 else scratch, "digits.hipdnn")
        shapes = {"image": ("batch", 1, 8, 8)}
        hipdnn_mlir.compile(MODEL, shapes=shapes, buckets={"batch": BUCKETS}).save(program)
        if not ray.is_initialized():
            ray.init(os.environ.get("RAY_ADDRESS", "local"))
        right = right_labels(program)
    print(f"{HELD_OUT} images labelled, {right:.1%} of them right")
    if right < RIGHT:
        sys.exit(1)


if __name__ == "__main__":
    main()

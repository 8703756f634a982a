"""RapidOCR as it is on PyPI, with its three models on the provider: text and scores against ONNX Runtime's CPU provider.

``pip install rapidocr-onnxruntime==1.4.4`` (250 MB with what it needs, Python up to 3.12), then ``python examples/ocr.py [image]``; exits
with 1 where the two differ. The application itself is not changed: it makes its sessions as ever, and each gets the provider added.
"""

from __future__ import annotations

import sys
import tempfile
import time
from typing import Any, ClassVar

import numpy as np
import onnxruntime as ort
from PIL import Image, ImageDraw, ImageFont
from rapidocr_onnxruntime import RapidOCR
from rapidocr_onnxruntime.utils import infer_engine

from hipdnn_mlir_runtime import ort_ep

LINES = ("Hello RapidOCR", "Sizes of dims are open", "42 lines", "a somewhat longer line of text at the end")
TOLERANCE = 1e-4
CACHE = tempfile.mkdtemp()


class Session(ort.InferenceSession):
    """A session with the provider added; nothing moves back to the CPU provider when a run fails."""

    made: ClassVar[list[ort.InferenceSession]] = []

    def __init__(self, path: str, sess_options: ort.SessionOptions, **_: Any) -> None:
        ort_ep.add_to_session_options(sess_options, {"cache_dir": CACHE})
        sess_options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
        super().__init__(path, sess_options=sess_options)
        self.disable_fallback()
        self.made.append(self)


def picture() -> Image.Image:
    """Return lines of text, drawn here."""
    image = Image.new("RGB", (900, 90 * len(LINES)), "white")
    draw = ImageDraw.Draw(image)
    for row, line in enumerate(LINES):
        draw.text((20, 20 + 90 * row), line, fill="black", font=ImageFont.load_default(36))
    return image


def read(pixels: np.ndarray) -> list[tuple[str, float]]:
    """Return what the application reads in an image: lines and scores."""
    found, _ = RapidOCR()(pixels)
    return [(text, float(score)) for _, text, score in found or []]


def main() -> int:
    """Read the image with both."""
    image = Image.open(sys.argv[1]).convert("RGB") if len(sys.argv) > 1 else picture()
    pixels = np.asarray(image)[:, :, ::-1].copy()
    expected = read(pixels)
    infer_engine.InferenceSession = Session
    start = time.perf_counter()
    got = read(pixels)
    for (text, score), (other, other_score) in zip(got, expected, strict=False):
        print(f"{score:.6f} {other_score:.6f}  {text}" + ("" if text == other else f"  (CPU provider: {other})"))
    for session in Session.made:
        parts = session.get_provider_graph_assignment_info()
        nodes = {part.ep_name: len(part.get_nodes()) for part in parts}
        print(f"{session.get_inputs()[0].shape}: nodes by provider {nodes}")
    print(f"{time.perf_counter() - start:.1f} s, compiling included")
    same = [text for text, _ in got] == [text for text, _ in expected]
    close = all(abs(a - b) <= TOLERANCE for (_, a), (_, b) in zip(got, expected, strict=False))
    return 0 if same and close and got else 1


if __name__ == "__main__":
    sys.exit(main())

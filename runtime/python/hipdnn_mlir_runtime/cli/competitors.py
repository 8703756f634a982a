"""Other ways to run an ONNX model that `bench` measures beside ours, each where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .arrays import Array
from .execution import reference_runner

Prepare = Callable[[Path, Sequence[str], Mapping[str, Array], int], Callable[[], object]]


@dataclass(frozen=True)
class Competitor:
    """One of them.

    Attributes:
        title: What tables call it.
        prepare: Takes the model, the outputs' names, the inputs and the threads (0 for all); returns a function that runs it once.
    """

    title: str
    prepare: Prepare


def _onnxruntime(model: Path, names: Sequence[str], feeds: Mapping[str, Array], threads: int) -> Callable[[], object]:
    return partial(reference_runner(model, names, threads), feeds)


def _openvino(model: Path, _: Sequence[str], feeds: Mapping[str, Array], threads: int) -> Callable[[], object]:
    try:
        import openvino
    except ImportError as error:
        raise ModelError(
            "OpenVINO is not installed", where="--against openvino", hint="pip install openvino"
        ) from error
    settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if threads:
        settings["INFERENCE_NUM_THREADS"] = threads
    # OpenVINO's exceptions share no base class but Exception.
    try:
        compiled = openvino.Core().compile_model(str(model), "CPU", settings)
        request = compiled.create_infer_request()
        request.infer(dict(feeds))
    except Exception as error:
        raise ModelError(f"OpenVINO refuses the model: {error}", where=str(model)) from error
    return lambda: request.infer(dict(feeds))


COMPETITORS = {
    "ort": Competitor("ONNX Runtime CPU", _onnxruntime),
    "openvino": Competitor("OpenVINO CPU", _openvino),
}

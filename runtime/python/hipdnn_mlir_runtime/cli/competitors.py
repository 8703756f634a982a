"""Other ways to run a model that `bench` measures beside ours, each where it is installed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ModelError
from .arrays import Array
from .execution import reference_runner
from .pytorch import TorchModel

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Competitor:
    """One of them, ready to run.

    Attributes:
        title: What tables call it.
        run: Runs it once; what is timed.
        results: Its outputs in the order of the program's.
    """

    title: str
    run: Callable[[], object]
    results: Sequence[Array]


Prepare = Callable[[Path, Sequence[str], Mapping[str, Array], int], list[Competitor]]
"""From the model, the outputs' names, the inputs and the threads (0 for all)."""


def _onnxruntime(model: Path, names: Sequence[str], feeds: Mapping[str, Array], threads: int) -> list[Competitor]:
    run = partial(reference_runner("ort", model, names, threads), feeds)
    return [Competitor("ONNX Runtime CPU", run, run())]


def _openvino(model: Path, names: Sequence[str], feeds: Mapping[str, Array], threads: int) -> list[Competitor]:
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
        results = [request.get_tensor(name).data.copy() for name in names]
    except Exception as error:
        raise ModelError(f"OpenVINO refuses the model: {error}", where=str(model)) from error
    return [Competitor("OpenVINO CPU", lambda: request.infer(dict(feeds)), results)]


def _torch(model: Path, names: Sequence[str], feeds: Mapping[str, Array], threads: int) -> list[Competitor]:
    """PyTorch as it is and compiled, since either may be the faster one."""
    loaded = TorchModel(model, threads)
    eager, compiled = (loaded.bound(call, feeds) for call in (loaded.module, loaded.compiled()))
    made = [Competitor("PyTorch eager", eager, loaded.run(eager, names))]
    try:
        made.append(Competitor("PyTorch torch.compile", compiled, loaded.run(compiled, names)))
    except ModelError as error:  # above all, there is no C++ compiler
        _log.warning("torch.compile is left out: %s", error)
    return made


COMPETITORS: dict[str, Prepare] = {"ort": _onnxruntime, "openvino": _openvino, "torch": _torch}

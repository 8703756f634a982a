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


@dataclass(frozen=True)
class Task:
    """What the others are to do.

    Attributes:
        model: The ONNX or `.pt2` file.
        names: The outputs' names.
        feeds: The inputs.
        threads: How many they may use; 0 for all.
        on_gpu: Whether our program runs on a GPU.
    """

    model: Path
    names: Sequence[str]
    feeds: Mapping[str, Array]
    threads: int
    on_gpu: bool


Prepare = Callable[[Task], list[Competitor]]


def _onnxruntime(task: Task) -> list[Competitor]:
    run = partial(reference_runner("ort", task.model, task.names, task.threads), task.feeds)
    return [Competitor("ONNX Runtime CPU", run, run())]


def _openvino(task: Task) -> list[Competitor]:
    try:
        import openvino
    except ImportError as error:
        raise ModelError(
            "OpenVINO is not installed", where="--against openvino", hint="pip install openvino"
        ) from error
    settings: dict[str, Any] = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    if task.threads:
        settings["INFERENCE_NUM_THREADS"] = task.threads
    # OpenVINO's exceptions share no base class but Exception.
    try:
        compiled = openvino.Core().compile_model(str(task.model), "CPU", settings)
        request = compiled.create_infer_request()
        request.infer(dict(task.feeds))
        results = [request.get_tensor(name).data.copy() for name in task.names]
    except Exception as error:
        raise ModelError(f"OpenVINO refuses the model: {error}", where=str(task.model)) from error
    return [Competitor("OpenVINO CPU", lambda: request.infer(dict(task.feeds)), results)]


def _torch(task: Task) -> list[Competitor]:
    """PyTorch as it is and compiled, since either may be the faster one."""
    loaded = TorchModel(task.model, task.threads, "cuda" if task.on_gpu else "cpu")
    eager, compiled = (loaded.bound(call, task.feeds) for call in (loaded.module, loaded.compiled()))
    made = [Competitor("PyTorch eager", eager, loaded.run(eager, task.names))]
    try:
        made.append(Competitor("PyTorch torch.compile", compiled, loaded.run(compiled, task.names)))
    except ModelError as error:  # above all, there is no C++ compiler
        _log.warning("torch.compile is left out: %s", error)
    return made


COMPETITORS: dict[str, Prepare] = {"ort": _onnxruntime, "openvino": _openvino, "torch": _torch}

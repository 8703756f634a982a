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
    run = partial(reference_runner("ort", task.model, task.names, task.threads, as_installed=True), task.feeds)
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


_MIGRAPHX_IN_ORT = "MIGraphXExecutionProvider"


def _migraphx(task: Task) -> list[Competitor]:
    """MIGraphX in ONNX Runtime where that has it, else its own package."""
    if not task.on_gpu:
        raise ModelError("MIGraphX runs on AMD GPUs", where="--against migraphx", hint="compile for one (--target)")
    try:
        made = _migraphx_in_ort(task) or _migraphx_package(task)
    except ImportError as error:
        hint = "install onnxruntime-migraphx, or ROCm's migraphx and put its Python folder on PYTHONPATH"
        raise ModelError("MIGraphX is not installed", where="--against migraphx", hint=hint) from error
    except Exception as error:  # neither's exceptions share a base class
        raise ModelError(f"MIGraphX refuses the model: {error}", where=str(task.model)) from error
    return [made]


def _migraphx_in_ort(task: Task) -> Competitor | None:
    try:
        import onnxruntime as ort
    except ImportError:
        return None
    if _MIGRAPHX_IN_ORT not in ort.get_available_providers():
        return None
    session = ort.InferenceSession(task.model, providers=[_MIGRAPHX_IN_ORT])
    if _MIGRAPHX_IN_ORT not in session.get_providers():  # it could not be opened, and ONNX Runtime went on without
        return None
    run = partial(session.run, list(task.names), dict(task.feeds))
    return Competitor("MIGraphX in ONNX Runtime", run, run())


def _migraphx_package(task: Task) -> Competitor:
    import migraphx
    import numpy as np

    program = migraphx.parse_onnx(str(task.model))
    program.compile(migraphx.get_target("gpu"))  # copies of inputs and results are part of a run
    given = {name: migraphx.argument(np.ascontiguousarray(array)) for name, array in task.feeds.items()}
    results = [np.array(result) for result in program.run(given)]
    return Competitor("MIGraphX", lambda: program.run(given), results)


COMPETITORS: dict[str, Prepare] = {
    "ort": _onnxruntime,
    "openvino": _openvino,
    "torch": _torch,
    "migraphx": _migraphx,
}

"""Sessions of the stock ONNX Runtime on the provider, and on its CPU provider as the reference."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from hipdnn_mlir_runtime import ort_ep

Model = bytes | str | Path | onnx.ModelProto
Arrays = Mapping[str, np.ndarray]

KINDS = ("cpu", "gpu")
"""The host's CPU, and a GPU: where the machine has none, a virtual one over the host's memory."""

EP_NAME = ort_ep.get_ep_name()


@functools.cache
def register() -> None:
    """Register the library under both names, once per process: ONNX Runtime keeps registrations for the whole process.

    A test that ran before in this process may have let the product register it (`bench --against ort`, for one).
    """
    names = (
        ["hipdnn.virtual"]
        if any(offer.ep_name == EP_NAME for offer in ort.get_ep_devices())
        else ["hipdnn", "hipdnn.virtual"]
    )
    for name in names:
        ort.register_execution_provider_library(name, ort_ep.get_library_path())


def devices(kind: str = "cpu") -> list[Any]:
    """Return the provider's device of a kind, as a list of one."""
    register()
    wanted = {"cpu": ort.OrtHardwareDeviceType.CPU, "gpu": ort.OrtHardwareDeviceType.GPU}[kind]
    found = [device for device in ort.get_ep_devices() if device.ep_name == EP_NAME and device.device.type == wanted]
    assert found, f"the provider offers no device of the kind {kind}"
    return found[:1]


def session_options(
    cache_dir: str | Path,
    *,
    kind: str = "cpu",
    options: Mapping[str, str] | None = None,
    entries: Mapping[str, str] | None = None,
    wholly: bool = False,
) -> ort.SessionOptions:
    """Return quiet session options with the provider's device.

    Args:
        cache_dir: Folder for compiled programs.
        kind: Device, one of ``KINDS``.
        options: Provider options.
        entries: Session configuration entries.
        wholly: Refuse a session in which a node is left to the CPU provider.
    """
    made = _settings()
    if wholly:
        made.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    for key, value in (entries or {}).items():
        made.add_session_config_entry(key, value)
    made.add_provider_for_devices(devices(kind), {"cache_dir": str(cache_dir), **(options or {})})
    return made


def make_session(
    model: Model,
    cache_dir: str | Path,
    *,
    kind: str = "cpu",
    options: Mapping[str, str] | None = None,
    entries: Mapping[str, str] | None = None,
    wholly: bool = False,
) -> ort.InferenceSession:
    """Return a session on the provider; failing runs raise instead of moving to the CPU provider."""
    settings = session_options(cache_dir, kind=kind, options=options, entries=entries, wholly=wholly)
    session = ort.InferenceSession(_source(model), sess_options=settings)
    session.disable_fallback()
    return session


def placed_nodes(session: ort.InferenceSession) -> tuple[list[str], list[str]]:
    """Return the names of the nodes on the provider and of those elsewhere, in ONNX Runtime's order."""
    on_ep: list[str] = []
    elsewhere: list[str] = []
    for part in session.get_provider_graph_assignment_info():
        (on_ep if part.ep_name == EP_NAME else elsewhere).extend(node.name for node in part.get_nodes())
    return on_ep, elsewhere


def partitions(session: ort.InferenceSession) -> list[list[str]]:
    """Return the names of the nodes of each fused node on the provider."""
    parts = session.get_provider_graph_assignment_info()
    return [[node.name for node in part.get_nodes()] for part in parts if part.ep_name == EP_NAME]


def reference(model: Model, inputs: Arrays) -> Sequence[Any]:
    """Return the outputs of ONNX Runtime's CPU provider, with its default graph optimizations."""
    return reference_session(model).run(None, dict(inputs))


def count_nodes(model: Model) -> int:
    """Return how many nodes ONNX Runtime has for its providers, once it has optimized the model for any of them."""
    return sum(len(part.get_nodes()) for part in reference_session(model).get_provider_graph_assignment_info())


def reference_session(model: Model) -> ort.InferenceSession:
    """Return a session on ONNX Runtime's CPU provider alone."""
    return ort.InferenceSession(_source(model), _settings(), providers=["CPUExecutionProvider"])


def _settings() -> ort.SessionOptions:
    settings = ort.SessionOptions()
    settings.log_severity_level = 4
    settings.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    # Its idle threads would take time from the compiler, which runs in another process.
    settings.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return settings


def _source(model: Model) -> bytes | str:
    if isinstance(model, onnx.ModelProto):
        return model.SerializeToString()
    return model if isinstance(model, bytes) else str(model)

"""An ``onnx.backend.base.Backend`` over compile and run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep

import hipdnn_mlir


class HipdnnRep(BackendRep):
    """A compiled model, ready to run."""

    def __init__(self, program: hipdnn_mlir.Program) -> None:
        super().__init__()
        self._session = program.session()

    def run(self, inputs: Sequence[np.ndarray], **_: Any) -> tuple[Any, ...]:
        """Run on inputs in the model's order; returns outputs in the model's order."""
        names = [port.name for port in self._session.inputs]
        return tuple(self._session.run(None, dict(zip(names, inputs, strict=True))))


class HipdnnBackend(Backend):
    """Compiles a whole model for a target, the host's by default; anything left out is an ``UnsupportedError``."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> HipdnnRep:
        """Compile a model for the target that the environment names: workers have no other argument for it."""
        super().prepare(model, device, **kwargs)
        return HipdnnRep(hipdnn_mlir.compile(model, target=os.environ.get("HIPDNN_MLIR_TEST_TARGET", "host")))

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return whether this machine has the device."""
        return device == "CPU"

"""ONNX Runtime's CPU provider behind the server of bench/serving.py: what its replicas load there in the place of a program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import onnxruntime

import hipdnn_mlir
from hipdnn_mlir.serving.repository import ModelFile
from hipdnn_mlir.serving.server import ModelServer
from hipdnn_mlir_runtime.session.arrays import Array


class OrtSession:
    """A session of ONNX Runtime, as the server uses one; inputs, outputs and sizes are those of the program beside the model."""

    def __init__(self, program: str, threads: int) -> None:
        session = hipdnn_mlir.load(program)
        self._program = program
        self.inputs, self.outputs, self.device = session.inputs, session.outputs, session.device
        self.symbols, self.buckets, self.exact = session.symbols, session.buckets, session.exact
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        model = Path(program).with_suffix(".onnx")
        self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])

    def again(self, threads: int) -> OrtSession:
        """Open another one: rows may run apart here, too."""
        return OrtSession(self._program, threads)

    def prewarm(self, _: object = None) -> None:
        """ONNX Runtime has nothing to load for a size."""

    def run(self, names: Sequence[str] | None, feeds: Mapping[str, Array]) -> list[Array]:
        """Run once."""
        return self._session.run(names, dict(feeds))

    def close(self) -> None:
        """The garbage collector closes it."""


class OrtServer(ModelServer):
    """A replica that runs models by ONNX Runtime."""

    def open_session(self, file: ModelFile, threads: int) -> Any:
        """Return a session of ONNX Runtime for the model beside the program."""
        return OrtSession(file.path, threads)

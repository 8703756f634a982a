"""A process with the provider on a port ``cuda`` that the host's library plays: ``gpu_worker.py PROVIDER MODEL ARRAYS OPTIONS ACTION``.

Prints JSON: what the action answers, or ``{"error": ...}``. A process of its own, since ONNX Runtime keeps registrations.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from .counting_port import read_counts

EP_NAME = "HipDNNExecutionProvider"
PARTS = (1, 5, 40, 41, 64)
NO_FLUSH = "disable_synchronize_execution_providers"


class Subject:
    """A session on the GPU, with arrays for its input and output."""

    def __init__(self, provider: Path, model: str, arrays: Path, options: dict[str, str]) -> None:
        ort.register_execution_provider_library("hipdnn", str(provider))
        self.provider = provider
        self.devices = [device for device in ort.get_ep_devices() if device.ep_name == EP_NAME]
        self.model, self.options = model, options
        self.x = np.load(arrays)

    def session(self, **options: str) -> ort.InferenceSession:
        """Return a session on the GPU that has no compiler."""
        settings = ort.SessionOptions()
        settings.log_severity_level = 4
        gpu = [device for device in self.devices if device.device.type == ort.OrtHardwareDeviceType.GPU]
        settings.add_provider_for_devices(gpu, {"compiler": "none", **self.options, **options})
        session = ort.InferenceSession(self.model, sess_options=settings)
        session.disable_fallback()
        return session

    def offers(self) -> Any:
        """The devices: type and vendor."""
        return [(device.device.type.name, device.device.vendor_id, device.device.vendor) for device in self.devices]

    def plain(self) -> Any:
        """Arrays of the host."""
        return self.session().run(None, {"x": self.x})[0].tolist()

    def parts(self) -> Any:
        """Runs with the first rows of the input: result or an error's words, by their number."""
        session = self.session()
        answers: dict[int, Any] = {}
        for count in PARTS:
            try:
                answers[count] = session.run(None, {"x": self.x[:count]})[0].tolist()
            except Exception as error:  # noqa: BLE001 - ONNX Runtime's exceptions have no common class of their own
                answers[count] = str(error)
        return answers

    def bound_part(self) -> Any:
        """Rows between two buckets in the device's memory, as `bound`."""
        self.x = self.x[: PARTS[1]]
        return self.bound()

    def bound(self) -> Any:
        """Values in the device's memory: the result, and what one more run calls, with ONNX Runtime's flush and without."""
        session = self.session()
        (y,) = session.run(None, {"x": self.x})
        result = ort.OrtValue.ortvalue_from_numpy(np.zeros_like(y), "cuda", 0)
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(self.x, "cuda", 0))
        binding.bind_ortvalue_output("y", result)
        return {**self._count(session, binding), "y": result.numpy().tolist()}

    def pointers(self) -> Any:
        """The same with memory that is not ONNX Runtime's."""
        session = self.session()
        (y,) = session.run(None, {"x": self.x})
        port = ctypes.CDLL(str(self.provider.with_name("libhipdnn_cuda.so")))
        given, result = ctypes.c_void_p(), ctypes.c_void_p()
        for place, array in ((given, self.x), (result, y)):
            assert port.hipMalloc(ctypes.byref(place), ctypes.c_size_t(array.nbytes)) == 0
        ctypes.memmove(given, self.x.ctypes.data, self.x.nbytes)
        ctypes.memset(result, 0xFF, y.nbytes)
        binding = session.io_binding()
        binding.bind_input("x", "cuda", 0, self.x.dtype.type, self.x.shape, given.value)
        binding.bind_output("y", "cuda", 0, y.dtype.type, y.shape, result.value)
        counted = self._count(session, binding)
        got = np.empty_like(y)
        ctypes.memmove(got.ctypes.data, result, y.nbytes)
        return {**counted, "y": got.tolist()}

    def _count(self, session: ort.InferenceSession, binding: ort.IOBinding) -> dict[str, Any]:
        flushed, unflushed = ort.RunOptions(), ort.RunOptions()
        unflushed.add_run_config_entry(NO_FLUSH, "1")
        counts = []
        for settings in (flushed, flushed, unflushed, unflushed):
            before = read_counts(self.provider)
            session.run_with_iobinding(binding, settings)
            counts.append(read_counts(self.provider).since(before))
        session.run_with_iobinding(binding, flushed)
        return {"flushed": counts[1], "unflushed": counts[3]}

    def after_failure(self) -> Any:
        """What a session and its run say where the device fails, and that the process goes on with another model's."""
        messages = []
        for _ in range(2):
            try:
                self.session().run(None, {"x": self.x})
            except Exception as error:  # noqa: BLE001 - ONNX Runtime's exceptions have no common class of their own
                messages.append(str(error))
        self.model = str(Path(self.model).with_name("good.onnx"))
        return {"messages": messages, "y": self.plain()}


def main(arguments: list[str]) -> None:
    """Perform one action."""
    provider, model, arrays, options, action = arguments
    try:
        subject = Subject(Path(provider), model, Path(arrays), json.loads(options))
        perform: Callable[[], Any] = getattr(subject, action)
        answer = perform()
    except Exception as error:  # noqa: BLE001 - the test reads it
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1:])

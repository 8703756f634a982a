"""The command `quantize`: ONNX Runtime's quantizer, with what the engines of the CPU take as integers."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

from hipdnn_mlir_runtime.cli.main import show
from hipdnn_mlir_runtime.cli.needs import check_folder
from hipdnn_mlir_runtime.cli.progress import working
from hipdnn_mlir_runtime.errors import ModelError
from hipdnn_mlir_runtime.pytorch import is_exported

if TYPE_CHECKING:
    from hipdnn_mlir_runtime.cli.arrays import Array


def quantize(given: SimpleNamespace) -> int:
    """Quantize an ONNX model to 8 bits with ONNX Runtime's quantizer: u8 values, s8 weights per channel."""
    from hipdnn_mlir_runtime.cli.render import bytes_text

    output = given.output or given.model.with_name(f"{given.model.stem}-int8.onnx")
    check_folder(output, "--output")
    if is_exported(given.model):
        hint = "export the module with torch.onnx.export, and quantize that"
        raise ModelError("ONNX Runtime quantizes ONNX models", where=str(given.model), hint=hint)
    quantizer = _quantizer()
    samples = None if given.calibrate is None else _Samples(given.model, given.calibrate)
    with working(f"quantizing {given.model.name}", quiet=given.quiet), tempfile.TemporaryDirectory() as scratch:
        prepared = Path(scratch, "prepared.onnx")
        try:
            _prepare(given.model, prepared)
            common = {"per_channel": True, "reduce_range": given.reduce_range, "weight_type": quantizer.QuantType.QInt8}
            if samples is None:
                quantizer.quantize_dynamic(prepared, output, **common)
            else:
                common |= {"activation_type": quantizer.QuantType.QUInt8, "quant_format": quantizer.QuantFormat.QDQ}
                quantizer.quantize_static(prepared, output, samples, **common)
        except ModelError:
            raise
        except Exception as error:  # of another library, which raises anything
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"ONNX Runtime's quantizer refuses it: {first[0]}", where=str(given.model)) from error
    sizes = [path.stat().st_size for path in (given.model, output)]
    data = {
        "output": str(output),
        "bytes": sizes[1],
        "bytes_before": sizes[0],
        "samples": samples.count if samples else 0,
    }
    way = f"calibrated with {data['samples']} samples" if samples else "values are quantized in each run"

    def text() -> str:
        head = f"{output}: {bytes_text(sizes[1])}, before {bytes_text(sizes[0])}; {way}"
        return f"{head}\nWhat it costs: hipdnn-mlir verify {output} --reference {given.model}"

    show(given, lambda: data, text)
    return 0


def _quantizer() -> ModuleType:
    try:
        return importlib.import_module("onnxruntime.quantization")
    except ImportError as error:
        hint = "pip install onnxruntime sympy"
        raise ModelError(f"ONNX Runtime's quantizer is missing: {error}", where="quantize", hint=hint) from error


def _prepare(model: Path, prepared: Path) -> None:
    """Batch norms folded, shapes known; the model as it is where its shapes cannot be inferred."""
    preparation = importlib.import_module("onnxruntime.quantization.shape_inference")
    preparation.quant_pre_process(model, prepared, skip_symbolic_shape=True)


class _Samples:
    """Inputs of runs, for ONNX Runtime's calibration: one run for each `.npz` file of a folder, or each `.npy` file of one input."""

    def __init__(self, model: Path, folder: Path) -> None:
        import onnxruntime as ort

        if not folder.is_dir():
            raise ModelError("no such folder", where=str(folder), expected="a folder of .npz or .npy files")
        session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
        self._names = [value.name for value in session.get_inputs()]
        self._files = sorted(path for path in folder.iterdir() if path.suffix in (".npy", ".npz"))
        if not self._files:
            hint = "write each sample with numpy.savez, its arrays named as the model's inputs"
            raise ModelError("no samples", where=str(folder), expected=".npz or .npy files", hint=hint)
        self._left: Iterator[Path] = iter(self._files)

    @property
    def count(self) -> int:
        """Samples there are."""
        return len(self._files)

    def get_next(self) -> Mapping[str, Array] | None:
        """The inputs of the next run; None behind the last one."""
        path = next(self._left, None)
        return None if path is None else self._read(path)

    def _read(self, path: Path) -> Mapping[str, Array]:
        import numpy as np

        from hipdnn_mlir_runtime.cli.arrays import read_array

        if path.suffix == ".npy":
            if len(self._names) != 1:
                raise ModelError("one array", where=str(path), expected=f"an .npz file with {', '.join(self._names)}")
            return {self._names[0]: read_array(path)}
        try:
            with np.load(path, allow_pickle=False) as archive:
                found = {name: archive[name] for name in archive.files}
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot read the arrays: {error}", where=str(path)) from error
        if set(found) != set(self._names):
            got, expected = ", ".join(found) or "none", ", ".join(self._names)
            raise ModelError("arrays of other names than the inputs", where=str(path), expected=expected, got=got)
        return found

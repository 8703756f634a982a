"""The command `quantize`: ONNX Runtime's quantizer, with what the engines of the CPU take as integers."""

from __future__ import annotations

import importlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING

from hipdnn_mlir_runtime.atomic_file import written
from hipdnn_mlir_runtime.cli.main import show
from hipdnn_mlir_runtime.cli.needs import check_folder
from hipdnn_mlir_runtime.cli.progress import working
from hipdnn_mlir_runtime.errors import HipdnnMlirError, MachineError, ModelError
from hipdnn_mlir_runtime.pytorch import is_exported

if TYPE_CHECKING:
    from hipdnn_mlir_runtime.cli.arrays import Array
    from hipdnn_mlir_runtime.session.arrays import Port


def quantize(given: SimpleNamespace) -> int:
    """Quantize an ONNX model to 8 bits with ONNX Runtime's quantizer: u8 values, s8 weights per channel."""
    from hipdnn_mlir_runtime.cli.render import bytes_text

    output = given.output or given.model.with_name(f"{given.model.stem}-int8.onnx")
    check_folder(output, "--output")
    if is_exported(given.model):
        hint = "export the module with torch.onnx.export, and quantize that"
        raise ModelError("ONNX Runtime quantizes ONNX models", where=str(given.model), hint=hint)
    quantizer = _quantizer()
    inputs = _inputs(given.model)
    samples = None if given.calibrate is None else _Samples(inputs, given.calibrate)
    with working(f"quantizing {given.model.name}", quiet=given.quiet), tempfile.TemporaryDirectory() as scratch:
        prepared, made = Path(scratch, "prepared.onnx"), Path(scratch, "made.onnx")
        try:
            _prepare(given.model, prepared)
            common = {"per_channel": True, "reduce_range": given.reduce_range, "weight_type": quantizer.QuantType.QInt8}
            if samples is None:
                quantizer.quantize_dynamic(prepared, made, **common)
            else:
                common |= {"activation_type": quantizer.QuantType.QUInt8, "quant_format": quantizer.QuantFormat.QDQ}
                quantizer.quantize_static(prepared, made, samples, **common)
        except HipdnnMlirError:
            raise
        except OSError as error:
            raise MachineError(error.strerror or str(error), where=error.filename or scratch) from error
        except Exception as error:  # of another library, which raises anything
            first = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(f"ONNX Runtime's quantizer refuses it: {first[0]}", where=str(given.model)) from error
        with made.open("rb") as file, written(output) as place:
            shutil.copyfileobj(file, place)
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


def _inputs(model: Path) -> dict[str, Port | None]:
    """A model's inputs, by name; None where one is no tensor of numbers.

    Raises:
        ModelError: It is no model.
    """
    from hipdnn_mlir_runtime.session.arrays import Port

    from ..frontend.model_file import read_model
    from ..frontend.onnx_types import BY_ONNX

    graph = read_model(model).proto.graph
    weights = {weight.name for weight in graph.initializer}
    found: dict[str, Port | None] = {}
    for value in graph.input:
        kind, tensor = BY_ONNX.get(value.type.tensor_type.elem_type), value.type.tensor_type
        dims = [dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?" for dim in tensor.shape.dim]
        if value.name not in weights:
            has_dims = kind is not None and tensor.HasField("shape")
            found[value.name] = Port(value.name, kind.name, tuple(dims)) if kind is not None and has_dims else None
    return found


class _Samples:
    """Inputs of runs, for ONNX Runtime's calibration: one run for each `.npz` file of a folder, or each `.npy` file of one input."""

    def __init__(self, inputs: Mapping[str, Port | None], folder: Path) -> None:
        if not folder.is_dir():
            raise ModelError("no such folder", where=str(folder), expected="a folder of .npz or .npy files")
        self._inputs = inputs
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
        from hipdnn_mlir_runtime.session.arrays import check_array

        path = next(self._left, None)
        if path is None:
            return None
        found = self._read(path)
        if set(found) != set(self._inputs):
            got, expected = ", ".join(found) or "none", ", ".join(self._inputs)
            raise ModelError("arrays of other names than the inputs", where=str(path), expected=expected, got=got)
        for name, port in self._inputs.items():
            if port is not None:
                check_array(found[name], port, f"{path}: ")
        return found

    def _read(self, path: Path) -> Mapping[str, Array]:
        from hipdnn_mlir_runtime.cli.arrays import read_array, read_arrays

        if path.suffix == ".npz":
            return read_arrays(path)
        if len(self._inputs) != 1:
            raise ModelError("one array", where=str(path), expected=f"an .npz file with {', '.join(self._inputs)}")
        return {next(iter(self._inputs)): read_array(path)}

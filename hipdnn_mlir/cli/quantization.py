"""The command `quantize`: ONNX Runtime's quantizer, with what the engines of the CPU take as integers."""

from __future__ import annotations

import contextlib
import importlib
import logging
import shutil
import tempfile
import warnings
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
    from onnx import ModelProto

    from hipdnn_mlir_runtime.cli.arrays import Array
    from hipdnn_mlir_runtime.session.arrays import Port

_CHANNELS = 13
"""The opset from which on scales differ by channel."""
_IN_EACH_RUN = ("Gather", "LSTM", "MatMul")
"""Operators that engines take as integers, or that move those; a convolution quantized in each run is computed in floats, and is slower."""
_QUANTIZED = frozenset(
    {
        "ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "DynamicQuantizeLSTM", "MatMulInteger", "QLinearConv", "QLinearMatMul",
        "QuantizeLinear",
    }
)  # fmt: skip
"""Operators that a model has which is quantized."""


def quantize(given: SimpleNamespace) -> int:
    """Quantize an ONNX model to 8 bits with ONNX Runtime's quantizer: u8 values, s8 weights per channel."""
    import onnx

    from hipdnn_mlir_runtime.cli.render import bytes_text

    output = given.output or given.model.with_name(f"{given.model.stem}-int8.onnx")
    check_folder(output, "--output")
    if is_exported(given.model):
        hint = "export the module with torch.onnx.export, and quantize that"
        raise ModelError("ONNX Runtime quantizes ONNX models", where=str(given.model), hint=hint)
    quantizer = _quantizer()
    inputs = _inputs(given.model)
    samples = None if given.calibrate is None else _Samples(inputs, given.calibrate)
    with (
        working(f"quantizing {given.model.name}", quiet=given.quiet),
        tempfile.TemporaryDirectory() as scratch,
        _without_messages(),
    ):
        prepared, made = Path(scratch, "prepared.onnx"), Path(scratch, "made.onnx")
        try:
            size = _prepare(given.model, prepared)
            common = {"per_channel": True, "reduce_range": given.reduce_range, "weight_type": quantizer.QuantType.QInt8}
            if samples is None:
                quantizer.quantize_dynamic(prepared, made, op_types_to_quantize=list(_IN_EACH_RUN), **common)
            else:
                common |= {"activation_type": quantizer.QuantType.QUInt8, "quant_format": quantizer.QuantFormat.QDQ}
                quantizer.quantize_static(prepared, made, samples, **common)
        except HipdnnMlirError:
            raise
        except OSError as error:
            raise MachineError(error.strerror or str(error), where=error.filename or scratch) from error
        except Exception as error:  # of another library, which raises anything
            first = str(error).strip().splitlines() or [type(error).__name__]
            hint = "" if samples is None else samples.doubt
            raise ModelError(
                f"ONNX Runtime's quantizer refuses it: {first[0]}", where=str(given.model), hint=hint
            ) from error
        if not _is_quantized(onnx.load(made, load_external_data=False)):
            expected = (
                "MatMul with constant weights, of f32" if samples is None else "operators of f32 with a form in 8 bits"
            )
            hint = "give --calibrate for other operators" if samples is None else ""
            raise ModelError("nothing to quantize", where=str(given.model), expected=expected, hint=hint)
        with made.open("rb") as file, written(output) as place:
            shutil.copyfileobj(file, place)
    data = {
        "output": str(output),
        "bytes": output.stat().st_size,
        "bytes_before": size,
        "samples": samples.count if samples else 0,
    }
    way = f"calibrated with {data['samples']} samples" if samples else "values are quantized in each run"

    def text() -> str:
        head = f"{output}: {bytes_text(data['bytes'])}, before {bytes_text(size)}; {way}"
        return f"{head}\nWhat it costs: hipdnn-mlir verify {output} --reference {given.model}"

    show(given, lambda: data, text)
    return 0


def _quantizer() -> ModuleType:
    try:
        return importlib.import_module("onnxruntime.quantization")
    except ImportError as error:
        hint = "pip install onnxruntime sympy"
        raise ModelError(f"ONNX Runtime's quantizer is missing: {error}", where="quantize", hint=hint) from error


@contextlib.contextmanager
def _without_messages() -> Iterator[None]:
    """Without what ONNX Runtime and its quantizer log and warn of: what ends badly is an exception."""
    runtime = importlib.import_module("onnxruntime")
    runtime.set_default_logger_severity(4)
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logging.disable(logging.NOTSET)
        runtime.set_default_logger_severity(2)


def _prepare(model: Path, prepared: Path) -> int:
    """One file of an opset that has scales by channel, batch norms folded, shapes known as far as they can be inferred.

    Returns:
        The bytes of the model, weights in other files included.

    Raises:
        ModelError: it is quantized already, or its opset is older and cannot be converted.
    """
    import onnx

    from ..frontend.prepare import upgraded

    preparation = importlib.import_module("onnxruntime.quantization.shape_inference")
    whole = onnx.load(model)
    if _is_quantized(whole):
        raise ModelError("it is quantized already", where=str(model), hint="quantize the model that it was made of")
    file = prepared.with_name("whole.onnx")
    onnx.save(upgraded(whole, str(model), _CHANNELS), file)
    preparation.quant_pre_process(file, prepared, skip_symbolic_shape=True)
    return file.stat().st_size


def _is_quantized(model: ModelProto) -> bool:
    return any(node.op_type in _QUANTIZED for node in model.graph.node)


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
        self.doubt = ""
        """What may be wrong with a sample."""

    @property
    def count(self) -> int:
        """Samples there are."""
        return len(self._files)

    def get_next(self) -> Mapping[str, Array] | None:
        """The inputs of the next run; None behind the last one."""
        import numpy as np

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
        if any(array.dtype.kind == "f" and not np.isfinite(array).all() for array in found.values()):
            self.doubt = f"{path} has infinite numbers or NaN"
        return found

    def _read(self, path: Path) -> Mapping[str, Array]:
        from hipdnn_mlir_runtime.cli.arrays import read_array, read_arrays

        if path.suffix == ".npz":
            return read_arrays(path)
        if len(self._inputs) != 1:
            raise ModelError("one array", where=str(path), expected=f"an .npz file with {', '.join(self._inputs)}")
        return {next(iter(self._inputs)): read_array(path)}

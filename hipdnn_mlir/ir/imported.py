"""A model in the torch dialect."""

from dataclasses import dataclass

from torch_mlir import ir

from hipdnn_mlir_runtime.dtypes import DType

from ..ops.evaluate import Array
from ..ops.strides import Dims

Weights = dict[str, Array]


@dataclass(frozen=True)
class TensorInfo:
    """A model input or output: name, dtype, dims; `coded` is the name of the type of which it has the codes."""

    name: str
    dtype: DType
    dims: Dims
    coded: str = ""


@dataclass
class Imported:
    """A model in the torch dialect.

    Attributes:
        module: `func.func @main` with inputs, then constants marked `hipdnn.constant`.
        weights: constant name -> array.
        inputs, outputs: as in the ONNX model.
        name: the graph's name.
        sha256: digest of the model file, weights included.
    """

    module: ir.Module
    weights: Weights
    inputs: list[TensorInfo]
    outputs: list[TensorInfo]
    name: str
    sha256: str = ""

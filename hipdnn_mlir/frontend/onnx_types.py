"""ONNX's element types by number."""

from onnx import TensorProto

from hipdnn_mlir_runtime.dtypes import ALL, CODED

BY_ONNX = {TensorProto.DataType.Value(dtype.onnx): dtype for dtype in ALL}
CODED_BY_ONNX = {TensorProto.DataType.Value(dtype.onnx): dtype for dtype in CODED}

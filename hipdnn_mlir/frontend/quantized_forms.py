"""Operators between DequantizeLinear and QuantizeLinear, and dynamically quantized products, as integer operators."""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from hipdnn_mlir_runtime.dtypes import find_numpy

from ..ops.evaluate import Array
from ..ops.registry import HIPDNN_DOMAIN
from .decompositions.registry import CONTRIB
from .onnx_types import BY_ONNX
from .shape_inference import attributes_of

_MATRIX = 2
"""Dims."""
_ZERO = "hipdnn.zero"
"""The zero point of weights."""
_RELATIVE = 1e-3
"""By which the scale of a bias may differ from the product of scales: models state it in f32."""


def write_integer_forms(model: onnx.ModelProto, weights: Mapping[str, Array]) -> None:
    """Write QDQ and dynamic quantization as integer operators, in place; what is left unused goes.

    DequantizeLinear, Conv, Relu, QuantizeLinear become QLinearConv; with MatMul and Gemm QLinearMatMul and QGemm. An Add of a constant that
    follows a MatMul makes it the hipdnn domain's QLinearMatMulWithBias. A MatMul without QuantizeLinear becomes MatMulIntegerToFloat, and
    so do MatMulInteger, Cast, Mul. Weights are signed, without zero points; biases are scaled by the product of both scales. MatMul and
    Gemm of floats of 8 bits become the hipdnn domain's DequantizedMatMul. Other places stay as they are.

    Args:
        model: of one of the opsets that are imported.
        weights: constants that are inputs of the graph.
    """
    if not any(node.op_type in ("DequantizeLinear", "MatMulInteger") for node in model.graph.node):
        return
    if _Forms(model.graph, weights).run():
        known = {entry.domain for entry in model.opset_import}
        missing = [domain for domain in (CONTRIB, HIPDNN_DOMAIN) if domain not in known]
        model.opset_import.extend(onnx.helper.make_opsetid(domain, 1) for domain in missing)


class _Forms:
    """One walk over a graph."""

    def __init__(self, graph: onnx.GraphProto, weights: Mapping[str, Array]) -> None:
        self._graph = graph
        self._small = {tensor.name: tensor for tensor in graph.initializer}
        self._large = weights
        self._constants = set(self._small) | set(weights)
        self._signed = {name for name, tensor in self._small.items() if tensor.data_type == onnx.TensorProto.INT8}
        self._signed |= {name for name, array in weights.items() if array.dtype == np.int8}
        self._made = {name: node for node in graph.node for name in node.output}
        self._readers: dict[str, list[onnx.NodeProto]] = {}
        for node in graph.node:
            for name in node.input:
                self._readers.setdefault(name, []).append(node)
        self._returned = {value.name for value in graph.output}
        self._became: dict[int, onnx.NodeProto] = {}
        """By the id of the last node of a pattern."""

    def run(self) -> bool:
        """Whether anything became another operator."""
        nodes = list(self._graph.node)
        for node in nodes:
            match node.op_type:
                case "Conv":
                    self._conv(node)
                case "MatMul":
                    self._matmul(node)
                case "Gemm":
                    self._gemm(node)
                case "MatMulInteger":
                    self._dynamic(node)
        if not self._became:
            return False
        self._graph.initializer.append(numpy_helper.from_array(np.array(0, np.int8), _ZERO))
        kept = [self._became.get(id(node), node) for node in nodes]
        del self._graph.node[:]
        self._graph.node.extend(_used(kept, self._returned))
        return True

    # -- patterns -------------------------------------------------------------------------------------------------

    def _conv(self, node: onnx.NodeProto) -> None:
        x, w = self._dequantized(node.input[0]), self._weights(node.input[1], 0)
        last = self._quantize(node)
        if x is None or w is None or last is None:
            return
        bias = self._bias(node, 2, x, w)
        if bias is None:
            return
        stated = attributes_of(node)
        self._become(last, "QLinearConv", [*x, *w, *last.input[1:3], *bias], node, **stated)

    def _matmul(self, node: onnx.NodeProto) -> None:
        if self._float8(node, []):
            return
        a, b = self._dequantized(node.input[0]), self._matrix(node.input[1])
        if a is None or b is None:
            return
        last = self._quantize(node)
        if last is None:
            self._to_float(node, a, b, node)
            return
        biased = self._biased(last, self._value(b[0]))
        if biased is None:
            self._become(last, "QLinearMatMul", [*a, *b, *last.input[1:3]], node)
        else:
            bias, end = biased
            self._become(end, "QLinearMatMulWithBias", [*a, *b, *end.input[1:3], bias], node, domain=HIPDNN_DOMAIN)

    def _gemm(self, node: onnx.NodeProto) -> None:
        stated = attributes_of(node)
        transposed = stated.get("transB", 0)
        is_plain = not stated.get("transA", 0) and stated.get("alpha", 1.0) == stated.get("beta", 1.0) == 1.0
        if is_plain and self._float8(node, list(node.input[2:]), transposed):
            return
        a, b = self._dequantized(node.input[0]), self._matrix(node.input[1], 0 if transposed else 1)
        last = self._quantize(node)
        if a is None or b is None or last is None or stated.get("transA", 0) or stated.get("alpha", 1.0) != 1.0:
            return
        bias = self._bias(node, 2, a, b)
        if bias is None or (bias and stated.get("beta", 1.0) != 1.0):
            return
        inputs = [*a, *b, *(bias or [""]), *last.input[1:3]]
        self._become(last, "QGemm", inputs, node, domain=CONTRIB, transB=transposed)

    def _dynamic(self, node: onnx.NodeProto) -> None:
        """MatMulInteger of what DynamicQuantizeLinear makes, times both scales."""
        quantize = self._made.get(node.input[0])
        cast = self._only_reader(node.output[0], "Cast")
        scaled = self._only_reader(cast.output[0], "Mul") if cast else None
        if quantize is None or quantize.op_type != "DynamicQuantizeLinear" or cast is None or scaled is None:
            return
        zeros = node.input[2:4]
        product = self._made.get(next(name for name in scaled.input if name != cast.output[0]))
        if len(zeros) < 1 or zeros[0] != quantize.output[2] or product is None or product.op_type != "Mul":
            return
        scales = [name for name in product.input if name != quantize.output[1]]
        weights = node.input[1]
        if len(scales) != 1 or not self._has_rank(weights, _MATRIX) or not self._is_signed(weights, *zeros[1:]):
            return
        scale = self._value(scales[0])
        if scale is None or scale.ndim > 1:
            return
        a = [node.input[0], quantize.output[1], zeros[0]]
        self._to_float(scaled, a, [weights, scales[0], _ZERO], node)

    def _float8(self, node: onnx.NodeProto, bias: list[str], transposed: int = 0) -> bool:
        """Whether both operands are floats of 8 bits, the second one constant and a matrix: then it is one product of them."""
        a, made = self._made.get(node.input[0]), self._made.get(node.input[1])
        if made is not None and made.op_type == "Transpose" and list(attributes_of(made).get("perm", (1, 0))) == [1, 0]:
            transposed, made = 1 - transposed, self._made.get(made.input[0])
        if a is None or made is None or not (self._is_float8(a) and self._is_float8(made)):
            return False
        numbers, of_a, of_b = self._value(made.input[0]), self._value(a.input[1]), self._value(made.input[1])
        if numbers is None or numbers.ndim != _MATRIX or of_a is None or of_b is None or of_a.size != 1:
            return False
        stated, columns = attributes_of(made), 0 if transposed else 1
        if of_b.size != 1 and (of_b.ndim != 1 or stated.get("axis", 1) % _MATRIX != columns):
            return False
        if of_a.dtype != of_b.dtype or not (of_b > 0).all():
            return False
        inputs = [a.input[0], made.input[0], a.input[1], made.input[1], *bias]
        self._become(node, "DequantizedMatMul", inputs, node, domain=HIPDNN_DOMAIN, transposed=transposed)
        return True

    def _is_float8(self, node: onnx.NodeProto) -> bool:
        """Whether a node dequantizes floats of 8 bits in no blocks, to the type of its scale."""
        stated = attributes_of(node)
        if node.op_type != "DequantizeLinear" or stated.get("block_size", 0) or stated.get("output_dtype", 0):
            return False
        zero = self._value(node.input[2]) if len(node.input) > 2 else None
        if len(node.input) > 2 and (zero is None or zero.astype(np.float32).any()):
            return False
        zero = self._value(node.input[0]) if zero is None else zero
        source = self._made.get(node.input[0])
        if zero is None and source is not None and source.op_type == "QuantizeLinear":
            if stated_kind := attributes_of(source).get("output_dtype", 0):
                return BY_ONNX[stated_kind].is_float8
            zero = self._value(source.input[2]) if len(source.input) > 2 else None
        kind = None if zero is None else find_numpy(zero.dtype)
        return kind is not None and kind.is_float8

    def _to_float(self, last: onnx.NodeProto, a: list[str], b: list[str], node: onnx.NodeProto) -> None:
        inputs = [a[0], b[0], a[1], b[1], a[2], b[2]]
        self._become(last, "MatMulIntegerToFloat", inputs, node, domain=CONTRIB)

    # -- parts ----------------------------------------------------------------------------------------------------

    def _dequantized(self, name: str) -> list[str] | None:
        """Integers, scale and zero point of a value with one scale that is known."""
        node = self._made.get(name)
        if node is None or node.op_type != "DequantizeLinear" or len(node.input) < 3:
            return None
        scale, zero = self._value(node.input[1]), self._value(node.input[2])
        if scale is None or zero is None or scale.size != 1 or not _is_float32(node, scale):
            return None
        return list(node.input) if zero.size == 1 and zero.dtype in (np.uint8, np.int8) else None

    def _matrix(self, name: str, axis: int = 1) -> list[str] | None:
        """As `_weights`, of two dims."""
        found = self._weights(name, axis)
        return found if found is not None and self._has_rank(found[0], _MATRIX) else None

    def _has_rank(self, name: str, rank: int) -> bool:
        numbers = self._value(name)
        return numbers is not None and numbers.ndim == rank

    def _weights(self, name: str, axis: int) -> list[str] | None:
        """Signed constant integers with one scale, or one for each index of an axis, scale and zero point."""
        node = self._made.get(name)
        if node is None or node.op_type != "DequantizeLinear" or node.input[0] not in self._constants:
            return None
        stated = attributes_of(node)
        scale = self._value(node.input[1])
        if scale is None or (scale.size != 1 and stated.get("axis", 1) != axis) or not _is_float32(node, scale):
            return None
        if stated.get("block_size", 0) or len(node.input) < 3 or not self._is_signed(node.input[0], node.input[2]):
            return None
        return [*node.input[:2], _ZERO]

    def _is_signed(self, numbers: str, zero: str = "") -> bool:
        shift = self._value(zero) if zero else np.zeros(1)
        return numbers in self._signed and shift is not None and not shift.any()

    def _bias(self, node: onnx.NodeProto, index: int, x: list[str], w: list[str]) -> list[str] | None:
        """The integers of a bias in a list, an empty one where there is none; None where it has another scale."""
        if len(node.input) <= index or not node.input[index]:
            return []
        made = self._made.get(node.input[index])
        if made is None or made.op_type != "DequantizeLinear" or made.input[0] not in self._constants:
            return None
        scale, of_x, of_w, numbers = (self._value(name) for name in (made.input[1], x[1], w[1], made.input[0]))
        if scale is None or of_x is None or of_w is None or numbers is None:
            return None
        shift = self._value(made.input[2]) if len(made.input) > 2 else None
        if (shift is not None and shift.any()) or numbers.shape not in ((), (numbers.size,), (1, numbers.size)):
            return None
        product = of_x.reshape(-1) * of_w.reshape(-1)
        if scale.size not in (1, product.size) or not np.allclose(scale.reshape(-1), product, rtol=_RELATIVE, atol=0):
            return None
        return [made.input[0]]

    def _biased(self, last: onnx.NodeProto, weights: Array | None) -> tuple[str, onnx.NodeProto] | None:
        """A constant that is added to a product behind its QuantizeLinear, and the QuantizeLinear of the sum; not behind an activation.

        The sum is rounded once, which may differ by a step from rounding twice.
        """
        zero, again = self._value(last.input[2]), self._only_reader(last.output[0], "DequantizeLinear")
        added = self._only_reader(again.output[0], "Add") if again is not None else None
        if again is None or added is None or weights is None or len(again.input) < 3:
            return None
        pairs = [(self._value(a), self._value(b)) for a, b in zip(again.input[1:3], last.input[1:3], strict=True)]
        if any(a is None or b is None or not np.array_equal(a, b) for a, b in pairs):
            return None
        if zero is None or int(zero.item()) == np.iinfo(zero.dtype).min:
            return None
        bias = next((name for name in added.input if name != again.output[0]), "")
        source = self._made.get(bias)
        stored = source.input[0] if source is not None and source.op_type == "DequantizeLinear" else bias
        numbers, end = self._value(stored), self._quantize(added)
        if (
            numbers is None
            or end is None
            or numbers.shape[-1:] != weights.shape[-1:]
            or numbers.size != weights.shape[-1]
        ):
            return None
        return bias, end

    def _quantize(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """The QuantizeLinear that is all that reads a node, or an activation behind it that cuts nothing but what clipping cuts.

        Where the zero point is not the least integer, sums behind it may be rounded with it, without what clipping cuts.
        """
        low, high = -np.inf, np.inf
        reader = self._only_reader(node.output[0])
        if reader is not None and reader.op_type in ("Relu", "Clip"):
            bounds = [self._value(name) if name else None for name in reader.input[1:]]
            low = 0.0 if reader.op_type == "Relu" else float(bounds[0]) if bounds and bounds[0] is not None else low
            high = float(bounds[1]) if len(bounds) > 1 and bounds[1] is not None else high
            if reader.op_type == "Clip" and any(name and self._value(name) is None for name in reader.input[1:]):
                return None
            reader = self._only_reader(reader.output[0])
        if reader is None or reader.op_type != "QuantizeLinear" or len(reader.input) < 3:
            return None
        scale, zero = self._value(reader.input[1]), self._value(reader.input[2])
        if scale is None or zero is None or scale.size != 1 or scale.dtype != np.float32:
            return None
        if zero.size != 1 or zero.dtype not in (np.uint8, np.int8):
            return None
        limits, step, shift = np.iinfo(zero.dtype), float(scale.item()), int(zero.item())
        if reader.input[0] != node.output[0] and shift != limits.min:
            return None
        lowest, highest = (limits.min - shift) * step, (limits.max - shift) * step
        return reader if step > 0 and lowest >= low - 0.5 * step and highest <= high + 0.5 * step else None

    # -- the graph ------------------------------------------------------------------------------------------------

    def _value(self, name: str) -> Array | None:
        """The numbers of a constant."""
        tensor = self._small.get(name)
        return self._large.get(name) if tensor is None else numpy_helper.to_array(tensor)

    def _only_reader(self, name: str, op: str = "") -> onnx.NodeProto | None:
        readers = self._readers.get(name, [])
        if len(readers) != 1 or name in self._returned or (op and readers[0].op_type != op):
            return None
        return readers[0]

    def _become(
        self,
        last: onnx.NodeProto,
        op: str,
        inputs: list[str],
        node: onnx.NodeProto,
        *,
        domain: str = "",
        **stated: Any,
    ) -> None:
        self._became[id(last)] = onnx.helper.make_node(
            op, inputs, list(last.output), name=node.name, domain=domain, **stated
        )


def _is_float32(node: onnx.NodeProto, scale: Array) -> bool:
    """Whether a DequantizeLinear gives f32."""
    stated = attributes_of(node).get("output_dtype", 0)
    return scale.dtype == np.float32 and stated in (0, onnx.TensorProto.FLOAT)


def _used(nodes: list[onnx.NodeProto], returned: Collection[str]) -> list[onnx.NodeProto]:
    """Nodes whose results something reads."""
    wanted = set(returned)
    kept = []
    for node in reversed(nodes):
        if wanted.isdisjoint(node.output):
            continue
        kept.append(node)
        wanted.update(node.input)
        for attribute in node.attribute:
            for graph in (attribute.g, *attribute.graphs):
                wanted.update(name for inner in graph.node for name in inner.input)
    return kept[::-1]

"""Caches of keys and values in pages that all sequences share, in the place of a buffer for each of a batch."""

import onnx

from hipdnn_mlir_runtime.errors import ModelError

from ..ops.registry import HIPDNN_DOMAIN
from .decompositions.contrib_attention import PAGES as PAGE_TABLE_OPERAND
from .decompositions.registry import CONTRIB

PAGE_TABLE = "page_table"
"""The input that is added: i32 [batch, pages of a sequence]."""
PAGES, SEQUENCE_PAGES = "pages", "sequence_pages"
"""Names of the sizes that are added: pages of a cache, and of a sequence."""
_PAST = (3, 4)
_PRESENT = (1, 2)


def paged(model: onnx.ModelProto, page_rows: int, where: str = "model") -> onnx.ModelProto:
    """A decoder whose caches are pages.

    Before: `past_key[b, heads, rows, d]` of GroupQueryAttention, each row of the batch with a part of its own.
    After: `past_key[pages, heads, page_rows, d]` of PagedGroupQueryAttention, and one more input, `page_table[b, n]`: row i of a sequence
    is row i % page_rows of the page that entry i / page_rows of its part of the table names.

    Args:
        model: the decoder; not modified.
        page_rows: keys of one page.
        where: the model's file, for messages.

    Raises:
        ModelError: the model has no such caches, or uses them otherwise; a page has no rows.
    """
    if page_rows < 1:
        raise ModelError("bad value", where="page_rows", expected="a whole number from 1", got=str(page_rows))
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    inputs, outputs = ({port.name: port for port in ports} for ports in (graph.input, graph.output))
    nodes = [node for node in graph.node if _is_cached(node)]
    caches = {node.input[index] for node in nodes for index in _PAST}
    results = {node.output[index] for node in nodes for index in _PRESENT if index < len(node.output)}
    if not nodes or not caches <= set(inputs) or not results <= set(outputs) or PAGE_TABLE in inputs:
        raise ModelError(
            "no caches that can be paged",
            where=where,
            expected="a decoder with GroupQueryAttention, whose caches are inputs and outputs of the model",
            hint="export it with onnxruntime-genai's model builder; -e cuda has them in all precisions",
        )
    readers = [node.name for node in graph.node if not _is_cached(node) and caches & set(node.input)]
    if readers:
        raise ModelError("a cache that is not read by attention alone", where=f"{where}: {readers[0]}")
    batch = inputs[min(caches)].type.tensor_type.shape.dim[0]
    table = onnx.helper.make_tensor_value_info(PAGE_TABLE, onnx.TensorProto.INT32, [None, SEQUENCE_PAGES])
    table.type.tensor_type.shape.dim[0].CopyFrom(batch)
    for port in (*(inputs[name] for name in caches), *(outputs[name] for name in results)):
        _lay_in_pages(port, page_rows)
    graph.input.append(table)
    for node in nodes:
        node.op_type, node.domain = "PagedGroupQueryAttention", HIPDNN_DOMAIN
        node.input.extend([""] * (PAGE_TABLE_OPERAND - len(node.input)))
        node.input.append(PAGE_TABLE)
    if all(entry.domain != HIPDNN_DOMAIN for entry in made.opset_import):
        made.opset_import.append(onnx.helper.make_opsetid(HIPDNN_DOMAIN, 1))
    return made


def _is_cached(node: onnx.NodeProto) -> bool:
    is_attention = node.op_type == "GroupQueryAttention" and node.domain == CONTRIB
    return is_attention and len(node.input) > max(_PAST) and all(node.input[index] for index in _PAST)


def _lay_in_pages(port: onnx.ValueInfoProto, page_rows: int) -> None:
    dims = port.type.tensor_type.shape.dim
    dims[0].Clear()
    dims[0].dim_param = PAGES
    dims[2].Clear()
    dims[2].dim_value = page_rows

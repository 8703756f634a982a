"""An exported module at given sizes -> module in the torch dialect, its weights outside the IR."""

from torch import fx
from torch_mlir import ir
from torch_mlir.extras import fx_importer

from hipdnn_mlir_runtime.dtypes import BF16
from hipdnn_mlir_runtime.errors import Reject, UnsupportedError
from hipdnn_mlir_runtime.pytorch import to_numpy

from ...ir.attention_masks import CAUSAL_MASK, is_causal_mask
from ...ir.constants import CONSTANT
from ...ir.imported import Imported, TensorInfo, Weights
from ...ir.literals import literal
from ...ops.evaluate import Array
from .exported import Exported
from .specialize import StaticGraph
from .tensors import dtype_of

MAX_LITERAL = 1 << 16
"""Elements of integer and boolean constants that stay in the IR, where passes read them."""


def import_graph(graph: StaticGraph, exported: Exported, context: ir.Context) -> Imported:
    """Bring a module at fixed sizes into MLIR.

    Args:
        graph: from `specialized`.
        exported: the module it is of.
        context: from dialect.make_context().

    Raises:
        UnsupportedError: ops that torch-mlir's importer does not take, types without a row.
    """
    inputs = [_info(name, node) for name, node in graph.inputs.items()]
    outputs = [_info(name, node) for name, node in graph.outputs.items()]
    module = _to_mlir(graph.graph, context)
    weights = {name: to_numpy(tensor) for name, tensor in graph.constants.items()}
    _annotate(module, len(inputs), weights)
    return Imported(module, weights, inputs, outputs, exported.name)


def _info(name: str, node: fx.Node) -> TensorInfo:
    value = node.meta["val"]
    return TensorInfo(name, dtype_of(value.dtype, name), tuple(value.shape))


class _Labels(fx_importer.ContextCache):  # type: ignore[misc]
    """Gives ops the labels of their nodes as locations."""

    def get_node_location(self, node: fx.Node) -> ir.Location | None:
        """The label, which messages and reports use."""
        return ir.Location.name(node.meta["label"], context=self._c) if node.op == "call_function" else None


class _Importer(fx_importer.FxImporter):  # type: ignore[misc]
    """torch-mlir's importer with other locations."""

    __slots__ = ()

    def __init__(self, context: ir.Context) -> None:
        super().__init__(context=context)
        self._cc = _Labels(context, py_attr_tracker=self._py_attr_tracker)  # type: ignore[misc]


def _to_mlir(graph: fx.Graph, context: ir.Context) -> ir.Module:
    importer = _Importer(context)
    try:
        importer.import_stateless_graph(graph, func_name="main")
    except (NotImplementedError, TypeError, AssertionError, RuntimeError, KeyError) as error:
        message = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnsupportedError([Reject("module", "torch-mlir", f"its importer refuses it: {message}")]) from error
    return importer.module


def _annotate(module: ir.Module, inputs: int, weights: Weights) -> None:
    """Mark constant arguments, and among them causal masks; single numbers and what is no float become literals, and no weights."""
    function = module.body.operations[0]
    arguments = function.arguments
    with module.context, ir.Location.unknown():
        marks: list[dict[str, ir.Attribute]] = [{} for _ in range(inputs)]
        written = []
        for index, (name, array) in enumerate(list(weights.items()), inputs):
            if _is_written(array):
                with ir.InsertionPoint.at_block_begin(function.entry_block):
                    arguments[index].replace_all_uses_with(literal(array))
                written.append(index)
                del weights[name]
            else:
                causal = {CAUSAL_MASK: ir.UnitAttr.get()} if is_causal_mask(array) else {}
                marks.append({CONSTANT: ir.StringAttr.get(name), **causal})
        for index in reversed(written):
            function.entry_block.erase_argument(index)
        kept = [argument.type for argument in function.arguments]
        function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(kept, function.type.results))
        if marks:
            function.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(mark) for mark in marks])


def _is_written(array: Array) -> bool:
    """Whether a constant stays in the IR, where passes read it."""
    is_float = array.dtype.kind == "f" or array.dtype == BF16.numpy
    return array.size == 1 if is_float else array.size <= MAX_LITERAL

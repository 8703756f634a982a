"""Shape inference by onnx, with the results of operators that only the op table or an extension knows."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import onnx

from hipdnn_mlir_runtime.errors import ModelError, Reject, UnsupportedError

from ..ops.spec import Refusal, Results, TensorType
from ..ops.strides import Dims
from .onnx_inference import inferred, naming_short_operands
from .own_operators import KINDS, RESULTS
from .subgraphs import subgraphs


class _Attributes(Mapping[str, Any]):
    """The attributes of the node that onnx infers the results of; onnx tells them by name alone."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __getitem__(self, name: str) -> Any:
        found = self._context.get_attribute(name)
        if found is None:
            raise KeyError(name)
        return _plain(onnx.helper.get_attribute_value(found))

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError("onnx does not list attributes")

    def __len__(self) -> int:
        raise NotImplementedError("onnx does not list attributes")


def _register(domain: str, operator: str, results: Results) -> None:
    """Tell onnx an operator of ours: one pass of its inference then goes through all of them."""

    def infer(context: Any) -> None:
        kinds = [context.get_input_type(index) for index in range(context.get_num_inputs())]
        if any(kind is not None and not _has_rank(kind.tensor_type) for kind in kinds):
            return
        try:
            operands = [None if kind is None else _type(kind.tensor_type) for kind in kinds]
            made = results(operands, _Attributes(context))
        except Refusal:  # said where the whole model has been seen
            return
        for index, kind in enumerate(made[: context.get_num_outputs()]):
            context.set_output_type(index, _proto(kind))

    parameter = onnx.defs.OpSchema.FormalParameter
    many: dict[str, Any] = {
        "param_option": onnx.defs.OpSchema.FormalParameterOption.Variadic,
        "is_homogeneous": False,
        "min_arity": 0,
    }
    types = [f"tensor({dtype.onnx.lower()})" for dtype in KINDS.values()]
    schema = onnx.defs.OpSchema(
        operator,
        domain,
        1,
        inputs=[parameter("operands", "T", **many)],
        outputs=[parameter("results", "T", **many)],
        type_constraints=[("T", types, "")],
    )
    schema.set_type_and_shape_inference_function(infer)
    onnx.defs.register_schema(schema)


DATA_DEPENDENT = "dynamic-shape"
"""The rule for results of unknown dims; it names every node behind the first one as well."""
SIZED_BY_DATA = "the shape of its result depends on data"
"""The reason of a node whose operands have known dims; those behind it follow."""
_OF_FLOAT8 = 21
"""The version of Transpose that takes floats of 8 bits: older models have them from 19 on, and decompositions transpose them."""
_REPORTED = re.compile(r"node name: (?P<node>[^\n]*?)\): \[\w+\] (?P<reason>[^\n]*)")
"""How onnx's strict inference names the node that it stops at."""


PartialDims = tuple[int | None, ...]
"""Sizes, None for those that are not known."""


class SizesContradictError(ModelError):
    """The dims of a node's operands do not fit each other.

    Args:
        node: the node.
        dims: value -> its dims, those of the node's operands of known rank.
        shape: the numbers that the node's second operand is made of, where they are known.
        reason: what onnx's inference says.
        where: the model's file, for messages.

    Attributes:
        node: the node.
        dims: as given.
        shape: as given.
    """

    def __init__(
        self, node: onnx.NodeProto, dims: Mapping[str, PartialDims], shape: Dims, reason: str, where: str | None = None
    ) -> None:
        known = [name for name in node.input if name in dims]
        operands = ", ".join(f"{name!r} {_shown(dims[name])}" for name in known)
        message = f"{node.op_type} {node.name!r} cannot take {operands}: {reason}"
        super().__init__(message, where=where, hint="give inputs other sizes with --shape, or correct the model")
        self.node = node
        self.dims = dims
        self.shape = shape

    def to_dict(self) -> dict[str, Any]:
        """As of the error that it is to a user."""
        return {**super().to_dict(), "error": ModelError.__name__}


def _shown(dims: PartialDims) -> str:
    return "x".join("?" if size is None else str(size) for size in dims) or "scalar"


def infer_shapes(model: onnx.ModelProto, refused: list[Reject] | None = None) -> onnx.ModelProto:
    """The model with the types of all values that follow from its inputs.

    Args:
        model: not modified.
        refused: gets the nodes that an extension refuses, whose results stay without types then.

    Raises:
        onnx.shape_inference.InferenceError: shapes do not fit.
        UnsupportedError: an extension refuses nodes, and `refused` is not given.
    """
    while True:
        model = inferred(model)
        rejects: list[Reject] = []
        found = _declare_own(model, rejects)
        if rejects and refused is None:
            raise UnsupportedError(rejects)
        if not found:
            if refused is not None:
                refused += rejects
            return model


def contradicted(model: onnx.ModelProto) -> dict[str, onnx.TypeProto]:
    """The values that a model declares with sizes they need not have by those of its inputs: value -> its type as inferred from these.

    ONNX Runtime warns of such declarations, and runs the model with the sizes that follow.

    Args:
        model: not modified.
    """
    values = {value.name: value.type for value in (*model.graph.value_info, *model.graph.output)}
    stated = {name: kind for name, kind in values.items() if _says_sizes(kind.tensor_type)}
    if not stated:
        return {}
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.value_info[:]
    for value in bare.graph.output:
        value.type.tensor_type.ClearField("shape")
    symbols = _name_dims(bare.graph.input)
    try:  # a declared result of an extension's operator is checked instead
        graph = inferred(bare).graph
    except onnx.shape_inference.InferenceError:  # whoever compiles the model says so
        return {}
    found = {value.name: value.type for value in (*graph.value_info, *graph.output)}
    return {n: found[n] for n, kind in stated.items() if n in found and _contradicts(found[n], kind, symbols)}


def _says_sizes(kind: Any) -> bool:
    dims = kind.shape.dim
    return any(dim.dim_value > 0 for dim in dims) if dims else kind.HasField("shape")


def drop_contradicted(model: onnx.ModelProto) -> bool:
    """Drop the sizes that are `contradicted`, so that they are inferred again; whether there were any.

    Args:
        model: modified in place.
    """
    wrong = contradicted(model)
    kept = [value for value in model.graph.value_info if value.name not in wrong]
    del model.graph.value_info[:]
    model.graph.value_info.extend(kept)
    for value in model.graph.output:
        if value.name in wrong:
            value.type.tensor_type.ClearField("shape")
    return bool(wrong)


def _name_dims(inputs: Iterable[onnx.ValueInfoProto]) -> set[str]:
    """Name the dynamic dimensions of inputs that have no name; returns the names of all."""
    names = set()
    for value in inputs:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value") or dim.dim_value < 0:
                dim.dim_param = dim.dim_param or f"{value.name}.{axis}"
                names.add(dim.dim_param)
    return names


def _contradicts(inferred: onnx.TypeProto, declared: onnx.TypeProto, symbols: set[str]) -> bool:
    """Whether a declared number is another by inference, or a dynamic dimension of an input."""
    if not inferred.tensor_type.HasField("shape"):
        return False
    made, stated = inferred.tensor_type.shape.dim, declared.tensor_type.shape.dim
    return len(made) != len(stated) or any(
        b.HasField("dim_value") and (a.dim_param in symbols or (a.HasField("dim_value") and a.dim_value != b.dim_value))
        for a, b in zip(made, stated, strict=True)
    )


def _declare_own(model: onnx.ModelProto, rejects: list[Reject]) -> bool:
    """Declare the results of operators whose operands are known by now; whether there were any."""
    graph = model.graph
    own = [(node, RESULTS[node.domain, node.op_type]) for node in graph.node if (node.domain, node.op_type) in RESULTS]
    types = _known_types(model) if own else {}
    found = False
    for node, results in own:
        wanted = [name for name in node.output if name]
        if all(name in types for name in wanted) or any(n and n not in types for n in node.input):
            continue
        try:
            made = _results(node, results, [types.get(name) for name in node.input])
        except Refusal as refusal:
            rejects.append(Reject(f"{node.domain}.{node.op_type}", refusal.rule, refusal.reason, node.name))
            continue
        for name, kind in zip(node.output, made, strict=False):
            if name:
                _declare(graph, name, kind)
        found = True
    return found


def unknown_results(model: onnx.ModelProto, where: str) -> list[Reject]:
    """The nodes with a result whose dims are not known, those behind other such nodes too.

    torch-mlir's conversion of what follows them may crash.

    Args:
        model: its values have their inferred types.
        where: the model's file, for messages.

    Raises:
        SizesContradictError: the dims are unknown because those of a node's operands contradict each other.
    """
    graph = model.graph
    dims = {value.name: static_dims(value) for value in (*graph.input, *graph.output, *graph.value_info)}
    dims |= {tensor.name: tuple(tensor.dims) for tensor in graph.initializer}
    left = [node for node in graph.node if any(name and dims.get(name) is None for name in node.output)]
    if left:
        _raise_where_sizes_contradict(
            model, left, {name: known for name, known in dims.items() if known is not None}, where
        )
    unknown = {name for node in left for name in node.output if dims.get(name) is None}
    return [
        Reject(
            node.op_type,
            DATA_DEPENDENT,
            SIZED_BY_DATA if unknown.isdisjoint(node.input) else "the shape of its result is not known at compile time",
            node.name,
        )
        for node in left
    ]


def _raise_where_sizes_contradict(
    model: onnx.ModelProto, left: Sequence[onnx.NodeProto], dims: dict[str, Dims], where: str
) -> None:
    """Raise what onnx says of the first node that it cannot infer, if that has operands of known dims.

    Nodes that one was written as share its name: the one that onnx stops at is the first among those `left` without known results.
    """
    try:
        inferred(model, is_strict=True)
    except onnx.shape_inference.InferenceError as error:
        found = _REPORTED.search(str(error))
        node = next((node for node in left if found and node.name == found["node"]), None)
        if found is None or node is None or not all(name in dims for name in node.input if name):
            return
        shape = next((ints(tensor) for tensor in model.graph.initializer if tensor.name in node.input[1:2]), ())
        raise SizesContradictError(node, dims, shape, found["reason"], where) from error


def ints(tensor: onnx.TensorProto) -> Dims:
    """The numbers of a tensor of integers; none of another."""
    return tuple(onnx.numpy_helper.to_array(tensor).reshape(-1).tolist()) if tensor.data_type == tensor.INT64 else ()


def static_dims(value: onnx.ValueInfoProto) -> Dims | None:
    """The sizes of a tensor, or None where one of its dimensions is dynamic."""
    kind = value.type.tensor_type
    dims = kind.shape.dim
    sizes = tuple([dim.dim_value for dim in dims])
    if 0 in sizes:  # as of a dim without a size
        return sizes if all(dim.HasField("dim_value") for dim in dims) else None
    return sizes if sizes or kind.HasField("shape") else None


def node_results(
    node: onnx.NodeProto,
    types: Mapping[str, onnx.TypeProto],
    data: Mapping[str, onnx.TensorProto],
    opsets: Sequence[onnx.OperatorSetIdProto],
) -> dict[str, onnx.TypeProto]:
    """The types of one node's results, as far as those of its operands tell; nothing of an operator that nobody knows.

    Args:
        node: the node.
        types: those of all values, by name.
        data: values of its operands, where they are known.
        opsets: the model's.

    Raises:
        SizesContradictError: it refuses the sizes of its operands.
    """
    if (node.domain, node.op_type) in RESULTS:
        return own_results(node, types)
    domain = "" if node.domain == "ai.onnx" else node.domain
    versions = {"" if entry.domain == "ai.onnx" else entry.domain: entry.version for entry in opsets}
    version = versions.get(domain, versions.get("", 1))
    if node.op_type == "Transpose" and not domain:
        version = max(version, _OF_FLOAT8)
    if not onnx.defs.has(node.op_type, version, domain):
        return {}
    operands = {name: types.get(name, onnx.TypeProto()) for name in node.input if name}
    if any(subgraphs(node)):
        operands = {**types, **operands}  # bodies read values from outside
    if not all(kind.WhichOneof("value") for kind in operands.values()):
        return {}
    schema = onnx.defs.get_schema(node.op_type, version, domain)
    try:
        with naming_short_operands():
            infer = onnx.shape_inference.infer_node_outputs
            found = infer(schema, node, operands, dict(data), opset_imports=list(opsets))
    except onnx.shape_inference.InferenceError as error:
        dims = {name: _type(kind.tensor_type).dims for name, kind in operands.items() if _has_rank(kind.tensor_type)}
        shape = next((ints(data[name]) for name in node.input[1:2] if name in data), ())
        raise SizesContradictError(node, dims, shape, str(error).removeprefix("[ShapeInferenceError] ")) from error
    return {name: kind for name, kind in found.items() if kind.WhichOneof("value")}


def own_results(node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]) -> dict[str, onnx.TypeProto]:
    """The types of the results of an operator in RESULTS, as far as those of its operands tell.

    Args:
        node: the node.
        types: those of all values, by name.

    Raises:
        SizesContradictError: it refuses the sizes of its operands.
    """
    kinds = [types[name].tensor_type if name in types else None for name in node.input]
    if any(name and (kind is None or not _has_rank(kind)) for name, kind in zip(node.input, kinds, strict=True)):
        return {}
    try:
        operands = [None if kind is None else _type(kind) for kind in kinds]
        made = _results(node, RESULTS[node.domain, node.op_type], operands)
    except Refusal as refusal:
        if refusal.rule == "shape":
            dims = {name: _type(kind).dims for name, kind in zip(node.input, kinds, strict=True) if kind is not None}
            raise SizesContradictError(node, dims, (), refusal.reason) from refusal
        return {}  # said where the whole model has been seen
    return {name: _proto(kind) for name, kind in zip(node.output, made, strict=False) if name}


def _known_types(model: onnx.ModelProto) -> dict[str, TensorType]:
    """The values of which dims and element type are known."""
    graph = model.graph
    kinds = {value.name: value.type.tensor_type for value in (*graph.input, *graph.value_info, *graph.output)}
    types = {name: _type(kind) for name, kind in kinds.items() if _is_known(kind)}
    return types | {
        t.name: TensorType(tuple(t.dims), KINDS[t.data_type]) for t in graph.initializer if t.data_type in KINDS
    }


def attributes_of(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes of a node as JSON has them."""
    return {a.name: _plain(onnx.helper.get_attribute_value(a)) for a in node.attribute}


def _results(node: onnx.NodeProto, results: Results, operands: Sequence[TensorType | None]) -> Sequence[TensorType]:
    kinds = results(operands, attributes_of(node))
    if len(kinds) < len(node.output):
        raise Refusal("results", f"the operator has {len(kinds)} results, the node {len(node.output)}")
    return kinds


def _declare(graph: onnx.GraphProto, name: str, kind: TensorType) -> None:
    value = onnx.helper.make_value_info(name, _proto(TensorType(kind.static_dims(), kind.dtype)))
    for output in graph.output:
        if output.name == name:
            output.CopyFrom(value)
            return
    known = [old for old in graph.value_info if old.name == name]
    (known[0] if known else graph.value_info.add()).CopyFrom(value)


def _is_known(kind: Any) -> bool:
    return _has_rank(kind) and all(d.HasField("dim_value") for d in kind.shape.dim)


def _has_rank(kind: Any) -> bool:
    return kind.elem_type in KINDS and kind.HasField("shape")


def _type(kind: Any) -> TensorType:
    dims = (d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim)
    return TensorType(tuple(dims), KINDS[kind.elem_type])


def _proto(kind: TensorType) -> onnx.TypeProto:
    return onnx.helper.make_tensor_type_proto(onnx.TensorProto.DataType.Value(kind.dtype.onnx), kind.dims)


def _plain(value: Any) -> Any:
    """An attribute's value as JSON has it."""
    if isinstance(value, bytes):
        return value.decode()
    return list(value) if isinstance(value, (list, tuple)) or type(value).__name__.startswith("Repeated") else value


for (_domain, _operator), _its_results in RESULTS.items():
    _register(_domain, _operator, _its_results)

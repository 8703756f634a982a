"""hipdnn-backend-legalize: give every region a destination and turn data movement into tensor ops that bufferize to views."""

from typing import Any

from torch_mlir import ir

from ..errors import Reject, UnsupportedError
from ..ir.blocks import body, functions
from ..ir.buffers import allocate
from ..ir.claims import ENGINE, LAST_RESORT
from ..ir.copies import fill_copy_body, moving_region
from ..ir.dialect import REGIONS, create_graph, create_yield
from ..ir.layout import CONTIGUOUS, layout_of
from ..ir.literals import splat
from ..ir.module_pass import module_pass
from ..ir.reassociation import common_dims, groups
from ..ir.types import builtin_tensor, strided_memref, tensor_type
from ..ir.view import defining, is_constant, lookup, node_name
from ..ops.spec import Concat, Pad, Permute, Reshape, Slice
from ..ops.strides import Dims


@module_pass("hipdnn-backend-legalize")
def legalize(module: Any) -> None:
    """Rewrite graphs to buffer form (destination passing) and data movement to builtin tensor ops.

    Results are new buffers in the layout that hipdnn-assign-layout marked. Reshape becomes collapse/expand, slice `tensor.extract_slice`,
    transpose `linalg.transpose`, concat and pad a destination with `tensor.insert_slice`.

    Before: `%y = "hipdnn.graph"(%x) ({...}) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>`.
    After: `%m = memref.alloc() : memref<4xf32>`; `"hipdnn.graph"(%b, %m) ({...}) : (memref<...>, memref<4xf32>) -> ()`;
    `bufferization.to_tensor %m restrict`.
    """
    for function in functions(module):
        if "sym_visibility" in function.attributes:
            function.erase()  # @hipdnn_constants: evaluated before this pass
        else:
            _Legalization(function).run()


class _Legalization:
    """Rewrites one function; `_tensors` maps every torch value seen so far to the builtin tensor that replaces it."""

    def __init__(self, function: Any) -> None:
        self._function = function
        self._tensors: dict[Any, Any] = {}
        self._views: dict[Any, Any] = {}

    def run(self) -> None:
        old = body(self._function)
        self._views = {op: lookup(op) for op in old if op.name.startswith("torch.") and not is_constant(op)}
        for argument in self._function.regions[0].blocks[0].arguments:
            argument.set_type(builtin_tensor(argument.type))
            self._tensors[argument] = argument
        for operation in old:
            with ir.InsertionPoint(operation), operation.location:
                self._operation(operation)
        for operation in reversed(old[:-1]):
            operation.erase()

    def _operation(self, operation: Any) -> None:
        if operation.name == "func.return":
            self._return(operation)
        elif operation.name in REGIONS:
            self._region(operation)
        elif not is_constant(operation):
            self._movement(operation)

    def _return(self, terminator: Any) -> None:
        """Return builtin tensors, each value once: bufferization cannot give one buffer to two results.

        Chains of reshapes that come to the same dims are one value too: MLIR folds them.
        """
        old = ir.FunctionType(ir.TypeAttr(self._function.attributes["function_type"]).value)
        returned: list[tuple[Any, Any]] = []
        for index, value in enumerate(list(terminator.operands)):
            tensor = self._tensors[value]
            form = (_unshaped(tensor), tensor.type)
            terminator.operands[index] = copied(tensor, old.results[index]) if form in returned else tensor
            returned.append(form)
        arguments = [argument.type for argument in self._function.regions[0].blocks[0].arguments]
        kind = ir.FunctionType.get(arguments, [value.type for value in terminator.operands])
        self._function.attributes["function_type"] = ir.TypeAttr.get(kind)

    def _region(self, graph: Any) -> None:
        ins = [read_buffer(self._tensors[value]) for value in graph.operands]
        outs = [allocate(result.type, layout_of(graph, index)) for index, result in enumerate(graph.results)]
        made = create_graph(ins, outs, [], graph.location, name=graph.name)
        graph.regions[0].blocks[0].append_to(made.regions[0])
        for name in (ENGINE, LAST_RESORT):
            if name in graph.attributes:
                made.attributes[name] = graph.attributes[name]
        for buffer, result in zip(outs, graph.results, strict=True):
            self._tensors[result] = read_tensor(buffer, builtin_tensor(result.type))

    def _movement(self, operation: Any) -> None:
        found = self._views[operation]
        if isinstance(found, Reject) or found[0].move is None:
            name = found.op if isinstance(found, Reject) else operation.name
            raise UnsupportedError(
                [Reject(name, "legalize", "neither in a region nor a data movement", node_name(operation))]
            )
        move, result = found[0].move(found[1]), operation.results[0]
        source = self._tensors.get(operation.operands[0])
        dims = tensor_type(result.type).static_dims()
        match move:
            case Reshape():
                made = reshape(source, dims)
            case Permute(order):
                made = permute(source, order)
            case Slice(offsets, sizes, steps):
                made = reshape(extract(source, offsets, sizes, steps), dims)
            case Concat(axis):
                made = self._concat(operation, axis)
            case Pad():
                made = self._pad(operation, source, move)
        self._tensors[result] = made

    def _concat(self, operation: Any, axis: int) -> Any:
        """Operands inserted one after the other into a new buffer; hipdnn-write-in-place later removes the copies."""
        result = operation.results[0]
        whole = read_tensor(allocate(result.type, layout_of(operation, 0)), builtin_tensor(result.type), writable=True)
        offset = 0
        parts = operation.operands[0].owner.operation.operands  # of the list that aten.cat takes
        for value in parts:
            part = self._tensors[value]
            dims = tuple(part.type.shape)
            if 0 not in dims:
                whole = insert(part, whole, tuple(offset if i == axis else 0 for i in range(len(dims))))
            offset += dims[axis]
        return whole

    @staticmethod
    def _pad(operation: Any, source: Any, pad: Pad) -> Any:
        """A buffer filled with the border's value, the operand inserted."""
        result = operation.results[0]
        buffer = allocate(result.type, layout_of(operation, 0))
        fill_graph(buffer, result.type, pad.value, operation.location)
        whole = read_tensor(buffer, builtin_tensor(result.type), writable=True)
        return whole if 0 in source.type.shape else insert(source, whole, pad.low)


def _unshaped(tensor: Any) -> Any:
    """The tensor that a chain of reshapes starts from."""
    while (source := defining(tensor)) is not None and source.name in ("tensor.collapse_shape", "tensor.expand_shape"):
        tensor = source.operands[0]
    return tensor


def _create(name: str, result: Any, *operands: Any, **attributes: Any) -> Any:
    return ir.Operation.create(name, results=[result], operands=list(operands), attributes=attributes).result


def read_buffer(tensor: Any) -> Any:
    """The buffer of a tensor operand; its strides are known only after bufferization."""
    kind = strided_memref(tuple(tensor.type.shape), tensor.type.element_type)
    return _create("bufferization.to_buffer", kind, tensor, read_only=ir.UnitAttr.get())


def read_tensor(buffer: Any, kind: Any, *, writable: bool = False) -> Any:
    """A buffer seen as a tensor that nothing else aliases."""
    attributes = {"restrict": ir.UnitAttr.get()} | ({"writable": ir.UnitAttr.get()} if writable else {})
    return _create("bufferization.to_tensor", kind, buffer, **attributes)


def reshape(tensor: Any, dims: Dims) -> Any:
    """Collapse to the common factors of old and new dims, then expand."""
    old = tuple(tensor.type.shape)
    if old == tuple(dims):
        return tensor
    middle = common_dims(old, tuple(dims))
    element = tensor.type.element_type
    if middle != old:
        kind = ir.RankedTensorType.get(list(middle), element)
        tensor = _create("tensor.collapse_shape", kind, tensor, reassociation=_reassociation(groups(old, middle)))
    if middle != tuple(dims):
        kind = ir.RankedTensorType.get(list(dims), element)
        static = ir.DenseI64ArrayAttr.get(list(dims))
        tensor = _create(
            "tensor.expand_shape",
            kind,
            tensor,
            reassociation=_reassociation(groups(tuple(dims), middle)),
            static_output_shape=static,
        )
    return tensor


def _reassociation(indices: list[list[int]]) -> Any:
    kind = ir.IntegerType.get_signless(64)
    return ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(kind, i) for i in group]) for group in indices])


def permute(tensor: Any, order: Dims) -> Any:
    """`linalg.transpose` into a new tensor."""
    kind = ir.RankedTensorType.get([tensor.type.shape[axis] for axis in order], tensor.type.element_type)
    empty = _create("tensor.empty", kind)
    operation = ir.Operation.create(
        "linalg.transpose", results=[kind], operands=[tensor, empty], regions=1,
        attributes={"permutation": ir.DenseI64ArrayAttr.get(list(order))},
    )  # fmt: skip
    element = tensor.type.element_type
    block = operation.regions[0].blocks.append(element, element, arg_locs=[operation.location] * 2)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
    return operation.results[0]


def _static(values: Dims) -> Any:
    return ir.DenseI64ArrayAttr.get(list(values))


def extract(tensor: Any, offsets: Dims, sizes: Dims, steps: Dims) -> Any:
    """`tensor.extract_slice` with static numbers."""
    kind = ir.RankedTensorType.get(list(sizes), tensor.type.element_type)
    return _create(
        "tensor.extract_slice", kind, tensor,
        static_offsets=_static(offsets), static_sizes=_static(sizes), static_strides=_static(steps),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    )  # fmt: skip


def insert(source: Any, destination: Any, offsets: Dims) -> Any:
    """`tensor.insert_slice` with static numbers."""
    return _create(
        "tensor.insert_slice", destination.type, source, destination,
        static_offsets=_static(offsets), static_sizes=_static(tuple(source.type.shape)), static_strides=_static((1,) * len(offsets)),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 1, 0, 0, 0]),
    )  # fmt: skip


def copied(tensor: Any, kind: Any) -> Any:
    """A copy of a tensor, of torch type `kind`, in a buffer of its own."""
    buffer = allocate(kind, CONTIGUOUS)
    if 0 in tensor.type.shape:
        return read_tensor(buffer, builtin_tensor(kind))
    region = moving_region(tensor_type(kind).dtype)
    graph = create_graph([read_buffer(tensor)], [buffer], [], ir.Location.current, name=region)
    block = graph.regions[0].blocks.append(kind, arg_locs=[graph.location])
    with ir.InsertionPoint(block):
        fill_copy_body(block)
    return read_tensor(buffer, builtin_tensor(kind))


def fill_graph(buffer: Any, kind: Any, number: float, location: Any) -> None:
    """A region in buffer form that writes one number everywhere."""
    shape = tensor_type(kind)
    graph = create_graph([], [buffer], [], location, name=moving_region(shape.dtype))
    with ir.InsertionPoint(graph.regions[0].blocks.append()), location:
        create_yield([splat(number, shape.static_dims(), shape.dtype)], location)

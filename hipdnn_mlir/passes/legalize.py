"""hipdnn-backend-legalize: give every region a destination and turn data movement into tensor ops that bufferize to views."""

from collections.abc import Sequence

from torch_mlir import ir
from torch_mlir._mlir_libs import _mlirDialectsLinalg
from torch_mlir.dialects import bufferization, func, tensor

from hipdnn_mlir_runtime.errors import Reject, UnsupportedError

from ..ir.blocks import functions, operations
from ..ir.buffers import allocate
from ..ir.claims import ENGINE, LAST_RESORT
from ..ir.copies import copy_region, moving_region
from ..ir.dialect import RegionOp, create_region, create_yield
from ..ir.layout import CONTIGUOUS, layout_of
from ..ir.literals import splat
from ..ir.module_pass import module_pass
from ..ir.outlining import Found
from ..ir.reassociation import common_dims, groups
from ..ir.types import builtin_tensor, strided_memref, tensor_type
from ..ir.view import is_constant, lookup, node_name, producer
from ..ops.spec import Concat, Pad, Permute, Reshape, Slice
from ..ops.strides import Dims


@module_pass("hipdnn-backend-legalize")
def legalize(module: ir.Operation) -> None:
    """Rewrite graphs to buffer form (destination passing) and data movement to builtin tensor ops.

    Results are new buffers in the layout that hipdnn-assign-layout marked. Reshape becomes collapse/expand, slice `tensor.extract_slice`,
    transpose `linalg.transpose`, concat and pad a destination with `tensor.insert_slice`.

    Before: `%y = hipdnn.graph ins(%x) ({...}) : (!torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32>`.
    After: `%m = memref.alloc() : memref<4xf32>`; `hipdnn.graph ins(%b) outs(%m) ({...}) : (memref<...>, memref<4xf32>) -> ()`;
    `bufferization.to_tensor %m restrict`.
    """
    for function in functions(module):
        if function.sym_visibility is not None:
            function.erase()  # @hipdnn_constants: evaluated before this pass
        else:
            _Legalization(function).run()


class _Legalization:
    """Rewrites one function; `_tensors` maps every torch value seen so far to the builtin tensor that replaces it."""

    def __init__(self, function: func.FuncOp) -> None:
        self._function = function
        self._tensors: dict[ir.Value, ir.Value] = {}
        self._views: dict[ir.OpView, Found | Reject] = {}

    def run(self) -> None:
        old = operations(self._function)
        moving = (op for op in old if not isinstance(op, RegionOp | func.ReturnOp) and not is_constant(op))
        self._views = {op: lookup(op) for op in moving}
        for argument in self._function.arguments:
            argument.set_type(builtin_tensor(argument.type))
            self._tensors[argument] = argument
        for op in old:
            with ir.InsertionPoint(op), op.location:
                match op:
                    case RegionOp():
                        self._region(op)
                    case func.ReturnOp():
                        self._return(op)
                    case _ if op in self._views:
                        self._tensors[op.results[0]] = self._moved(op, self._views[op])
        for op in reversed(old):
            op.erase()

    def _return(self, terminator: func.ReturnOp) -> None:
        """Return builtin tensors, each value once: bufferization cannot give one buffer to two results.

        Chains of reshapes that come to the same dims are one value too: MLIR folds them.
        """
        returned: list[tuple[ir.Value, ir.Type]] = []
        values = []
        for value, kind in zip(terminator.operands, self._function.type.results, strict=True):
            made = self._tensors[value]
            form = (_unshaped(made), made.type)
            values.append(copied(made, kind) if form in returned else made)
            returned.append(form)
        func.return_(values)
        types = [[value.type for value in group] for group in (self._function.arguments, values)]
        self._function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(*types))

    def _region(self, region: RegionOp) -> None:
        ins = [read_buffer(self._tensors[value]) for value in region.ins]
        outs = [allocate(result.type, layout_of(region, index)) for index, result in enumerate(region.results)]
        made = create_region(type(region), ins, outs, [], region.location)
        region.body.append_to(made.region)
        for name in (ENGINE, LAST_RESORT):
            if name in region.attributes:
                made.attributes[name] = region.attributes[name]
        for buffer, result in zip(outs, region.results, strict=True):
            self._tensors[result] = read_tensor(buffer, builtin_tensor(result.type))

    def _moved(self, op: ir.OpView, found: Found | Reject) -> ir.Value:
        """The result of a data movement."""
        move = None if isinstance(found, Reject) else found[0].move
        if isinstance(found, Reject) or move is None:
            name = found.op if isinstance(found, Reject) else op.operation.name
            raise UnsupportedError(
                [Reject(name, "legalize", "it is in no region and is no data movement", node_name(op))]
            )
        seen = found[1]
        data = seen.args[0] if isinstance(seen.args[0], list) else [seen.args[0]]
        sources = [self._tensors[argument.key] for argument in data]
        kind = op.results[0].type
        dims = tensor_type(kind).static_dims()
        match move(seen):
            case Reshape():
                return reshape(sources[0], dims)
            case Permute(order):
                return permute(sources[0], order)
            case Slice(offsets, sizes, steps):
                return reshape(extract(sources[0], offsets, sizes, steps), dims)
            case Concat(axis):
                return concatenated(sources, kind, layout_of(op, 0), axis)
            case Pad() as pad:
                return bordered(sources[0], kind, layout_of(op, 0), pad)


def concatenated(parts: Sequence[ir.Value], kind: ir.Type, layout: str, axis: int) -> ir.Value:
    """Operands inserted one after the other into a new buffer; hipdnn-write-in-place later removes the copies."""
    whole = read_tensor(allocate(kind, layout), builtin_tensor(kind), writable=True)
    offset = 0
    for part in parts:
        dims = tuple(part.type.shape)
        if 0 not in dims:
            whole = insert(part, whole, tuple(offset if i == axis else 0 for i in range(len(dims))))
        offset += dims[axis]
    return whole


def bordered(source: ir.Value, kind: ir.Type, layout: str, pad: Pad) -> ir.Value:
    """A buffer filled with the border's value, the operand inserted."""
    buffer = allocate(kind, layout)
    fill(buffer, kind, pad.value, ir.Location.current)
    whole = read_tensor(buffer, builtin_tensor(kind), writable=True)
    return whole if 0 in source.type.shape else insert(source, whole, pad.low)


def _unshaped(value: ir.Value) -> ir.Value:
    """The tensor that a chain of reshapes starts from."""
    while isinstance(source := producer(value), tensor.CollapseShapeOp | tensor.ExpandShapeOp):
        value = source.src
    return value


def read_buffer(value: ir.Value) -> ir.Value:
    """The buffer of a tensor operand; its strides are known only after bufferization."""
    kind = strided_memref(tuple(value.type.shape), value.type.element_type)
    return bufferization.to_buffer(kind, value, read_only=True)


def read_tensor(buffer: ir.Value, kind: ir.RankedTensorType, *, writable: bool = False) -> ir.Value:
    """A buffer seen as a tensor that nothing else aliases."""
    return bufferization.to_tensor(kind, buffer, restrict=True, writable=writable)


def reshape(value: ir.Value, dims: Dims) -> ir.Value:
    """Collapse to the common factors of old and new dims, then expand."""
    old, element = tuple(value.type.shape), value.type.element_type
    if old == dims:
        return value
    middle = common_dims(old, dims)
    if middle != old:
        value = tensor.collapse_shape(ir.RankedTensorType.get(middle, element), value, groups(old, middle))
    if middle != dims:
        kind = ir.RankedTensorType.get(dims, element)
        value = tensor.expand_shape(kind, value, groups(dims, middle), [], dims)
    return value


def permute(value: ir.Value, order: Dims) -> ir.Value:
    """`linalg.transpose` into a new tensor."""
    empty = tensor.empty([value.type.shape[axis] for axis in order], value.type.element_type)
    permutation = {"permutation": ir.DenseI64ArrayAttr.get(order)}
    # The class that torch-mlir has for it takes a sixtieth of a second to import, with those of all of linalg.
    made = ir.Operation.create("linalg.transpose", [empty.type], [value, empty], permutation, regions=1)
    _mlirDialectsLinalg.fill_builtin_region(made)
    return made.result


def extract(value: ir.Value, offsets: Dims, sizes: Dims, steps: Dims) -> ir.Value:
    """`tensor.extract_slice` with static numbers; a whole tensor is itself: MLIR's bufferization crashes where both are results."""
    if tuple(sizes) == tuple(value.type.shape):
        return value
    kind = ir.RankedTensorType.get(sizes, value.type.element_type)
    return tensor.extract_slice(kind, value, [], [], [], offsets, sizes, steps)


def insert(source: ir.Value, destination: ir.Value, offsets: Dims) -> ir.Value:
    """`tensor.insert_slice` with static numbers."""
    sizes, steps = tuple(source.type.shape), (1,) * len(offsets)
    return tensor.insert_slice(source, destination, [], [], [], offsets, sizes, steps)


def copied(value: ir.Value, kind: ir.Type) -> ir.Value:
    """A copy of a tensor, of torch type `kind`, in a buffer of its own."""
    buffer = allocate(kind, CONTIGUOUS)
    if 0 not in value.type.shape:
        copy_region(kind, read_buffer(value), buffer, ir.Location.current)
    return read_tensor(buffer, builtin_tensor(kind))


def fill(buffer: ir.Value, kind: ir.Type, number: float, location: ir.Location) -> None:
    """A region in buffer form that writes one number everywhere."""
    shape = tensor_type(kind)
    region = create_region(moving_region(shape.dtype), [], [buffer], [], location)
    with ir.InsertionPoint(region.add_body([])), location:
        create_yield([splat(number, shape.static_dims(), shape.dtype)], location)

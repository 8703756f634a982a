"""A function of an extension made ready for one node: attributes bound, static types inferred, ops of the table only."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from torch_mlir import ir
from torch_mlir.passmanager import PassManager

from ..frontend.sizes.known_sizes import FAR
from ..ir.dialect import make_context
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import defining, is_constant, row_name
from ..ops.spec import Refusal, TensorType
from ..ops.table import find, rows
from .bind import bind, check_fits, name_of, retype
from .function import MlirFunction, is_tensor_type, line_of, named_functions, parsed, result_types

_TYPED = re.compile(r"vtensor<[^>]*>")
_OF_SIZES = frozenset(
    f"torch.aten.{name}"
    for name in (
        "__getitem__.t", "add.int", "dim", "div.float", "div.int", "Float.Scalar", "floordiv.int", "len.t", "mul.float", "mul.float_int",
        "mul.int", "mul.int_float", "neg.int", "numel", "remainder.int", "size", "size.int", "sqrt.int", "sub.int",
    )
)  # fmt: skip
"""What may be computed from sizes: nothing that takes another form at other sizes, such as a comparison or a maximum."""
_NOTES = ("torch.bind_symbolic_shape", "torch.symbolic_int")
"""What PyTorch's exporter says of sizes that it leaves open."""


@dataclass(frozen=True)
class Specialized:
    """A function for static operands: `func.func` with one block of torch ops and static types, attributes bound.

    Attributes:
        text: a module with nothing but the function.
        results: types of the results.
        operands: the arguments that are the operands, by position; nothing reads the others.
        ops: names of the ops, constants left out.
        numbers: integers that they read and the sizes of what they compute, in order.
        cuts: of ops that take a part of a dim, in order: its size, and where the part starts and ends.
        whole: the slices with ends that the text states, by line, which turned out to take all of their dim.
    """

    text: str
    results: tuple[TensorType, ...]
    operands: tuple[int, ...]
    ops: tuple[str, ...]
    numbers: tuple[int, ...]
    cuts: tuple[tuple[int, int, int], ...]
    whole: tuple[str, ...]


def specialize(
    function: MlirFunction, operands: Sequence[TensorType | None], attributes: Mapping[str, Any]
) -> Specialized:
    """The function for one node; torch ops outside the table are decomposed as far as torch-mlir knows how.

    Args:
        function: a checked one.
        operands: static types; None for one that the node leaves out.
        attributes: of the node: numbers, strings and lists of them.

    Raises:
        Refusal: the node does not fit the function, or a type does not follow from its operands.
    """
    for name, value in attributes.items():
        if not all(isinstance(item, (int, float, str)) for item in (value if isinstance(value, list) else [value])):
            raise Refusal("attribute", f"attribute {name!r} is neither a number, a string nor a list of them")
    return _specialize(function, tuple(operands), json.dumps(dict(attributes), sort_keys=True))


@lru_cache(maxsize=1024)
def _specialize(function: MlirFunction, operands: tuple[TensorType | None, ...], attributes: str) -> Specialized:
    with make_context(), ir.Location.unknown():
        module = parsed(function)
        entry = named_functions(module)[function.symbol]
        if "sym_visibility" in entry.attributes:  # MLIR erases private functions that nothing calls
            del entry.attributes["sym_visibility"]
        declared = result_types(entry)
        positions = bind(function, entry, operands, json.loads(attributes))
        _run(function, module, "inline,func.func(canonicalize,cse)")
        for other in named_functions(module).values():
            if other != entry:
                other.erase()
        for note in [operation for operation in reversed(_body(entry)) if operation.name in _NOTES]:
            note.erase()
        _check_sizes(entry)
        _forget_types(entry, dict(zip(positions, operands, strict=False)))
        slices = [str(operation.location) for operation in _body(entry) if _states_ends(operation)]
        written = {str(operation.location): str(operation.name) for operation in _body(entry)}
        legal = ",".join(name.removeprefix("torch.") for name in rows() if name.startswith("torch."))
        options = f"shape-dtype-refine=true decompose-complex-ops=true backend-legal-ops={legal}"
        _run(function, module, f"torch-simplification-pipeline{{{options}}}")
        _check_ops(function, entry, written)
        results = _checked_results(function, entry, declared)
        ops = [operation for operation in _body(entry) if not is_constant(operation)]
        return Specialized(
            module.operation.get_asm(),
            results,
            tuple(positions),
            tuple(str(operation.name) for operation in ops),
            tuple(number for operation in ops for number in _numbers(operation)),
            tuple(cut for operation in ops for cut in _cuts(operation)),
            tuple(sorted(set(slices) - {str(operation.location) for operation in ops})),
        )


def _run(function: MlirFunction, module: Any, pipeline: str) -> None:
    try:
        PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
    except ir.MLIRError as error:
        found = error.error_diagnostics[0] if error.error_diagnostics else None
        reason = f"{found.message}{line_of(found)}" if found else str(error).splitlines()[0]
        raise Refusal("function", f"{name_of(function)} cannot be specialized: {reason}") from error


def _check_sizes(entry: Any) -> None:
    """Check that no op decides by sizes or data: the program has to hold for all sizes that a model leaves open."""
    for operation in _body(entry):
        name = operation.name
        is_plain = name in _OF_SIZES or is_constant(operation) or name == "torch.derefine"
        is_compute = len(operation.results) > 0 and all(_holds_tensors(value.type) for value in operation.results)
        if len(operation.regions) > 0 or not (is_plain or is_compute):
            raise Refusal("control-flow", f"{name}{line_of(operation)} decides by sizes or data")


def _holds_tensors(kind: Any) -> bool:
    return is_tensor_type(kind) or str(kind).startswith("!torch.list<vtensor")


def _body(entry: Any) -> list[Any]:
    """The ops of a function without its return."""
    operations = [op.operation for op in entry.regions[0].blocks[0].operations]
    return operations[:-1]


def _forget_types(entry: Any, operands: Mapping[int, TensorType | None]) -> None:
    """Give the arguments the operands' types and leave all other types to inference, whatever the text states."""
    for index, kind in operands.items():
        if kind is not None:
            entry.regions[0].blocks[0].arguments[index].set_type(torch_tensor(kind.static_dims(), kind.dtype))
    for operation in _body(entry):
        if operation.name == "torch.tensor_static_info_cast":
            operation.results[0].replace_all_uses_with(operation.operands[0])
            operation.erase()
        elif operation.name != "torch.vtensor.literal":
            for value in operation.results:
                value.set_type(ir.Type.parse(_TYPED.sub("vtensor", str(value.type))))
    retype(entry)


def _check_ops(function: MlirFunction, entry: Any, written: Mapping[str, str]) -> None:
    """Check that all ops have a row and static types; `written` is what stands at a location of the text."""
    for operation in _body(entry):
        what = f"{written.get(str(operation.location), operation.name)}{line_of(operation)} of {function.where}"
        if not is_constant(operation) and find(row_name(operation)) is None:
            raise Refusal("no-row", f"{what}: no hipDNN operation or data movement expresses it")
        for value in operation.results:
            if is_tensor_type(value.type) and not _is_static(value.type):
                raise Refusal("shape", f"{what}: its type does not follow from those of its operands")


def _checked_results(function: MlirFunction, entry: Any, declared: Sequence[Any]) -> tuple[TensorType, ...]:
    """The types of the results, where they fit what the text states."""
    block = entry.regions[0].blocks[0]
    returned = block.operations[len(block.operations) - 1].operation
    kinds = tuple(tensor_type(value.type) for value in returned.operands)
    for index, (kind, stated) in enumerate(zip(kinds, declared, strict=True)):
        check_fits(f"result {index} is", kind, stated, f"{name_of(function)} states")
    return kinds


def _is_static(kind: Any) -> bool:
    return is_tensor(kind) and str(kind).startswith("!torch.vtensor<[") and tensor_type(kind).is_static


def _numbers(operation: Any) -> Iterator[int]:
    for value in operation.operands:
        yield from _integers(value)
    for value in operation.results:
        yield from tensor_type(value.type).static_dims()


def _integers(value: Any) -> Iterator[int]:
    source = defining(value)
    if source is not None and source.name == "torch.constant.int":
        yield int(source.attributes["value"].value)
    elif source is not None and source.name == "torch.prim.ListConstruct":
        for item in source.operands:
            yield from _integers(item)


def _states_ends(operation: Any) -> bool:
    """Whether a slice has ends that are numbers and might lie outside of its dim."""
    if operation.name != "torch.aten.slice.Tensor":
        return False
    start, end = (next(_integers(value), None) for value in list(operation.operands)[2:4])
    return (start is not None and start < 0) or (end is not None and 0 <= end < FAR)


def _cuts(operation: Any) -> Iterator[tuple[int, int, int]]:
    """The part of a dim that a slice takes; that of a select ends behind the index."""
    if operation.name not in ("torch.aten.slice.Tensor", "torch.aten.select.int"):
        return
    dims = tensor_type(operation.operands[0].type).static_dims()
    axis, *ends = (next(_integers(value), None) for value in list(operation.operands)[1:4])
    size = dims[axis or 0]
    start = ends[0] or 0
    if operation.name == "torch.aten.select.int":
        yield size, start, start + 1 if start >= 0 else start
    else:
        yield size, start, size if ends[1] is None else ends[1]

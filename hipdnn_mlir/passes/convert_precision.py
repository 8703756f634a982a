"""hipdnn-convert-precision: an f32 model runs in f16 or bf16 where that costs little accuracy."""

import math
from collections.abc import Iterator
from contextlib import contextmanager

from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.dtypes import BF16, BOOL, F16, F32, DType
from hipdnn_mlir_runtime.errors import Reject
from hipdnn_mlir_runtime.precision import UNCHANGED, find_precision

from ..ir.blocks import erase_dead, functions, operations
from ..ir.constants import constant_name, tensor_operands
from ..ir.literals import splat, tensor_list
from ..ir.module_pass import module_pass
from ..ir.terms import cast_to
from ..ir.types import is_tensor, tensor_type, torch_tensor
from ..ir.view import literal_scalar, lookup, producer, readers
from ..ir.view_chains import REPEATS, movement_of
from ..ops.row import OpRow
from ..ops.spec import Pad, Permute, Precision, Reshape, Slice

_LARGEST = {F16: 65504.0, BF16: (2 - 2**-7) * 2.0**127}
"""The largest finite number of a type."""


@module_pass("hipdnn-convert-precision")
def convert_precision(module: ir.Operation, *, precision: str = UNCHANGED) -> None:
    """Give the f32 ops of a model the 16-bit type that the op table allows them.

    A row says `narrow` (convolutions, matmuls, attention), `wide` (norms, softmax, sums, sensitive functions) or `follow`: narrow where
    every float operand but constants is narrow already. A value is cast once, right after it is made, in front of data movement where
    nothing else reads that; constants are cast at compile time. A norm reads either type, keeps its parameters in f32 and writes what
    its readers want. Where layers end in norms (BERT), a sum that norms alone read is f32 and adds what the norm in front wrote in 16 bits:
    the next norm takes its scale away, so that its rounding does not add up from layer to layer. Products of what are integers in the
    model stay f32: their sums are beyond f16, or exact. Inputs and outputs of the model keep their types, as does all that is not f32.

    Before: `%y = torch.aten.mm %x, %w`; `%z = torch.aten.add.Tensor %y, %r, %int1`, all f32.
    After: `%y = torch.aten.mm %x_bf16, %w_bf16 -> bf16`; `%y_f32 = torch.aten.to.dtype %y`; `%z = torch.aten.add.Tensor %y_f32, %r, %int1`.

    Args:
        module: the module operation, its constants not yet outlined.
        precision: `f16`, `bf16`, or `model` to change nothing.
    """
    narrow = find_precision(precision)
    if narrow is None:
        return
    for function in functions(module):
        _Conversion(narrow).run(function)
        erase_dead(function)


class _Conversion:
    """One walk over a function: what is constant, what has become narrow, and the other version of values that are read in both types."""

    def __init__(self, narrow: DType) -> None:
        self._narrow_type = narrow
        self._constant: set[ir.Value] = set()
        self._is_narrow: set[ir.Value] = set()
        self._narrow_version: dict[ir.Value, ir.Value] = {}
        self._wide_version: dict[ir.Value, ir.Value] = {}
        self._wide_sums: set[ir.Value] = set()

    def run(self, function: func.FuncOp) -> None:
        arguments = function.regions[0].blocks[0].arguments
        self._constant.update(value for value in arguments if constant_name(value) is not None)
        for op in operations(function):
            if not isinstance(op, torch.PrimListConstructOp):
                self._visit(op)

    def _visit(self, op: ir.OpView) -> None:
        tensors = tensor_operands(op)
        if all(value in self._constant for value in tensors):
            self._constant.update(op.results)
            return
        found = lookup(op)
        if isinstance(found, Reject) or not all(map(self._was_wide, self._floats(tensors))):
            self._set_operands(op, narrow=False)
        elif found[0].precision == "wide" and found[0].keeps and found[1].uses_only_first():
            self._convert_norm(op, found[0])
        elif self._runs_narrow(op, found[0]):
            if found[0].precision == "follow":
                self._saturate([value for value in tensors if value in self._constant])
            self._set_operands(op, narrow=True, keeps=found[0].keeps)
            for result in op.results:
                self._narrow_result(result)
        else:
            self._set_operands(op, narrow=False)

    def _floats(self, tensors: list[ir.Value]) -> list[ir.Value]:
        return [v for v in tensors if v not in self._constant and tensor_type(v.type).dtype.is_float]

    def _was_wide(self, value: ir.Value) -> bool:
        """Whether the model has the value in f32, or in 8 bits, which stay."""
        dtype = tensor_type(value.type).dtype
        return value in self._is_narrow or dtype is F32 or dtype.is_float8

    def _runs_narrow(self, op: ir.OpView, row: OpRow) -> bool:
        kept = {op.operands[index] for index in row.keeps if index < len(op.operands)}
        floats = [value for value in self._floats(tensor_operands(op)) if value not in kept]
        if row.precision == "follow":
            return (
                op.results[0] not in self._wide_sums
                and bool(floats)
                and all(value in self._is_narrow for value in floats)
            )
        return row.precision == "narrow" and not all(map(self._is_whole, floats))

    def _is_whole(self, value: ir.Value) -> bool:
        """Whether an f32 has integers of the model, without what was subtracted from them, such as a zero point; or parts of them."""
        pending = [value]
        while pending:
            op = producer(pending.pop())
            if isinstance(op, torch.AtenToDtypeOp):
                dtype = tensor_type(op.self_.type).dtype
                if dtype is BOOL or dtype.is_float:
                    return False
            elif isinstance(op, torch.AtenSubTensorOp):
                pending += [v for v in (op.self_, op.other) if v not in self._constant]
            elif isinstance(op, torch.AtenMulTensorOp) and _is_whole_literal(producer(op.other)):
                pending.append(op.self_)
            elif op is not None and _moves(op):
                pending.append(op.operands[0])
            elif not isinstance(op, torch.AtenFloorOp):
                return False
        return True

    def _convert_norm(self, norm: ir.OpView, row: OpRow) -> None:
        """It computes in f32 whatever it reads and writes: neither side needs a cast."""
        for index in row.keeps:
            norm.operands[index] = self._wide(norm.operands[index])
        wanted, sums = _wanted(norm.results[0])
        if wanted == {"narrow"} or (norm.operands[0] in self._is_narrow and "wide" not in wanted):
            self._narrow_result(norm.results[0])
            self._wide_sums.update(sums)

    def _narrow_result(self, result: ir.Value) -> None:
        if is_tensor(result.type) and tensor_type(result.type).dtype is F32:
            self._retype(result, self._narrow_type)
            self._is_narrow.add(result)

    @staticmethod
    def _retype(value: ir.Value, dtype: DType) -> None:
        value.set_type(torch_tensor(tensor_type(value.type).static_dims(), dtype))

    def _set_operands(self, op: ir.OpView, *, narrow: bool, keeps: tuple[int, ...] = ()) -> None:
        """Let an op read its f32 operands in one type."""
        for index, operand in enumerate(op.operands):
            version = self._narrow if narrow and index not in keeps else self._wide
            if is_tensor(operand.type):
                op.operands[index] = version(operand)
            elif isinstance(listed := producer(operand), torch.PrimListConstructOp) and tensor_operands(listed):
                items = [version(item) if is_tensor(item.type) else item for item in listed.elements]
                with ir.InsertionPoint(op), op.location:
                    op.operands[index] = tensor_list(items)

    def _narrow(self, value: ir.Value) -> ir.Value:
        """The value in the narrow type, if it is f32."""
        moves: list[ir.OpView] = []
        while (made := self._known_narrow(value)) is None and _moves_for_one_reader(producer(value)):
            moves.append(producer(value))
            value = moves[-1].operands[0]
        if made is None:
            made = _cast(value, self._narrow_type)
            self._remember(value, made)
        for move in reversed(moves):
            move.operands[0], made = made, move.result
            self._retype(made, self._narrow_type)
            self._is_narrow.add(made)
        return made

    def _known_narrow(self, value: ir.Value) -> ir.Value | None:
        """What takes the place of a value in the narrow type, where no cast is to be made for it."""
        if value in self._is_narrow or tensor_type(value.type).dtype is not F32:
            return value
        if value not in self._narrow_version and _is_scalar_literal(literal := producer(value)):
            self._remember(value, self._literal(literal))
        return self._narrow_version.get(value)

    def _saturate(self, constants: list[ir.Value]) -> None:
        """Constants of arithmetic stay finite: a mask may hold the least f32, and infinities of it would make NaN."""
        limit = _LARGEST[self._narrow_type]
        for value in constants:
            has_version = value in self._narrow_version or _is_scalar_literal(producer(value))
            if has_version or tensor_type(value.type).dtype is not F32:
                continue
            with _after(value):
                raised = torch.aten_maximum(value.type, value, splat(-limit, (), F32))
                bound = torch.aten_minimum(value.type, raised, splat(limit, (), F32))
                self._remember(value, cast_to(bound, self._narrow_type))

    def _remember(self, value: ir.Value, narrow: ir.Value) -> None:
        self._narrow_version[value] = narrow
        self._wide_version[narrow] = value
        self._is_narrow.add(narrow)

    def _wide(self, value: ir.Value) -> ir.Value:
        """The value in the type that the model gives it."""
        moves: list[ir.OpView] = []
        while self._lacks_wide(value) and _moves_for_one_reader(producer(value)):
            moves.append(producer(value))
            value = moves[-1].operands[0]
        made = value
        if value in self._is_narrow:
            made = self._wide_version[value] = self._wide_version.get(value) or _cast(value, F32)
        for move in reversed(moves):
            move.operands[0], made = made, move.result
            self._retype(made, F32)
            self._is_narrow.discard(made)
        return made

    def _lacks_wide(self, value: ir.Value) -> bool:
        return value in self._is_narrow and value not in self._wide_version

    def _literal(self, literal: torch.ValueTensorLiteralOp) -> ir.Value:
        """A number of rank 0 as it is, for beside tensors it has no type of its own; finite ones stay finite in the narrow type."""
        number = float(literal_scalar(literal) or 0.0)
        limit = _LARGEST[self._narrow_type]
        if abs(number) <= limit or not math.isfinite(number):
            return literal.result
        with ir.InsertionPoint.after(literal), literal.location:
            return splat(math.copysign(limit, number), (), F32)


def _is_scalar_literal(op: ir.OpView | None) -> bool:
    return isinstance(op, torch.ValueTensorLiteralOp) and not tensor_type(op.result.type).dims


def _is_whole_literal(op: ir.OpView | None) -> bool:
    return isinstance(op, torch.ValueTensorLiteralOp) and float(literal_scalar(op) or 0.5).is_integer()


def _moves(op: ir.OpView) -> bool:
    """Whether an op moves the elements of its first operand, or repeats them."""
    return isinstance(op, REPEATS) or isinstance(movement_of(op), Reshape | Permute | Slice | Pad)


def _moves_for_one_reader(op: ir.OpView | None) -> bool:
    """Whether an op moves the elements of its first operand and one op reads the result."""
    return op is not None and len(op.results) == 1 and len(readers(op.result)) == 1 and _moves(op)


@contextmanager
def _after(value: ir.Value) -> Iterator[None]:
    """Operations are made right after the value, in its name."""
    source = producer(value)
    point = ir.InsertionPoint.at_block_begin(value.owner) if source is None else ir.InsertionPoint.after(source)
    location = value.owner.owner.location if source is None else source.location
    with point, location:
        yield


def _cast(value: ir.Value, dtype: DType) -> ir.Value:
    with _after(value):
        return cast_to(value, dtype)


def _is_norm(row: OpRow) -> bool:
    return bool(row.keeps) and row.precision == "wide"


def _is_summed_for_norms(op: ir.OpView) -> bool:
    """Whether an op adds what norms alone read: a residual of a layer that ends in a norm."""
    return isinstance(op, torch.AtenAddTensorOp) and all(
        not isinstance(row := lookup(use.owner), Reject) and _is_norm(row[0]) and use.operand_number == 0
        for use in op.result.uses
    )


def _wanted(value: ir.Value) -> tuple[set[Precision], list[ir.Value]]:
    """What the readers of a value run in, and its sums that norms alone read; those behind data movement count as its own."""
    found: set[Precision] = set()
    sums = []
    shown = [value]
    while shown:
        for use in shown.pop().uses:
            reader = use.owner
            row = lookup(reader)
            if isinstance(reader, torch.PrimListConstructOp):
                found.add("follow")
            elif isinstance(row, Reject):
                found.add("wide")
            elif _moves(reader):
                shown.append(reader.results[0])
            elif _is_summed_for_norms(reader):
                sums.append(reader.result)
            elif _is_norm(row[0]):
                found.add("follow")
            else:
                found.add("wide" if use.operand_number in row[0].keeps else row[0].precision)
    return found, sums

"""Whether the dynamic dimensions of a model may be padded, by following padding through the model; not a pass: it sees several modules."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_mlir import ir
from torch_mlir.dialects import func, torch

from hipdnn_mlir_runtime.errors import DynamicDimensionError, PaddingError, Reject

from ...ir.blocks import functions, operations
from ...ir.literals import literal_array
from ...ir.types import is_tensor, tensor_type
from ...ir.view import lookup, node_name, op_name
from ...ops.spec import OpView, Refusal, TensorArg
from .dims import Dim, Factor, is_prefix, padded_by, plain
from .follow import follow
from .regions import tensors_of
from .rules import Dims, Mixes, Sizes


@dataclass(frozen=True)
class Mixing:
    """Why a size must not be rounded up.

    Attributes:
        symbol: the size.
        what: the operation or output that padding would reach.
        reason: how.
        node: the ONNX node; empty for an output.
    """

    symbol: str
    what: str
    reason: str
    node: str

    def __str__(self) -> str:
        where = f"node {self.node!r}, " if self.node else ""
        return f"{where}{self.what}: {self.reason}"

    def error(self) -> PaddingError:
        """The error where it is to be rounded up all the same."""
        message = f"{self.symbol!r} cannot be padded to a bucket: {self.what}: {self.reason}"
        hint = f"compile without buckets for {self.symbol!r}"
        return PaddingError(message, where=f"node {self.node!r}" if self.node else None, hint=hint)


def check_padding(
    modules: Sequence[ir.Operation], inputs: Sequence[str], outputs: Sequence[str], sizes: Sizes
) -> Mixing | None:
    """Why one of the sizes with buckets must not be rounded up, or None where what was asked for stays what it is.

    Args:
        modules: one model at several sizes of its inputs, in one context, in the torch dialect.
        inputs: the model's inputs: the first arguments.
        outputs: the model's outputs.
        sizes: which sizes are rounded up.

    Raises:
        DynamicDimensionError: the modules differ in more than numbers.
    """
    try:
        for parts in zip(*map(functions, modules), strict=True):
            Follower(sizes).function(parts, len(inputs), outputs)
    except Mixed as found:
        return found.mixing
    return None


class Mixed(Exception):  # noqa: N818 - carries what is found out of the walk
    """Raised where a size must not be rounded up."""

    def __init__(self, mixing: Mixing) -> None:
        super().__init__(str(mixing))
        self.mixing = mixing


def mixed(symbol: str, reason: str, what: str, node: str) -> Mixed:
    """The exception for a `Mixing`."""
    return Mixed(Mixing(symbol, what, reason, node))


class Follower:
    """Walks the modules side by side; values are those of the first one.

    A value in `_tainted` holds numbers that follow from a size with buckets: its dims do not tell.
    """

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._dims: dict[ir.Value, Dims] = {}
        self._tainted: dict[ir.Value, str] = {}

    def function(self, parts: Sequence[func.FuncOp], inputs: int, outputs: Sequence[str]) -> None:
        """One function of all modules."""
        for index, arguments in enumerate(zip(*(part.arguments for part in parts), strict=True)):
            self._bind(arguments, is_input=index < inputs)
        bodies = [[op for op in operations(part) if _is_followed(op)] for part in parts]
        if any(len(ops) != len(bodies[0]) for ops in bodies):
            raise DynamicDimensionError("the operations of the model differ between sizes of a dynamic dimension")
        for same in zip(*bodies, strict=True):
            if isinstance(same[0], func.ReturnOp):
                self._outputs(same[0], outputs)
            elif isinstance(same[0], torch.ValueTensorLiteralOp):
                self._literal(same)
            else:
                self._operation(same)

    def _bind(self, arguments: Sequence[ir.Value], *, is_input: bool) -> None:
        columns = self._columns(arguments)
        if is_input:
            self._dims[arguments[0]] = [self._input_dim(column) for column in columns]
        else:
            self._constant(arguments[0], columns)

    def _input_dim(self, column: tuple[int, ...]) -> Dim:
        symbol = self._sizes.symbol_of(column)
        return plain(column) if symbol is None else (Factor(column, symbol),)

    def _constant(self, value: ir.Value, columns: Sequence[tuple[int, ...]]) -> None:
        """A constant of these dims, of one number everywhere where they depend on a size with buckets."""
        self._dims[value] = []
        for column in columns:
            symbol = self._sizes.symbol_in(column)
            exact = self._sizes.symbol_of(column)
            if symbol is not None and exact is None:
                self._tainted[value] = symbol
            self._dims[value].append(plain(column) if exact is None else (Factor(column, exact),))

    def _literal(self, same: Sequence[torch.ValueTensorLiteralOp]) -> None:
        value = same[0].result
        columns = self._columns([op.result for op in same])
        self._constant(value, columns)
        if all(op.value == same[0].value for op in same):
            return
        arrays = [literal_array(op) for op in same]
        if any(len(set(column)) > 1 for column in columns):
            symbol = self._symbol_in_dims(columns)
            if symbol is not None and not all(array.size and (array == array.flat[0]).all() for array in arrays):
                self._tainted[value] = symbol
                return
            arrays = [array.reshape(-1)[:1] for array in arrays]
        stacked = np.stack([array.reshape(-1) for array in arrays])
        for column in stacked[:, (stacked != stacked[0]).any(0)].T.tolist():
            symbol = self._sizes.symbol_in(column)
            if symbol is not None:
                self._tainted[value] = symbol
                return

    def _symbol_in_dims(self, columns: Sequence[tuple[int, ...]]) -> str | None:
        return next(filter(None, map(self._sizes.symbol_in, columns)), None)

    def _operation(self, same: Sequence[ir.OpView]) -> None:
        first = same[0]
        found = [lookup(op) for op in same]
        views = [each[1] for each in found if not isinstance(each, Reject)]
        for results in _tensor_results(same):
            self._dims[results[0]] = [plain(column) for column in self._columns(results)]
        if len(views) < len(same):  # no program comes of this model, unless a later step takes the op away
            known = (self._symbol(value) for value in first.operands if value in self._dims)
            symbol = next(filter(None, known), None)
            self._tainted.update({result: symbol for result in first.results if symbol is not None})
            return
        keys = [arg.key for arg in tensors_of(views[0])]
        symbol = next(filter(None, (self._symbol(key) for key in keys)), None) or self._symbol_made(same)
        if symbol is not None or any(_numbers(view) != _numbers(views[0]) for view in views):
            self._follow(first, views, keys, symbol or "")

    def _follow(self, first: ir.OpView, views: Sequence[OpView], keys: Sequence[ir.Value], symbol: str) -> None:
        what, node = op_name(first), node_name(first)
        try:
            made = follow(views, [self._dims[key] for key in keys], self._sizes)
        except Mixes as mixes:
            raise mixed(mixes.symbol, mixes.reason, what, node) from mixes
        except Refusal as refusal:
            raise mixed(symbol, f"it may mix padding with data ({refusal.reason})", what, node) from refusal
        for position in made.reads:
            if keys[position] in self._tainted:
                name = self._tainted[keys[position]]
                reason = f"it computes with a number that depends on {name!r}"
                raise mixed(name, reason, what, node)
        for result, dims in zip(first.results, made.results, strict=True):
            if dims is not None:
                self._dims[result] = dims

    def _symbol(self, value: ir.Value) -> str | None:
        """A size with buckets that a value's dims or numbers follow from."""
        return self._tainted.get(value) or next(filter(None, map(padded_by, self._dims[value])), None)

    def _symbol_made(self, same: Sequence[ir.OpView]) -> str | None:
        """The same of the dims of an op's results."""
        for results in _tensor_results(same):
            symbol = self._symbol_in_dims(self._columns(results))
            if symbol is not None:
                return symbol
        return None

    def _outputs(self, returned: func.ReturnOp, names: Sequence[str]) -> None:
        """What leaves the model: padding lies at the ends of its dims, where it can be cut off."""
        for name, value in zip(names, returned.operands, strict=False):
            if value in self._tainted:
                cause = self._tainted[value]
                raise mixed(cause, f"its values depend on {cause!r} itself", f"output {name!r}", "")
            for axis, dim in enumerate(self._dims[value]):
                symbol = padded_by(dim)
                if symbol is not None and not is_prefix(dim):
                    reason = f"padding would lie between results along dimension {axis}"
                    raise mixed(symbol, reason, f"output {name!r}", "")

    def _columns(self, values: Sequence[ir.Value]) -> list[tuple[int, ...]]:
        return list(zip(*(tensor_type(value.type).static_dims() for value in values), strict=True))


def _tensor_results(same: Sequence[ir.OpView]) -> list[tuple[ir.Value, ...]]:
    """Each result that is a tensor, of the op at all sample points."""
    return [each for each in zip(*(op.results for op in same), strict=True) if is_tensor(each[0].type)]


def _is_followed(op: ir.OpView) -> bool:
    return isinstance(op, func.ReturnOp) or any(is_tensor(result.type) for result in op.results)


def _numbers(view: OpView) -> tuple[list[Any], Mapping[str, Any]]:
    """What an op is given beside tensors."""
    return [_without_tensors(arg) for arg in view.args], view.attributes


def _without_tensors(arg: Any) -> Any:
    if isinstance(arg, (list, tuple)):
        return [_without_tensors(item) for item in arg]
    return arg.scalar if isinstance(arg, TensorArg) else arg

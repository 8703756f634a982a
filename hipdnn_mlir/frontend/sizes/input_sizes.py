"""Which sizes of a model's inputs are open, and under what names."""

import re
from collections.abc import Mapping, Sequence

import onnx

from hipdnn_mlir_runtime.errors import ModelError, meant
from hipdnn_mlir_runtime.expressions import Expressions, Size, names_in
from hipdnn_mlir_runtime.limits import MAX_SIZE

from ...dynamic.input_sizes import OPEN, Given, InputSizes, Shapes, check_is_dict

_RANGE = f"from 0 to {MAX_SIZE - 1}"


def input_sizes(model: onnx.ModelProto, shapes: Shapes, where: str) -> InputSizes:
    """Read the dims of a model's inputs and put in what the user says of them.

    A dim of the model without name or number is called `input.axis`. A number that the user gives for a named dim of one input holds
    wherever the name occurs, unless the name is none, as `?`, or one input's dims of that name get different numbers.

    Raises:
        ModelError: unknown input or symbol, a rank that differs, sizes that contradict the model or each other.
    """
    initialized = {tensor.name for tensor in model.graph.initializer}
    tensors = (value for value in model.graph.input if value.type.HasField("tensor_type"))
    declared = {value.name: value for value in tensors if value.name not in initialized}
    return resolved({name: _declared_dims(value) for name, value in declared.items()}, shapes, where)


def resolved(declared: Mapping[str, tuple[int | str, ...] | None], shapes: Shapes, where: str) -> InputSizes:
    """Put what the user says of sizes into the dims that a model states.

    Args:
        declared: input name -> dims, an open one as a name or a written expression of names; None where the rank is not known.
        shapes: as for `compile`.
        where: the model's file, for messages.

    Raises:
        ModelError: as for `input_sizes`.
    """
    check_is_dict("shapes", shapes, "{input: dims} or {dynamic dimension: size}")
    dims = dict(declared)
    known = {
        symbol for sizes in dims.values() for size in sizes or () if isinstance(size, str) for symbol in _names(size)
    }
    fixed: dict[str, Given] = {}
    for name, given in shapes.items():
        for size in [given] if isinstance(given, str) else given if isinstance(given, Sequence) else []:
            _check_is_name(name, size, where)
        if name in known and (given is None or isinstance(given, (int, str))):
            _fix(name, OPEN if given is None else given, fixed, where)
        elif name in declared:
            dims[name] = _replaced(name, dims[name], _listed(name, given, dims[name], where), fixed, where)
        elif name in known:
            got = "x".join(map(str, given if isinstance(given, Sequence) else [given])) or "none"
            raise ModelError(f"dynamic dimension {name!r} takes one size", where=where, expected=f"{name}=4", got=got)
        else:
            expected = f"an input ({', '.join(declared)}) or a dynamic dimension ({', '.join(sorted(known)) or 'there is none'})"
            hint = meant(str(name), [*declared, *known]) or None
            raise ModelError(f"no input or dynamic dimension named {name!r}", where=where, expected=expected, hint=hint)
    return _resolved(dims, fixed, where)


def _check_is_name(name: str, size: object, where: str) -> None:
    """A number as text would be the name of a dimension that messages show as that number."""
    if isinstance(size, str) and re.fullmatch(r"\s*([+-]?\d+)?\s*", size):
        hint = f"write {size.strip()} without quotes" if size.strip().isdigit() else None
        raise ModelError(
            f"invalid size for {name!r}", where=where, expected="a number, a name or '?'", got=repr(size), hint=hint
        )


def _fix(name: str, size: int | str, fixed: dict[str, Given], where: str) -> None:
    """Note the size of a dynamic dimension in `fixed`."""
    if isinstance(size, int) and not 0 <= size < MAX_SIZE:
        message = f"dynamic dimension {name!r} cannot have this size"
        raise ModelError(message, where=where, expected=_RANGE, got=str(size))
    if fixed.setdefault(name, size) != size:
        raise ModelError(f"{name!r} is given two sizes", where=where, got=f"{fixed[name]} and {size}")


def _listed(
    name: str, given: Sequence[Given] | Given, dims: tuple[int | str, ...] | None, where: str
) -> tuple[Given, ...]:
    """What the user says of an input as a list: one size by itself is that of an input with one dimension."""
    if not (isinstance(given, (int, str)) or given is None):
        return tuple(given)
    if dims is None or len(dims) == 1:
        return (given,)
    form = ("x" if all(isinstance(size, int) for size in dims) else ",").join(map(str, dims))
    symbol = next((size for size in dims if isinstance(size, str)), None)
    single = "" if symbol is None else f", or one for a dynamic dimension, as {symbol}=4"
    message = f"{given!r} is no list of the sizes of input {name!r}"
    raise ModelError(message, where=where, expected=f"{len(dims)} sizes, as {name}={form}{single}")


def _declared_dims(value: onnx.ValueInfoProto) -> tuple[int | str, ...] | None:
    kind = value.type.tensor_type
    if not kind.HasField("shape"):
        return None
    return tuple(
        d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or f"{value.name}.{axis}"
        for axis, d in enumerate(kind.shape.dim)
    )


def _names(size: str) -> list[str]:
    return names_in(size) or [size]


def _replaced(
    name: str, old: tuple[int | str, ...] | None, given: tuple[Given, ...], fixed: dict[str, Given], where: str
) -> tuple[int | str, ...]:
    """An input's dims with those of the user; numbers for named dims are noted in `fixed`."""
    shown = "x".join(OPEN if size is None else str(size) for size in given)
    if old is not None and len(old) != len(given):
        message = f"wrong number of sizes for input {name!r}"
        raise ModelError(message, where=where, expected=f"{len(old)}", got=f"{len(given)} ({shown})")
    made: list[int | str] = []
    for axis, size in enumerate(given):
        before = old[axis] if old is not None else f"{name}.{axis}"
        if type(size) not in (int, str, type(None)):
            message = f"invalid size for dimension {axis} of input {name!r}"
            raise ModelError(message, where=where, expected="a number, a name or '?'", got=repr(size))
        if isinstance(size, int):
            if not 0 <= size < MAX_SIZE:
                message = f"input {name!r} cannot have the shape {shown}"
                raise ModelError(message, where=where, expected=f"sizes {_RANGE}")
            if old is not None and _is_promise(before, old, given) and fixed.setdefault(str(before), size) != size:
                message = f"dimension {axis} of input {name!r} is {size}"
                raise ModelError(
                    message, where=where, expected=f"{fixed[str(before)]}, the size of {before!r} elsewhere"
                )
            made.append(size)
        else:
            opened = before if isinstance(before, str) else f"{name}.{axis}"
            made.append(opened if size in (None, OPEN) else str(size))
    return tuple(made)


def _is_promise(before: int | str, old: tuple[int | str, ...], given: tuple[Given, ...]) -> bool:
    """Whether a number holds wherever its dim's name occurs: not of `?`, nor where the user gives one name several numbers here."""
    if not isinstance(before, str) or _names(before) != [before] or not any(c.isalpha() for c in before):
        return False
    return len({size for name, size in zip(old, given, strict=True) if name == before and isinstance(size, int)}) == 1


def _resolved(dims: Mapping[str, tuple[int | str, ...] | None], fixed: Mapping[str, Given], where: str) -> InputSizes:
    """Fixed symbols replaced by their numbers, renamed ones by their new names; the rest are the program's symbols.

    A written expression is one only where each of its names is the size of a dim too; else the text as a whole is a name.
    """
    for name, sizes in dims.items():
        if sizes is None:
            hint = f"give its sizes: --shape {name}=..."
            raise ModelError(f"input {name!r} has no declared rank", where=where, expected="a rank", hint=hint)
    texts = [size for sizes in dims.values() for size in sizes or () if isinstance(size, str)]
    alone = {text for text in texts if _names(text) == [text]}
    names = dict.fromkeys(text for text in texts if text in alone or not alone.issuperset(_names(text)))
    meaning: dict[str, Given] = {name: fixed.get(name, OPEN) for name in names}
    final = {name: to if isinstance(to, str) and to != OPEN else name for name, to in meaning.items()}
    numbers = {final[name]: to for name, to in meaning.items() if isinstance(to, int)}
    table = Expressions(tuple(name for name in dict.fromkeys(final.values()) if name not in numbers))

    def named(name: str) -> Size:
        return numbers[final[name]] if final[name] in numbers else table.symbol(final[name])

    def size(given: int | str) -> Size:
        if isinstance(given, int):
            return given
        return named(given) if given in names else table.parse(given, named)

    return InputSizes({name: tuple(size(d) for d in sizes or ()) for name, sizes in dims.items()}, table)

"""The instructions of an elementwise kernel (docs/host-library.md) on single values."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from hipdnn_mlir_runtime.dtypes import BOOL, BY_NAME, DType

from ...ops.spec import Refusal
from ..core.builder import KernelBuilder, Value
from ..core.elements import is_signed, rounded, value_type
from .functions import NAMES, Functions
from .short_functions import ShortFunctions

_COMPARISONS = {"eq": "eq", "ne": "ne", "lt": "lt", "le": "le", "gt": "gt", "ge": "ge"}
_TESTS = frozenset({*_COMPARISONS, "is_nan", "is_inf", "is_pos_inf", "is_neg_inf"})
_BY_ONES, _MOVED = 1.5 * 2.0**23, 2
"""An f32 whose neighbours are 1 apart, as those of what is less by up to 2^22. What is added to it and taken away from the bits again, for
ptxas of CUDA 13 makes a store of a float's lowest byte alone a conversion of that float to an unsigned integer."""
_ROUNDINGS = {"floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc"}
_BITWISE = {
    "and": "arith.andi", "or": "arith.ori", "xor": "arith.xori", "bit_and": "arith.andi", "bit_or": "arith.ori", "bit_xor": "arith.xori",
}  # fmt: skip


def number(value: Any, dtype: DType) -> float:
    """A constant of a program's JSON as the type holds it."""
    exact = np.asarray(float(value) if isinstance(value, str) else value).astype(dtype.numpy)
    return float(exact) if dtype.is_float else int(exact)


def result_dtype(name: str, operands: list[DType]) -> DType:
    """Type of what an instruction makes of operands."""
    return BOOL if name in _TESTS else operands[-1]


class Instructions:
    """Writes instructions.

    Args:
        b: where to.
        rounds: whether results of 16-bit types are rounded to them, as in an elementwise kernel; else they stay f32 until stored.
    """

    def __init__(self, b: KernelBuilder, *, rounds: bool) -> None:
        self.b = b
        self._rounds = rounds

    def constant(self, value: Any, dtype: DType) -> Value:
        """A number."""
        return self.b.constant(number(value, dtype), value_type(self.b, dtype))

    def apply(self, name: str, dtype: DType, *operands: Value, is_short: bool = False) -> Value:
        """An instruction on operands of one type (`where`: behind its condition); `is_short`: see `Program.short`."""
        if name == "where":
            return self.b.select(*operands)
        if name in _COMPARISONS:
            return self._compare(name, dtype, *operands)
        if not dtype.is_float:
            made = self._integer(name, dtype, *operands)
        else:
            made = self._float(name, dtype, is_short, *operands)
            if self._rounds and name not in _TESTS:
                made = rounded(self.b, made, dtype)
        return made

    def quotient(self, x: Value, divisor: float) -> Value:
        """An f32 by a number that `has_quotient`."""
        return Functions(self.b, 32).quotient(x, divisor)

    def _compare(self, name: str, dtype: DType, x: Value, y: Value) -> Value:
        if dtype.is_float:
            return self.b.compare("une" if name == "ne" else f"o{name}", x, y)
        sign = "" if name in ("eq", "ne") else "s" if is_signed(dtype) else "u"
        return self.b.compare(sign + name, x, y)

    # -- floats ---------------------------------------------------------------------------------------------------

    def _float(self, name: str, dtype: DType, is_short: bool, *operands: Value) -> Value:
        b = self.b
        f = ShortFunctions(b) if is_short else Functions(b, 64 if dtype.name == "f64" else 32)
        if name in NAMES:
            return getattr(f, name)(*operands)
        x = operands[0]
        simple: dict[str, Callable[[], Value]] = {
            "sign": lambda: f.where("ogt", x, 0.0, f.number(1), f.where("olt", x, 0.0, f.number(-1), x)),  # a zero or NaN is itself
            "min": lambda: self._extreme("olt", *operands),
            "max": lambda: self._extreme("ogt", *operands),
            "mod": lambda: self._float_mod(f, *operands),
            "is_nan": lambda: b.compare("uno", x, x),
            "is_inf": lambda: b.compare("oeq", f.abs(x), f.number(math.inf)),
            "is_pos_inf": lambda: b.compare("oeq", x, f.number(math.inf)),
            "is_neg_inf": lambda: b.compare("oeq", x, f.number(-math.inf)),
        }  # fmt: skip
        if name in simple:
            return simple[name]()
        if name in _ROUNDINGS:
            return b.intrinsic(_ROUNDINGS[name], x)
        raise Refusal("kernel", f"no instruction {name} for {dtype}")

    def _extreme(self, predicate: str, x: Value, y: Value) -> Value:
        """The lesser or greater; a NaN is the result."""
        b = self.b
        takes_first = b.same("arith.ori", b.compare(predicate, x, y), b.compare("uno", x, x))
        return b.select(takes_first, x, y)

    def _float_mod(self, f: Functions, x: Value, y: Value) -> Value:
        b, rest = self.b, f.fmod(x, y)
        differs = b.same("arith.xori", b.compare("olt", rest, f.number(0)), b.compare("olt", y, f.number(0)))
        moved = b.select(differs, f.add(rest, y), rest)
        return f.where("oeq", rest, 0.0, f.with_sign(rest, y), moved)

    # -- integers -------------------------------------------------------------------------------------------------

    def _integer(self, name: str, dtype: DType, *operands: Value) -> Value:
        b, x = self.b, operands[0]
        kind, signed = x.type, is_signed(dtype)
        zero, ones = b.constant(0, kind), b.constant(-1, kind)
        if dtype is BOOL:
            name = {"not": "bit_not", "min": "and", "max": "or"}.get(name, name)
        if name in _BITWISE:
            return b.same(_BITWISE[name], *operands)
        least = "slt" if signed else "ult"
        simple: dict[str, Callable[[], Value]] = {
            "add": lambda: b.same("arith.addi", *operands),
            "sub": lambda: b.same("arith.subi", *operands),
            "mul": lambda: b.same("arith.muli", *operands),
            "neg": lambda: b.same("arith.subi", zero, x),
            "bit_not": lambda: b.same("arith.xori", x, ones),
            "abs": lambda: b.select(b.compare("slt", x, zero), b.same("arith.subi", zero, x), x) if signed else x,
            "sign": lambda: self._sign(x, signed),
            "min": lambda: b.select(b.compare(least, *operands), *operands),
            "max": lambda: b.select(b.compare(least, *operands), operands[1], operands[0]),
            "div": lambda: self._divide(signed, *operands)[0],
            "fmod": lambda: self._divide(signed, *operands)[1],
            "mod": lambda: self._mod(signed, *operands),
            "shl": lambda: self._shift("arith.shli", *operands),
            "shr": lambda: self._shift("arith.shrsi" if signed else "arith.shrui", *operands),
            "pow": lambda: self._power(signed, *operands),
        }
        if name not in simple:
            raise Refusal("kernel", f"no instruction {name} for {dtype}")
        return simple[name]()

    def _sign(self, x: Value, signed: bool) -> Value:
        b = self.b
        zero, one = b.constant(0, x.type), b.constant(1, x.type)
        made = b.select(b.compare("ne", x, zero), one, zero)
        return b.select(b.compare("slt", x, zero), b.constant(-1, x.type), made) if signed else made

    def _divide(self, signed: bool, x: Value, y: Value) -> tuple[Value, Value]:
        """Quotient and remainder; of a division by 0 both are 0, and the least by -1 gives 0."""
        b = self.b
        zero, one, ones = (b.constant(n, x.type) for n in (0, 1, -1))
        is_zero = b.compare("eq", y, zero)
        if not signed:
            safe = b.select(is_zero, one, y)
            quotient, rest = b.same("arith.divui", x, safe), b.same("arith.remui", x, safe)
            return b.select(is_zero, zero, quotient), b.select(is_zero, zero, rest)
        is_minus_one = b.compare("eq", y, ones)
        safe = b.select(b.same("arith.ori", is_zero, is_minus_one), one, y)
        negative = b.same("arith.subi", zero, x)
        is_least = b.same("arith.andi", b.compare("eq", negative, x), b.compare("slt", x, zero))
        quotient = b.select(is_minus_one, b.select(is_least, zero, negative), b.same("arith.divsi", x, safe))
        return b.select(is_zero, zero, quotient), b.same("arith.remsi", x, safe)

    def _mod(self, signed: bool, x: Value, y: Value) -> Value:
        b, rest = self.b, self._divide(signed, x, y)[1]
        if not signed:
            return rest
        zero = b.constant(0, x.type)
        differs = b.same("arith.xori", b.compare("slt", rest, zero), b.compare("slt", y, zero))
        adds = b.same("arith.andi", differs, b.compare("ne", rest, zero))
        return b.select(adds, b.same("arith.addi", rest, y), rest)

    def _shift(self, name: str, x: Value, y: Value) -> Value:
        b, width = self.b, x.type.width
        zero, last = b.constant(0, x.type), b.constant(width - 1, x.type)
        is_inside = b.compare("ult", y, b.constant(width, x.type)) if width > 1 else b.compare("eq", y, zero)
        made = b.same(name, x, b.select(is_inside, y, zero))
        outside = b.same(name, x, last) if name == "arith.shrsi" else zero
        # A negative amount, too, counts as the width or more; to the right it leaves the sign.
        return b.select(is_inside, made, outside)

    def _power(self, signed: bool, x: Value, y: Value) -> Value:
        b, kind = self.b, x.type
        zero, one, ones = (b.constant(n, kind) for n in (0, 1, -1))
        result, base, rest = one, x, y
        made = b.loop(0, kind.width, 1, [result, base, rest], lambda _, carried: self._squared(one, *carried))
        if not signed:
            return made[0]
        is_odd = b.compare("ne", b.same("arith.andi", y, one), zero)
        of_minus_one = b.select(b.compare("eq", x, ones), b.select(is_odd, ones, one), zero)
        inverse = b.select(b.compare("eq", x, one), one, of_minus_one)
        return b.select(b.compare("slt", y, zero), inverse, made[0])

    def _squared(self, one: Value, result: Value, base: Value, rest: Value) -> list[Value]:
        b = self.b
        takes = b.compare("ne", b.same("arith.andi", rest, one), b.constant(0, rest.type))
        result = b.select(takes, b.same("arith.muli", result, base), result)
        return [result, b.same("arith.muli", base, base), b.same("arith.shrui", rest, one)]

    # -- conversions ----------------------------------------------------------------------------------------------

    def cast(self, value: Value, source: DType, target: DType) -> Value:
        """Another type: integers wrap, floats are cut toward zero and saturated in 64 bits first."""
        b = self.b
        if source is target:
            return value
        if target is BOOL:
            return self._compare("ne", source, value, b.constant(0, value.type))
        if target.is_float:
            made = self._to_float(value, source, target)
            return rounded(b, made, target) if self._rounds or target.is_float8 else made
        if not source.is_float:
            return self._resized(value, is_signed(source), value_type(b, target))
        wide = BY_NAME["u64" if target.name == "u64" else "i64"]
        return self._resized(self._whole(value, wide), True, value_type(b, target))

    def _to_float(self, value: Value, source: DType, target: DType) -> Value:
        b = self.b
        kind = value_type(b, target)
        if not source.is_float:
            return b.op("arith.sitofp" if is_signed(source) else "arith.uitofp", [value], kind)
        if target.is_float8 and source.name == "f64":
            return b.op("arith.truncf", [value], b.f32)
        if target.is_narrow and source.name == "f64":
            return b.op("arith.extf", [b.op("arith.truncf", [value], b.f16 if target.name == "f16" else b.bf16)], b.f32)
        if value.type == kind:
            return value
        return b.op("arith.truncf" if value.type == b.f64 else "arith.extf", [value], kind)

    def _resized(self, value: Value, signed: bool, kind: Any) -> Value:
        have = value.type.width
        if have == kind.width:
            return value
        name = "arith.trunci" if have > kind.width else "arith.extsi" if signed else "arith.extui"
        return self.b.op(name, [value], kind)

    def _whole(self, value: Value, target: DType) -> Value:
        """A float as the integer toward zero of a 64-bit type, saturated; NaN is 0. For u64 negative ones wrap."""
        b, f = self.b, Functions(self.b, 64 if value.type == self.b.f64 else 32)
        limit = 2.0**63
        is_inside = b.compare("olt", f.abs(value), f.number(limit))
        cut = b.op("arith.fptosi", [b.select(is_inside, value, f.number(0))], b.i64)
        least, greatest, zero = b.constant(-(2**63), b.i64), b.constant(2**63 - 1, b.i64), b.constant(0, b.i64)
        if target.name == "u64":
            is_high = b.same(
                "arith.andi", b.compare("oge", value, f.number(limit)), b.compare("olt", value, f.number(2.0**64))
            )
            moved = b.select(is_high, f.sub(value, f.number(limit)), f.number(0))
            high = b.same("arith.xori", b.op("arith.fptosi", [moved], b.i64), least)
            greatest = b.select(is_high, high, b.constant(-1, b.i64))
        outside = f.where("ogt", value, 0.0, greatest, f.where("olt", value, 0.0, least, zero))
        return b.select(is_inside, cut, outside)

    def saturate(
        self, value: Value, source: DType, target: DType, *, is_number: bool = False, is_packed: bool = False
    ) -> Value:
        """The nearest integer of a type, halves to even, within its range; NaN is 0, unless it is known that there is none.

        `is_packed`: bytes are stored by fours at least.
        """
        b = self.b
        info = np.iinfo(target.numpy)
        least, greatest = int(info.min), int(info.max)
        if source.name == "f32" and target.bytes == 1:
            f = Functions(b, 32)
            number = value if is_number else b.select(b.compare("uno", value, value), f.number(0), value)
            return self._nearest_byte(f, number, (float(least), float(greatest)), 0 if is_packed else _MOVED)
        kind = value_type(b, target)
        low, high = b.constant(least, kind), b.constant(greatest, kind)
        if source.is_float:
            f = Functions(b, 64 if source.name == "f64" else 32)
            whole = b.intrinsic("rint", value)
            made = self._resized(self._whole(whole, BY_NAME["u64" if target.name == "u64" else "i64"]), True, kind)
            made = f.where("oge", whole, float(greatest), high, made)
            return f.where("ole", whole, float(least), low, made)
        signed, bounds = is_signed(source), np.iinfo(source.numpy)
        made = self._resized(value, signed, kind)
        if bounds.max > greatest:
            made = b.select(b.compare("sgt" if signed else "ugt", value, b.constant(greatest, value.type)), high, made)
        if bounds.min < least:
            made = b.select(b.compare("slt", value, b.constant(least, value.type)), low, made)
        return made

    def _nearest_byte(self, f: Functions, value: Value, limits: tuple[float, float], moved: int) -> Value:
        """Of an f32: where floats count by ones, the lowest bits of a sum are the nearest integer, halves to even."""
        b, (least, greatest) = self.b, limits
        within = b.intrinsic("maxnum", b.intrinsic("minnum", value, f.number(greatest)), f.number(least))
        bits = b.op("arith.bitcast", [f.add(within, f.number(_BY_ONES + moved))], b.i32)
        return b.op("arith.trunci", [b.same("arith.subi", bits, b.constant(moved, b.i32))], b.i8)

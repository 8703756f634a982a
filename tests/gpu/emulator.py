"""Runs a `gpu.module` on the CPU: NumPy arrays with one element per thread of the whole grid, all in lockstep.

Strict where a GPU is silent: an access outside of a tensor or not aligned to its size fails, and so does a barrier or shuffle that not all
threads reach, a shift by the width or more, an integer division by zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from gpu.float8_pair import float8_pair
from gpu.matrix_units import products, signed_byte, three_words

Array = np.ndarray[Any, Any]
SHARED, CLUSTER = -1, -2
"""Shared memory of a block itself, and of a block of its cluster."""

_DTYPES = {
    "i1": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64, "index": np.int64, "f16": np.float16,
    "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip


def _dtype(kind: Any) -> np.dtype[Any]:
    return np.dtype(_DTYPES[str(kind)])


def _unsigned(x: Array) -> Array:
    return x if x.dtype == np.bool_ else x.view(np.dtype(f"u{x.dtype.itemsize}"))


def _as_unsigned(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda *xs: function(*map(_unsigned, xs)).view(xs[0].dtype)


def _shift(function: Callable[..., Array], x: Array, y: Array) -> Array:
    assert np.all(_unsigned(y) < x.dtype.itemsize * 8), "shift by the width or more"
    return function(x, y)


def _cut_toward_zero(function: Callable[..., Array], a: Array, b: Array) -> Array:
    assert np.all(b != 0), "division by zero"
    return function(a, b)


def _signed_div(a: Array, b: Array) -> Array:
    quotient = np.floor_divide(a, b)
    return quotient + ((quotient < 0) & (quotient * b != a)).astype(a.dtype)


def _to_integer(x: Array, kind: Any) -> Array:
    info = np.iinfo(_dtype(kind))
    assert np.all((x >= info.min) & (x < 2.0**63)), "a float outside of the integer's range is poison"
    return x.astype(_dtype(kind))


_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "arith.addi": np.add, "arith.subi": np.subtract, "arith.muli": np.multiply, "arith.andi": np.bitwise_and,
    "arith.ori": np.bitwise_or, "arith.xori": np.bitwise_xor, "arith.minui": _as_unsigned(np.minimum),
    "arith.minsi": np.minimum, "arith.maxsi": np.maximum,
    "arith.divui": lambda a, b: _cut_toward_zero(_as_unsigned(np.floor_divide), a, b),
    "arith.remui": lambda a, b: _cut_toward_zero(_as_unsigned(np.remainder), a, b),
    "arith.divsi": lambda a, b: _cut_toward_zero(_signed_div, a, b), "arith.remsi": lambda a, b: _cut_toward_zero(np.fmod, a, b),
    "arith.shli": lambda a, b: _shift(np.left_shift, a, b), "arith.shrsi": lambda a, b: _shift(np.right_shift, a, b),
    "arith.shrui": lambda a, b: _shift(_as_unsigned(np.right_shift), a, b),
    "arith.addf": np.add, "arith.subf": np.subtract, "arith.mulf": np.multiply, "arith.divf": np.divide,
}  # fmt: skip
_INTEGER_TESTS = [np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal]
_FLOAT_TESTS = {1: np.equal, 2: np.greater, 3: np.greater_equal, 4: np.less, 5: np.less_equal, 13: np.not_equal}


def _fma(x: Array, y: Array, z: Array) -> Array:
    if x.dtype == np.float32:  # the product is exact in double
        return (x.astype(np.float64) * y.astype(np.float64) + z.astype(np.float64)).astype(np.float32)
    product = x * y
    a, b = _halves(x), _halves(y)
    lost = ((a[0] * b[0] - product) + a[0] * b[1] + a[1] * b[0]) + a[1] * b[1]
    total = product + z
    other = total - product
    rest = (product - (total - other)) + (z - other)
    exact = total + (rest + np.where(np.isfinite(lost), lost, 0))
    return np.where(np.isfinite(total), exact, total)


def _halves(x: Array) -> tuple[Array, Array]:
    """A double as a sum of two of 26 bits."""
    high = x * 134217729.0
    high = high - (high - x)
    return high, x - high


_INTRINSICS: dict[str, Callable[..., Array]] = {
    "fma": _fma, "fabs": np.abs, "sqrt": np.sqrt, "copysign": np.copysign, "floor": np.floor, "ceil": np.ceil, "rint": np.rint,
    "trunc": np.trunc, "minnum": np.fmin, "maxnum": np.fmax, "maximum": np.maximum,
}  # fmt: skip

_APPROXIMATED: dict[str, tuple[Callable[[Array], Array], float]] = {
    "exp2": (np.exp2, 2.0**-22), "log2": (np.log2, 2.0**-22), "reciprocal": (np.reciprocal, 2.0**-23),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 2.0**-22.9),
}  # fmt: skip
"""What instructions of GPUs approximate, and their greatest error relative to the result in NVIDIA's documents; AMD's is one unit in the
last place. Of `log2` between 1/2 and 2 it is absolute."""


def _approximated(name: str, x: Array) -> Array:
    """The right result off by the greatest error, up or down by the operand's bits; subnormal numbers are 0, before and after."""
    function, error = _APPROXIMATED[name]
    x = _flushed(x)
    exact = function(x.astype(np.float64))
    scale = np.where((x > 0.5) & (x < 2), 1.0, np.abs(exact)) if name == "log2" else np.abs(exact)
    up = (x.view(np.uint32).astype(np.uint64) * 2654435761 >> 16) & 1
    off = np.where(np.isfinite(exact), exact + np.where(up, error, -error) * scale, exact)
    return _flushed(off.astype(np.float32))


def _flushed(x: Array) -> Array:
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), x), x)


_COPIES = "llvm.nvvm.cp.async."
_CLUSTER = "llvm.nvvm.barrier.cluster."
_MATRIX_UNITS = "llvm.nvvm.mma."
_Decoded = tuple[list[tuple[Callable[..., Any], Any, list[Any], list[Any]]], list[tuple[Any, Any, Any]], list[Any]]
"""Of a block: what runs, an operation or a function for it, on which values, with which results; constants with their types and values; and
the values that it yields."""


class Kernel:
    """A module with one kernel, of which launches that follow each other share what is read from it."""

    def __init__(self, module: Any) -> None:
        self.operations = [one.operation for one in module.body.operations[0].operation.regions[0].blocks[0].operations]
        self._module = module
        self._decoded: dict[Any, _Decoded] = {}

    def decoded(self, block: Any) -> _Decoded:
        """What a block does."""
        if block not in self._decoded:
            self._decoded[block] = _decoded(block)
        return self._decoded[block]


def _decoded(block: Any) -> _Decoded:
    steps: list[tuple[Callable[..., Any], Any, list[Any], list[Any]]] = []
    constants, left = [], []
    for operation in block.operations:
        op = operation.operation
        name, operands, results = str(op.name), list(op.operands), list(op.results)
        if name in ("scf.yield", "gpu.return"):
            left = operands
        elif name == "arith.constant":
            value = op.attributes["value"]
            constants.append((results[0], results[0].type, value))
        elif name in _BINARY:
            steps.append((Emulator.guarded, _BINARY[name], operands, results))
        else:
            special = getattr(Emulator, "_" + name.replace(".", "_"), None)
            assert special is not None, f"{name} is not emulated"
            steps.append((special, op, operands, results))
    return steps, constants, left


class Emulator:
    """One launch.

    Args:
        memory: per argument the bytes it points to.
        blocks, threads, wave: of the grid, of a block, of what shuffles; `asked`: bytes of shared memory that the code does not declare.
        writers: as `writers` of a launch of the same kernel before. What a thread reads that another one writes is garbage then, since it
            may have been written already: where that makes no difference to the results, the order of threads makes none.
    """

    def __init__(
        self,
        memory: Sequence[Array],
        blocks: int,
        threads: int,
        wave: int,
        asked: int = 0,
        writers: Sequence[Array] = (),
    ) -> None:
        self.memory, self.asked_bytes = list(memory), asked
        self.blocks, self.threads, self.wave = blocks, threads, wave
        self.lanes = blocks * threads
        self.values: dict[Any, Any] = {}
        self._known: dict[Any, _Decoded] = {}
        self._constants: dict[tuple[str, str], Array] = {}
        self.tables: dict[str, int] = {}
        self._activate(np.ones(self.lanes, np.bool_))
        self.shared, self.cluster = np.zeros(0, np.uint8), 1
        self.copies: list[list[tuple[Array, Array]]] = [[]]
        self.written: list[Array] = [np.zeros(len(m), np.uint8) for m in memory]
        # Which thread writes each byte that an argument points to; arguments of one array share.
        shared = {id(m): np.full(len(m), -1, np.int64) for m in memory}
        self.writers = [shared[id(m)] for m in memory]
        self.former_writers = list(writers)

    def run(self, kernel: Kernel) -> None:
        """Execute the kernel."""
        self._kernel = kernel
        for op in kernel.operations:
            if op.name == "llvm.mlir.global" and "value" in op.attributes:
                self.tables[op.attributes["sym_name"].value] = len(self.memory)
                self.memory.append(np.array(op.attributes["value"]).view(np.uint8))
            elif op.name == "llvm.mlir.global":
                found = re.search(r"array<(\d+) x i8>", str(op.attributes["global_type"]))
                assert found
                self.shared_bytes = int(found[1]) or self.asked_bytes
                self.shared = np.full(self.blocks * self.shared_bytes, 0xAB, np.uint8)
            if op.name == "gpu.func":
                if "nvvm.cluster_dim" in op.attributes:
                    self.cluster = int(re.findall(r"\d+", str(op.attributes["nvvm.cluster_dim"]))[1])
                block = op.regions[0].blocks[0]
                for number, argument in enumerate(block.arguments):
                    self.values[argument] = (number, np.zeros(self.lanes, np.int64))
                with np.errstate(all="ignore"):
                    self._block(block)

    def _block(self, block: Any) -> list[Any]:
        values = self.values
        steps, _, left = self._known.get(block) or self._meet(block)
        for run, what, operands, results in steps:
            made = run(self, what, *[values[v] for v in operands])
            if isinstance(made, list):
                values.update(zip(results, made, strict=True))
            elif made is not None:
                values[results[0]] = made
        return [values[v] for v in left]

    def _meet(self, block: Any) -> _Decoded:
        """What a block does, where it runs for the first time: its constants are given their values."""
        found = self._known[block] = self._kernel.decoded(block)
        for result, kind, text in found[1]:
            key = str(kind), str(text)
            if key not in self._constants:
                self._constants[key] = self._constant(kind, text)
            self.values[result] = self._constants[key]
        return found

    def _activate(self, mask: Array) -> None:
        """The threads that run from now on."""
        self.mask, self._is_whole = mask, bool(mask.all())

    def guarded(self, function: Callable[..., Array], *xs: Array) -> Array:
        """What inactive threads compute is not looked at."""
        if self._is_whole:
            return function(*xs)
        made = function(*(x[self.mask] for x in xs))
        whole = np.zeros((self.lanes, *made.shape[1:]), made.dtype)
        whole[self.mask] = made
        return whole

    # -- arith ----------------------------------------------------------------------------------------------------

    def _constant(self, kind: Any, text: Any) -> Array:
        if str(kind) == "i1":
            return np.full(self.lanes, bool(text.value))
        if str(kind).startswith("vector"):
            dtype, count = _element(kind)
            return np.full((self.lanes, count), text.get_splat_value().value, dtype)
        value = text.value
        return np.full(self.lanes, value, _dtype(kind))

    def _arith_cmpi(self, op: Any, a: Array, b: Array) -> Array:
        predicate = op.attributes["predicate"].value
        if predicate > 5:
            return _INTEGER_TESTS[predicate - 4](_unsigned(a), _unsigned(b))  # type: ignore[no-any-return]
        return _INTEGER_TESTS[predicate](a, b)  # type: ignore[no-any-return]

    def _arith_cmpf(self, op: Any, a: Array, b: Array) -> Array:
        predicate = op.attributes["predicate"].value
        if predicate == 14:
            return np.isnan(a) | np.isnan(b)
        return _FLOAT_TESTS[predicate](a, b)  # type: ignore[no-any-return]

    def _arith_select(self, op: Any, c: Array, a: Array, b: Array) -> Array:
        return np.where(c, a, b)

    def _arith_negf(self, op: Any, x: Array) -> Array:
        return -x

    def _convert(self, op: Any, x: Array) -> Array:
        kind = _dtype(op.results[0].type)
        if kind == ml_dtypes.bfloat16 and x.dtype == np.float64:  # ml_dtypes rounds twice
            near = x.astype(np.float32)
            inexact = (near.astype(np.float64) != x) & np.isfinite(near)
            outside = np.abs(near.astype(np.float64)) > np.abs(x)
            odd = ((near.view(np.int32) - outside) | 1).view(np.float32)
            return np.where(inexact, odd, near).astype(kind)
        return x.astype(kind)

    _arith_extf = _arith_truncf = _arith_trunci = _arith_sitofp = _arith_index_cast = _convert

    def _arith_extsi(self, op: Any, x: Array) -> Array:
        return (-x.astype(np.int8) if x.dtype == np.bool_ else x).astype(_dtype(op.results[0].type))

    def _arith_extui(self, op: Any, x: Array) -> Array:
        return _unsigned(x).astype(_dtype(op.results[0].type))

    def _arith_uitofp(self, op: Any, x: Array) -> Array:
        return _unsigned(x).astype(_dtype(op.results[0].type))

    def _arith_fptosi(self, op: Any, x: Array) -> Array:
        return self.guarded(lambda y: _to_integer(y, op.results[0].type), x)

    def _arith_bitcast(self, op: Any, x: Array) -> Array:
        return x.view(_dtype(op.results[0].type))

    def _llvm_call_intrinsic(self, op: Any, *xs: Array) -> Any:
        name, kind = op.attributes["intrin"].value.split(".")[1:3]
        if op.attributes["intrin"].value.startswith(_MATRIX_UNITS):
            assert self._is_uniform(self.wave), "not all lanes of a wave reach the matrix units"
            return products(op.attributes["intrin"].value.removeprefix(_MATRIX_UNITS), *xs)
        if name == "await":
            return []
        if op.attributes["intrin"].value == "llvm.nvvm.mapa.shared.cluster":
            return CLUSTER, xs[0][1] + (xs[1] - self._block_numbers() % self.cluster) * self.shared_bytes
        if name == "nvvm" and kind == "prmt":
            return signed_byte(*xs)
        if name == "nvvm" and ".ff.to." in op.attributes["intrin"].value:
            return float8_pair(op.attributes["intrin"].value.split(".")[4], *xs)
        if op.attributes["intrin"].value.startswith(_CLUSTER):
            assert self._is_uniform(self.threads, self.cluster), "not all threads of a cluster reach its barrier"
            return []
        if name == "nvvm":
            return self._copied_ahead(op.attributes["intrin"].value.removeprefix(_COPIES), *xs)
        if name == "approximate":
            return _approximated(kind, *xs)
        return _INTRINSICS[name](*xs).astype(xs[0].dtype)

    def _llvm_inline_asm(self, op: Any, word: Array) -> Array:
        return three_words(op.attributes["asm_string"].value, word)

    def _copied_ahead(self, kind: str, *xs: Any) -> list[Array]:
        """Copies in groups, which are written when they are waited for: until then shared memory has garbage there."""
        if kind == "cg.shared.global.16":
            (to, source), (at, read) = self._places(xs[0], 16, 16), self._places(xs[1], 16, 16)
            to[source] = 0xFF
            self.copies[-1].append((source, at[read]))
            return []
        assert self._is_whole, "not all threads end and wait for copies"
        if kind == "commit.group":
            self.copies.append([])
            return []
        assert kind == "wait.group"
        pending = int(xs[0][0])
        while len(self.copies) - 1 > pending:
            for places, content in self.copies.pop(0):
                self.shared[places] = content
        return []

    def _llvm_extractvalue(self, op: Any, whole: Array) -> Array:
        return whole[:, next(iter(op.attributes["position"]))]

    def _llvm_bitcast(self, op: Any, x: Array) -> Array:
        dtype, count = _element(op.results[0].type)
        made = np.ascontiguousarray(x).view(dtype)
        return made.reshape(-1, count) if count > 1 else made.reshape(-1)

    # -- threads --------------------------------------------------------------------------------------------------

    def _gpu_thread_id(self, op: Any) -> Array:
        return np.tile(np.arange(self.threads), self.blocks)

    def _gpu_block_id(self, op: Any) -> Array:
        """Grids have one dim: in others, all blocks are the first."""
        return self._block_numbers() * (str(op.attributes["dimension"]) == "#gpu<dim x>")

    def _block_numbers(self) -> Array:
        return np.repeat(np.arange(self.blocks), self.threads)

    def _gpu_barrier(self, op: Any) -> None:
        assert self._is_uniform(self.threads), "not all threads of a block reach a barrier"

    def _is_uniform(self, group: int, blocks: int = 1) -> bool:
        together = self.mask.reshape(-1, blocks * min(group, self.threads))
        return bool(np.all(together == together[:, :1]))

    def _gpu_shuffle(self, op: Any, x: Array, offset: Array, width: Array) -> list[Array]:
        assert np.all(width == self.wave), "shuffles have the wave's width"
        assert self._is_uniform(self.wave), "not all threads of a wave reach a shuffle"
        lanes, mode = np.arange(self.lanes), str(op.attributes["mode"])
        lane = lanes % self.wave
        if "xor" in mode:
            taken = lanes ^ offset
        elif "up" in mode:
            taken = np.where(lane >= offset, lanes - offset, lanes)
        else:
            taken = lanes - lane + offset
        return [x[taken], np.ones(self.lanes, np.bool_)]

    # -- control flow ---------------------------------------------------------------------------------------------

    def _scf_if(self, op: Any, condition: Array) -> list[Any]:
        before = self.mask
        results = []
        for region, taken in zip(op.regions, (condition, ~condition), strict=True):
            if len(region.blocks) == 0:
                continue
            self._activate(before & taken)
            results.append(self._block(region.blocks[0]))
        self._activate(before)
        return [np.where(condition, a, b) for a, b in zip(*results, strict=True)] if op.results else []

    def _scf_for(self, op: Any, start: Array, stop: Array, step: Array, *carried: Array) -> list[Array]:
        before, block, at = self.mask, op.regions[0].blocks[0], start.copy()
        state = list(carried)
        while True:
            self._activate(before & (at < stop))
            if not self.mask.any():
                break
            for argument, value in zip(block.arguments, [at, *state], strict=True):
                self.values[argument] = value
            made = self._block(block)
            state = [np.where(self.mask, new, old) for new, old in zip(made, state, strict=True)]
            at = np.where(self.mask, at + step, at)
        self._activate(before)
        return state

    # -- memory ---------------------------------------------------------------------------------------------------

    def _llvm_mlir_addressof(self, op: Any) -> tuple[int, Array]:
        name = op.attributes["global_name"].value
        if name in self.tables:
            return self.tables[name], np.zeros(self.lanes, np.int64)
        return SHARED, self._block_numbers() * self.shared_bytes

    def _llvm_ptrtoint(self, op: Any, pointer: tuple[int, Array]) -> Array:
        return np.int64(self.memory[pointer[0]].ctypes.data) + pointer[1]

    def _llvm_getelementptr(self, op: Any, base: tuple[int, Array], offset: Array) -> tuple[int, Array]:
        kind, count = _element(op.attributes["elem_type"].value)
        return base[0], base[1] + offset * (kind.itemsize * count)

    def _places(self, pointer: tuple[int, Array], size: int, alignment: int) -> tuple[Array, Array]:
        """Memory and, per active thread, the positions of its bytes."""
        where, offsets = pointer[0], pointer[1][self.mask]
        memory = self.shared if where in (SHARED, CLUSTER) else self.memory[where]
        low = self._block_numbers()[self.mask] * self.shared_bytes if where == SHARED else 0
        high = low + self.shared_bytes if where == SHARED else len(memory)
        assert np.all((offsets >= low) & (offsets + size <= high)), f"access outside of argument {where}"
        assert np.all(offsets % alignment == 0), f"access to argument {where} not aligned to {alignment}"
        return memory, offsets[:, None] + np.arange(size)

    def _llvm_load(self, op: Any, pointer: tuple[int, Array]) -> Array:
        kind, count = _element(op.results[0].type)
        memory, places = self._places(pointer, kind.itemsize * count, op.attributes["alignment"].value)
        read = memory[places]
        if 0 <= pointer[0] < len(self.former_writers):
            writer = self.former_writers[pointer[0]][places]
            read = np.where((writer >= 0) & (writer != np.flatnonzero(self.mask)[:, None]), np.uint8(0xFF), read)
        whole = np.zeros((self.lanes, count), kind)
        whole[self.mask] = np.ascontiguousarray(read).view(kind)
        return whole if count > 1 else whole[:, 0]

    def _llvm_store(self, op: Any, value: Array, pointer: tuple[int, Array]) -> None:
        kind, count = _element(op.operands[0].type)
        memory, places = self._places(pointer, kind.itemsize * count, op.attributes["alignment"].value)
        whole = np.ascontiguousarray(value.reshape(self.lanes, count)[self.mask])
        memory[places] = whole.view(np.uint8).reshape(places.shape)
        if pointer[0] != SHARED:
            np.add.at(self.written[pointer[0]], places.reshape(-1), np.uint8(1))  # NumPy is fast at these types alone
            self.writers[pointer[0]][places] = np.flatnonzero(self.mask)[:, None]

    def _llvm_mlir_poison(self, op: Any) -> Array:
        kind, count = _element(op.results[0].type)
        return np.zeros((self.lanes, count), kind)

    def _llvm_extractelement(self, op: Any, vector: Array, position: Array) -> Array:
        return vector[:, position[0]]

    def _llvm_insertelement(self, op: Any, vector: Array, value: Array, position: Array) -> Array:
        made = vector.copy()
        made[:, position[0]] = value
        return made


def _element(kind: Any) -> tuple[np.dtype[Any], int]:
    """Element type and count of a scalar or vector type."""
    found = re.fullmatch(r"vector<(\d+)x(\w+)>", str(kind))
    return (_dtype(found[2]), int(found[1])) if found else (_dtype(kind), 1)


def run_in_any_order(
    memory: Sequence[Array], blocks: int, threads: int, wave: int, kernel: Kernel, asked_bytes: int = 0
) -> None:
    """One launch, where what a thread reads that another one writes is garbage; `memory` may have one array several times."""
    copies = {id(m): m.copy() for m in memory}
    first = Emulator([copies[id(m)] for m in memory], blocks, threads, wave, asked_bytes)
    first.run(kernel)
    Emulator(memory, blocks, threads, wave, asked_bytes, first.writers[: len(memory)]).run(kernel)

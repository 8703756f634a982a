"""Writes the body of one GPU kernel in MLIR's gpu, arith, scf and llvm dialects.

Addresses are LLVM pointers in memory space 1 (global) and 3 (shared): strides are known, so a memref would say nothing more. Positions are
integers of one width for a kernel, unsigned, 32 bits wherever all offsets fit; Python ints are constants and are folded.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from torch_mlir import ir

Value = Any
"""An `ir.Value`, or in arithmetic on positions a Python int."""
GLOBAL, SHARED, _CLUSTER_SHARED = 1, 3, 7
_BUILT = ["arith", "gpu", "llvm", "math", "nvvm", "scf"]
"""MLIR's dialects of a kernel; a context with all that there are takes longer to make."""
APPROXIMATE = "llvm.approximate."
"""Before the names of intrinsics that `lower` chooses for a vendor."""
AWAITING = "llvm.await.kernel"
"""The intrinsic that stands for waiting for the kernel in front."""
_AND_XOR = (0xF0 & 0xCC) ^ 0xAA
"""What `lop3` computes of its operands a, b and c: the same of these three numbers, `(a & b) ^ c`."""
_SHARED_SYMBOL = "shared_memory"
_PREDICATES = {"eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9}
_FLOAT_PREDICATES = {"oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "une": 13, "uno": 14}


class KernelBuilder:
    """The insertion point and vocabulary of one kernel; used inside `build_module`.

    Attributes:
        arguments: pointers to the tensors.
        rounds_to_float8: as of the architecture.
    """

    def __init__(self, wide: bool, module: Any, rounds_to_float8: bool) -> None:
        self.rounds_to_float8 = rounds_to_float8
        self._module, self._tables = module, set[str]()
        self.i1, self.i8, self.i16, self.i32, self.i64 = (ir.IntegerType.get_signless(n) for n in (1, 8, 16, 32, 64))
        self.f16, self.bf16, self.f32, self.f64 = (
            ir.F16Type.get(),
            ir.BF16Type.get(),
            ir.F32Type.get(),
            ir.F64Type.get(),
        )
        self.position_type = self.i64 if wide else self.i32
        self.arguments: list[Value] = []

    # -- operations -----------------------------------------------------------------------------------------------

    def op(self, name: str, operands: Sequence[Value], result: Any = None, **attributes: Any) -> Value:
        """One operation with at most one result."""
        made = ir.Operation.create(
            name, results=[] if result is None else [result], operands=list(operands), attributes=attributes
        )
        return None if result is None else made.results[0]

    def same(self, name: str, *operands: Value) -> Value:
        """An operation whose result has its operands' type."""
        return self.op(name, operands, operands[0].type)

    def constant(self, number: float, kind: Any) -> Value:
        """A constant of a float or integer type; integers wrap."""
        if isinstance(kind, ir.IntegerType):
            width = kind.width
            number = int(number) & ((1 << width) - 1)
            if width > 1 and number >> (width - 1):
                number -= 1 << width
            attribute = ir.IntegerAttr.get(kind, number)
        else:
            attribute = ir.FloatAttr.get(kind, float(number))
        return self.op("arith.constant", [], kind, value=attribute)

    def intrinsic(self, name: str, *operands: Value) -> Value:
        """An intrinsic of LLVM that every backend has; its name is completed by the type.

        The math dialect would do, but its conversion for NVIDIA calls libdevice.
        """
        return self._call(f"llvm.{name}.{operands[0].type}", *operands)

    def approximate(self, name: str, x: Value) -> Value:
        """One instruction of the GPU on an f32: `exp2`, `log2`, `reciprocal` or `rsqrt`.

        Errors are at most 2^-22 of the result (of `log2` between 1/2 and 2: 2^-22). Numbers below 2^-126 count as 0 and become 0.
        """
        return self._call(APPROXIMATE + name, x)

    def nearest_float8(self, name: str, x: Value) -> Value:
        """The code of the nearest float of 8 bits (`e4m3`, `e5m2`) of an f32, as i8: the greatest one of what is greater, and a NaN of NaN.

        For architectures that have an instruction for it, which is NVIDIA's.
        """
        pair = self._call(f"llvm.nvvm.ff.to.{name}x2.rn", self.constant(0.0, self.f32), x, result=self.i16)
        return self.op("arith.trunci", [pair], self.i8)

    def _call(self, name: str, *operands: Value, result: Any = None) -> Value:
        return self.op(
            "llvm.call_intrinsic",
            operands,
            result or operands[0].type,
            intrin=ir.StringAttr.get(name),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )

    def compare(self, predicate: str, a: Value, b: Value) -> Value:
        """An i1 from integers (`slt`, `ult`, ...) or floats (`olt`, `une`, ...)."""
        if predicate in _FLOAT_PREDICATES:
            number, name = _FLOAT_PREDICATES[predicate], "arith.cmpf"
        else:
            number, name = _PREDICATES[predicate], "arith.cmpi"
        return self.op(name, [a, b], self.i1, predicate=ir.IntegerAttr.get(self.i64, number))

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """`a` where the condition holds, else `b`."""
        return self.op("arith.select", [condition, a, b], a.type)

    # -- positions ------------------------------------------------------------------------------------------------

    def at(self, value: Value) -> Value:
        """A position as an SSA value."""
        return self.constant(value, self.position_type) if isinstance(value, int) else value

    def add(self, *terms: Value) -> Value:
        """Sum of positions."""
        known = sum(term for term in terms if isinstance(term, int))
        total: Value = None
        for term in terms:
            if not isinstance(term, int):
                total = term if total is None else self.same("arith.addi", total, term)
        if total is None:
            return known
        return self.same("arith.addi", total, self.at(known)) if known else total

    def sub(self, a: Value, b: Value) -> Value:
        """Difference of positions, which may be negative."""
        if isinstance(b, int):
            return self.add(a, -b)
        return self.same("arith.subi", self.at(a), b)

    def mul(self, a: Value, b: Value) -> Value:
        """Product of positions."""
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int) or (isinstance(b, int) and b in (0, 1)):
            return a * b if isinstance(a, int) else (0 if b == 0 else a)
        return self.same("arith.muli", a, self.at(b))

    def div(self, a: Value, b: int) -> Value:
        """Unsigned quotient."""
        if isinstance(a, int):
            return a // b
        return a if b == 1 else self.same("arith.divui", a, self.at(b))

    def mod(self, a: Value, b: int) -> Value:
        """Unsigned remainder."""
        if isinstance(a, int):
            return a % b
        return 0 if b == 1 else self.same("arith.remui", a, self.at(b))

    def least(self, a: Value, b: int) -> Value:
        """The lesser of two unsigned positions."""
        return min(a, b) if isinstance(a, int) else self.same("arith.minui", a, self.at(b))

    def less(self, a: Value, b: Value) -> Value:
        """Whether an unsigned position is less than another."""
        return self.compare("ult", self.at(a), self.at(b))

    def coordinates(self, linear: Value, dims: Sequence[int]) -> list[Value]:
        """Coordinates of a position in C order; the first is not reduced by its size."""
        found: list[Value] = []
        for size in reversed(dims[1:]):
            found.insert(0, self.mod(linear, size))
            linear = self.div(linear, size)
        return [linear, *found] if dims else []

    def dot(self, coordinates: Sequence[Value], strides: Sequence[int]) -> Value:
        """Offset of coordinates."""
        return self.add(*(self.mul(c, s) for c, s in zip(coordinates, strides, strict=True)))

    # -- threads --------------------------------------------------------------------------------------------------

    def thread(self) -> Value:
        """This thread's number in its block."""
        return self._id("gpu.thread_id")

    def block(self) -> Value:
        """This block's number in the grid."""
        return self._id("gpu.block_id")

    def _id(self, name: str, dim: str = "x") -> Value:
        number = self.op(name, [], ir.IndexType.get(), dimension=ir.Attribute.parse(f"#gpu<dim {dim}>"))
        return self.op("arith.index_cast", [number], self.position_type)

    def once_read(self, position: Value, word: Value) -> Value:
        """A position as it is, but not known before a word of 32 bits has come from memory: what is read there is asked for then."""
        zero = self._id("gpu.block_id", "y")  # of grids of one dim, which compilers do not know
        wide = self.op("arith.extui", [word], self.i64) if self.position_type == self.i64 else word
        return self.add(position, self.same("arith.andi", wide, zero))

    def barrier(self) -> None:
        """Wait for the block's other threads; all of them come here."""
        self.op("gpu.barrier", [])

    def cluster_barrier(self) -> None:
        """Wait for all threads of the cluster, which then see what each wrote to global memory; all come here. For NVIDIA's GPUs."""
        self.cluster_arrive()
        self.cluster_await()

    def cluster_arrive(self) -> None:
        """Tell the cluster that this thread is here; all come here, and to `cluster_await` before the next one."""
        self._effect("llvm.nvvm.barrier.cluster.arrive")

    def cluster_await(self) -> None:
        """Wait until all threads of the cluster have arrived."""
        self._effect("llvm.nvvm.barrier.cluster.wait")

    def await_kernel(self) -> None:
        """Wait for the kernel in front here, not at the beginning: what is loaded before is constant. For GPUs that wait in kernels."""
        self._effect(AWAITING)

    def copy_ahead(self, to: Value, to_offset: Value, from_: Value, from_offset: Value) -> None:
        """Begin to copy 16 bytes from global to shared memory, both aligned to that; offsets count 16 bytes. For NVIDIA's GPUs."""
        line = ir.VectorType.get([4], self.i32)
        pointers = self.address(to, to_offset, line), self.address(from_, from_offset, line)
        self._effect("llvm.nvvm.cp.async.cg.shared.global.16", *pointers)

    def end_copies(self) -> None:
        """What this thread began to copy since the last end is one group."""
        self._effect("llvm.nvvm.cp.async.commit.group")

    def await_copies(self, pending: int) -> None:
        """Wait until this thread has at most so many groups of copies under way; a barrier shows others what was copied."""
        self._effect("llvm.nvvm.cp.async.wait.group", self.constant(pending, self.i32))

    def byte_of(self, word: Value, place: int) -> Value:
        """A signed byte of a word, as i32. For NVIDIA's GPUs, which do it with one instruction."""
        selected = place | sum((place | 8) << 4 * at for at in range(1, 4))  # 8: the sign of a byte
        return self.bytes_of(word, self.constant(0, self.i32), selected)

    def bytes_of(self, first: Value, second: Value, selected: int) -> Value:
        """Four of the eight bytes of two words, each named by four bits of `selected`. For NVIDIA's GPUs."""
        return self._call("llvm.nvvm.prmt", first, second, self.constant(selected, self.i32))

    def masked_xor(self, word: Value, mask: int, bits: int) -> Value:
        """`(word & mask) ^ bits` of 32 bits as one instruction, where the assembler of PTX makes two. For NVIDIA's GPUs."""
        text = f"lop3.b32 $0, $1, {mask:#x}, {bits:#x}, {_AND_XOR:#x};"
        parts = {"asm_string": ir.StringAttr.get(text), "constraints": ir.StringAttr.get("=r,r")}
        return self.op("llvm.inline_asm", [word], self.i32, **parts)

    def units_products(self, form: str, kind: Any, operands: Sequence[Value], sums: Sequence[Value]) -> list[Value]:
        """Sums of products by matrix units, with the sums so far, four of a type to a lane; `form` is that of `mma`. For NVIDIA's GPUs."""
        made = self.op(
            "llvm.call_intrinsic",
            [*operands, *sums],
            ir.Type.parse(f"!llvm.struct<({', '.join([str(kind)] * len(sums))})>"),
            intrin=ir.StringAttr.get(f"llvm.nvvm.mma.{form}"),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands) + len(sums), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )
        places = map(ir.DenseI64ArrayAttr.get, ([place] for place in range(len(sums))))
        return [self.op("llvm.extractvalue", [made], kind, position=place) for place in places]

    def _effect(self, name: str, *operands: Value) -> None:
        """An intrinsic without a result."""
        self.op(
            "llvm.call_intrinsic",
            operands,
            intrin=ir.StringAttr.get(name),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        )

    def shuffle(self, value: Value, offset: int, width: int, mode: str = "xor") -> Value:
        """The value of another thread; all threads of the wave come here.

        Args:
            value: what each thread gives.
            offset: says which thread's to take.
            width: threads of a wave.
            mode: that whose number differs in the bit `offset` (`xor`), lies `offset` below (`up`), or is `offset` (`idx`).
        """
        kind = value.type
        bits = _width(kind)
        if bits == 64:
            return self._shuffle_halves(value, offset, width, mode)
        number = self.op("arith.bitcast", [value], self.i32) if kind == self.f32 else value
        if bits < 32:
            number = self.op("arith.extui", [number], self.i32)
        made = ir.Operation.create(
            "gpu.shuffle",
            results=[self.i32, self.i1],
            operands=[number, self.constant(offset, self.i32), self.constant(width, self.i32)],
            attributes={"mode": ir.Attribute.parse(f"#gpu<shuffle_mode {mode}>")},
        ).results[0]
        if bits < 32:
            return self.op("arith.trunci", [made], kind)
        return self.op("arith.bitcast", [made], kind) if kind == self.f32 else made

    def _shuffle_halves(self, value: Value, offset: int, width: int, mode: str) -> Value:
        bits = self.op("arith.bitcast", [value], self.i64) if value.type == self.f64 else value
        half = self.constant(32, self.i64)
        low = self.op("arith.trunci", [bits], self.i32)
        high = self.op("arith.trunci", [self.same("arith.shrui", bits, half)], self.i32)
        low, high = (
            self.op("arith.extui", [self.shuffle(part, offset, width, mode)], self.i64) for part in (low, high)
        )
        joined = self.same("arith.ori", low, self.same("arith.shli", high, half))
        return self.op("arith.bitcast", [joined], self.f64) if value.type == self.f64 else joined

    # -- control flow ---------------------------------------------------------------------------------------------

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """Operations that run only where a condition holds."""
        made = ir.Operation.create("scf.if", operands=[condition], regions=2)
        with ir.InsertionPoint(made.regions[0].blocks.append()):
            yield
            self.op("scf.yield", [])

    def choose(
        self,
        condition: Value,
        then: Callable[[], list[Value]],
        otherwise: Callable[[], list[Value]],
        kinds: Sequence[Any],
    ) -> list[Value]:
        """One of two lists of values; only the one that is chosen is computed."""
        made = ir.Operation.create("scf.if", results=list(kinds), operands=[condition], regions=2)
        for region, make in zip(made.regions, (then, otherwise), strict=True):
            with ir.InsertionPoint(region.blocks.append()):
                self.op("scf.yield", make())
        return list(made.results)

    def loop(
        self,
        start: Value,
        stop: Value,
        step: int,
        initial: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Carry values through a loop over positions from `start` to before `stop`."""
        made = ir.Operation.create(
            "scf.for",
            results=[value.type for value in initial],
            operands=[self.at(start), self.at(stop), self.at(step), *initial],
            regions=1,
        )
        block = made.regions[0].blocks.append(self.position_type, *(value.type for value in initial))
        with ir.InsertionPoint(block):
            carried = list(body(block.arguments[0], list(block.arguments)[1:]))
            self.op("scf.yield", carried)
        return list(made.results)

    def share_out(self, count: int, thread: Value, threads: int, body: Callable[[Value], None]) -> None:
        """Have a block's threads go through the positions below `count`, one each at a time."""

        def one(start: Value, _: list[Value]) -> list[Value]:
            place = self.add(start, thread)
            if count % threads:
                with self.when(self.less(place, count)):
                    body(place)
            else:
                body(place)
            return []

        self.loop(0, count, threads, [], one)

    # -- memory ---------------------------------------------------------------------------------------------------

    def address(self, base: Value, offset: Value, kind: Any) -> Value:
        """Pointer to element `offset`, an unsigned position, of elements of a type."""
        offset = self.at(offset)
        if offset.type == self.i32:
            offset = self.op("arith.extui", [offset], self.i64)
        return self.op(
            "llvm.getelementptr",
            [base, offset],
            base.type,
            elem_type=ir.TypeAttr.get(kind),
            rawConstantIndices=ir.DenseI32ArrayAttr.get([-(2**31)]),
        )

    def integer_of(self, pointer: Value) -> Value:
        """The address as a number."""
        return self.op("llvm.ptrtoint", [pointer], self.i64)

    def shared(self, offset_bytes: int) -> Value:
        """Pointer into the block's shared memory."""
        kind = ir.Type.parse(f"!llvm.ptr<{SHARED}>")
        base = self.op("llvm.mlir.addressof", [], kind, global_name=ir.FlatSymbolRefAttr.get(_SHARED_SYMBOL))
        return self.address(base, offset_bytes, self.i8)

    def shared_of(self, base: Value, number: int) -> Value:
        """What a pointer into shared memory is in a block of the cluster, which has begun and has not ended. For NVIDIA's GPUs."""
        kind = ir.Type.parse(f"!llvm.ptr<{_CLUSTER_SHARED}>")
        return self._call("llvm.nvvm.mapa.shared.cluster", base, self.constant(number, self.i32), result=kind)

    def table(self, name: str, numbers: np.ndarray[Any, Any]) -> Value:
        """Pointer to numbers that are part of the code; the same name is the same table."""
        kind = {"float32": "f32", "float64": "f64"}.get(numbers.dtype.name) or f"i{numbers.itemsize * 8}"
        if name not in self._tables:
            self._tables.add(name)
            content = ir.DenseElementsAttr.get(numbers, type=ir.Type.parse(kind))
            made = ir.Operation.parse(
                f"llvm.mlir.global internal constant @{name}({content}) "
                f"{{addr_space = {GLOBAL} : i32, alignment = 16 : i64}} : !llvm.array<{numbers.size} x {kind}>"
            )
            ir.InsertionPoint.at_block_begin(self._module).insert(made)
        pointer = ir.Type.parse(f"!llvm.ptr<{GLOBAL}>")
        return self.op("llvm.mlir.addressof", [], pointer, global_name=ir.FlatSymbolRefAttr.get(name))

    def load(self, base: Value, offset: Value, kind: Any, count: int = 1) -> list[Value]:
        """`count` adjacent elements in one access, aligned to its size."""
        pointer = self.address(base, offset, kind)
        alignment = ir.IntegerAttr.get(self.i64, count * _width(kind) // 8)
        if count == 1:
            return [self.op("llvm.load", [pointer], kind, alignment=alignment)]
        vector = self.op("llvm.load", [pointer], ir.VectorType.get([count], kind), alignment=alignment)
        return [self.op("llvm.extractelement", [vector, self.constant(i, self.i32)], kind) for i in range(count)]

    def store(self, base: Value, offset: Value, values: Sequence[Value]) -> None:
        """Write adjacent elements in one access, aligned to its size."""
        kind, count = values[0].type, len(values)
        pointer = self.address(base, offset, kind)
        alignment = ir.IntegerAttr.get(self.i64, count * _width(kind) // 8)
        whole = values[0]
        if count > 1:
            whole = self.op("llvm.mlir.poison", [], ir.VectorType.get([count], kind))
            for i, value in enumerate(values):
                whole = self.op("llvm.insertelement", [whole, value, self.constant(i, self.i32)], whole.type)
        self.op("llvm.store", [whole, pointer], alignment=alignment)


def _width(kind: Any) -> int:
    return int(kind.width)


def build_module(
    name: str,
    pointers: int,
    threads: int,
    shared_bytes: int,
    asks_for_shared: bool,
    wide: bool,
    body: Callable[[KernelBuilder], None],
    rounds_to_float8: bool = False,
    limits: Sequence[str] = (),
) -> Any:
    """A module with one `gpu.module` of one kernel.

    Args:
        name: the kernel's.
        pointers: how many tensors it has as arguments.
        threads: of a block.
        shared_bytes: of a block's shared memory.
        asks_for_shared: as of a `GpuKernel`.
        wide: whether positions need 64 bits.
        body: writes the kernel.
        rounds_to_float8: as of the architecture.
        limits: attributes of the function about its blocks, beside their threads.
    """
    context = ir.Context(_BUILT)
    with context, ir.Location.unknown():
        arguments = ", ".join(f"%a{i}: !llvm.ptr<{GLOBAL}>" for i in range(pointers))
        linkage, declared = ("external", 0) if asks_for_shared else ("internal", shared_bytes)
        shared = (
            f"llvm.mlir.global {linkage} @{_SHARED_SYMBOL}() {{addr_space = {SHARED} : i32, alignment = 16 : i64}} : "
            f"!llvm.array<{declared} x i8>"
        )
        attributes = ", ".join([f"known_block_size = array<i32: {threads}, 1, 1>", *limits])
        module = ir.Module.parse(f"""
            gpu.module @kernels {{
              {shared if shared_bytes else ""}
              gpu.func @{name}({arguments}) kernel attributes {{{attributes}}} {{
                gpu.return
              }}
            }}""")
        function = list(module.body.operations[0].operation.regions[0].blocks[0].operations)[-1].operation
        block = function.regions[0].blocks[0]
        builder = KernelBuilder(wide, module.body.operations[0].operation.regions[0].blocks[0], rounds_to_float8)
        builder.arguments = list(block.arguments)
        with ir.InsertionPoint(block.operations[0]):
            body(builder)
    return module

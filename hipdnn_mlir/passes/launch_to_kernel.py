"""hipdnn-launch-to-kernel: launches on buffers become calls of kernels; equal ones share one `hipdnn.kernel`."""

from collections.abc import Collection
from math import gcd

from torch_mlir import ir

from hipdnn_mlir_runtime.errors import PassError, Reject, UnsupportedError

from ..ir.blocks import functions, operations
from ..ir.buffers import storage
from ..ir.copies import copied_operands, is_strided
from ..ir.dialect import LaunchKernelOp, LaunchOp, create_call
from ..ir.kernels import create_kernel
from ..ir.module_pass import module_pass
from ..ir.region import region_kernel
from ..ir.view import node_name
from ..ir.views import base
from ..ops.kernels import Kernel, KernelTensor
from ..targets.table import find_target
from ..targets.target import Target

ALIGNMENT = 16
"""Bytes: what every buffer's address is a multiple of."""


@module_pass("hipdnn-launch-to-kernel")
def launch_to_kernel(module: ir.Operation, *, target: str = "host") -> None:
    """Describe every launch with the strides its buffers have and replace it by a call of a kernel named after the description's digest.

    An operand whose strides the kernel cannot take is copied to C order first.

    Before: `hipdnn.launch ins(%data, %indices) outs(%y) ({...})` on memrefs.
    After: `"hipdnn.kernel"() {sym_name = "k_...", description = "{...}"}` once, and
    `hipdnn.launch_kernel @k_... ins(%data, %indices) outs(%y)`.

    Args:
        module: the module operation.
        target: whose port has the kernels.
    """
    library = find_target(target)
    made: dict[str, list[str]] = {}
    for function in functions(module):
        written = {base(out) for op in operations(function) for out in getattr(op, "outs", ())}
        for op in operations(function):
            if isinstance(op, LaunchOp):
                _compile(module, op, library, made, written)


def _compile(
    module: ir.Operation, launch: LaunchOp, target: Target, made: dict[str, list[str]], written: Collection[ir.Value]
) -> None:
    kernel = _described(launch)
    if isinstance(kernel, Reject):
        for copy in copied_operands(launch, is_strided):
            if isinstance(copy, LaunchOp):  # a copy that is a graph waits for its own pass
                _compile(module, copy, target, made, written)
        kernel = _described(launch)
    if isinstance(kernel, Reject):
        raise PassError(f"a region that a kernel should compute does not compile: {kernel}")
    refusal = target.refuses_kernel(kernel)
    if refusal is not None:
        raise UnsupportedError([Reject(kernel.summary(), "kernel", refusal, node_name(launch))])
    alignments = [_alignment(launch, tensor) for tensor in kernel.tensors]
    symbol = f"k_{kernel.digest()}"
    if target.architecture is not None and min(alignments) < ALIGNMENT:  # code is written for the alignment
        symbol += "_" + "_".join(map(str, alignments))
    settled = _settled(launch, kernel, written) if target.architecture is not None else []
    if settled:
        symbol += "_early_" + "_".join(map(str, settled))
    if symbol not in made:
        made[symbol] = _kernels(module, symbol, kernel, alignments, settled, launch, target)
    with ir.InsertionPoint(launch):
        for name in made[symbol]:
            create_call(LaunchKernelOp, name, launch.ins, launch.outs, launch.location)
    launch.erase()


def _described(launch: LaunchOp) -> Kernel | Reject:
    return region_kernel(launch, list(map(storage, launch.ins)), list(map(storage, launch.outs)))


def _alignment(launch: LaunchOp, tensor: KernelTensor) -> int:
    """Bytes, at most ALIGNMENT, that the address of a kernel's tensor is a multiple of: buffers are, what a view skips may not be."""
    value = (launch.ins if tensor.role == "in" else launch.outs)[tensor.index]
    return gcd(ALIGNMENT, (storage(value).offset + tensor.offset) * tensor.dtype.numpy.itemsize)


def _settled(launch: LaunchOp, kernel: Kernel, written: Collection[ir.Value]) -> list[int]:
    """Numbers of a kernel's tensors that are arguments of the program and nothing writes, where its code asks for that."""
    from ..codegen import READS_EARLY

    if kernel.function not in READS_EARLY:
        return []
    values = [base(value) for value in launch.ins]
    given = [isinstance(value, ir.BlockArgument) and value not in written for value in values]
    return [number for number, t in enumerate(kernel.tensors) if t.role == "in" and given[t.index]]


def _kernels(
    module: ir.Operation,
    symbol: str,
    kernel: Kernel,
    alignments: list[int],
    settled: list[int],
    launch: LaunchOp,
    target: Target,
) -> list[str]:
    """Create the kernel, as several of the same tensors where code for a GPU is several launches; returns their symbols in order."""
    operands = [{"role": t.role, "index": t.index, "offset": t.offset} for t in kernel.tensors]
    description = kernel.description()
    described = {symbol: description}
    overwrites: tuple[int, ...] = ()
    if target.architecture is not None:
        from ..codegen import generate
        from ..codegen.program_kernels import generated_code

        made = generated_code(
            lambda architecture: generate(description, architecture, alignments, settled),
            target.architecture,
            range(len(kernel.tensors)),
            launch,
        )
        (*before, last), overwrites = made.launches, made.overwrites
        described = {f"{symbol}_{number}": {**description, "code": code} for number, code in enumerate(before)}
        described[symbol] = {**description, "code": last}
    for name, found in described.items():
        create_kernel(module, name, kernel.summary(), operands, found, launch, overwrites)
    return list(described)

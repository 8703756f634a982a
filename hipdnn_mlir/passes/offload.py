"""hipdnn-offload: outline every maximal region that one engine of the target takes as a `hipdnn.graph`."""

from torch_mlir import ir
from torch_mlir.dialects import func

from ..ir.blocks import operations, public_functions
from ..ir.claims import Graphs, is_dequantization, is_widened, joins
from ..ir.module_pass import module_pass
from ..ir.outlining import outline
from ..ir.view import readers
from ..targets.table import find_target


@module_pass("hipdnn-offload")
def offload(module: ir.Operation, *, target: str = "host") -> None:
    """Group torch ops into `hipdnn.graph` regions: an op joins its producers' regions as long as an engine takes the whole.

    The test is a dry run of the emission that later compiles the region, checked against the target's engine tables. Constants are cloned
    inside. What no engine takes stays where it is. Bytes are dequantized again for each op that reads them, so that regions exchange bytes;
    for GPUs, floats of 16 bits are widened again.

    Before: `%y = torch.aten.convolution %x, %w, ...`; `%z = torch.aten.relu %y`.
    After: `%z = hipdnn.graph ins(%x, %w) ({ ^bb0(%a, %b): ...convolution...; ...relu...; hipdnn.yield %r })`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in public_functions(module):
        _repeat_widening(function, floats=library.architecture is not None)
        outline(function, Graphs(library))


def _repeat_widening(function: func.FuncOp, *, floats: bool) -> None:
    """Give each reader of a Dequantize one of its own, and with `floats` each op of hipDNN that reads widened floats."""
    for op in operations(function):
        if is_dequantization(op):
            reading = list(dict.fromkeys(readers(op.result)))
        elif floats and is_widened(op):
            reading = [reader for reader in dict.fromkeys(readers(op.result)) if joins(reader)]
        else:
            continue
        for reader in reading[1:]:
            with ir.InsertionPoint(reader):
                again = op.operation.clone().results[0]
            for place, value in enumerate(reader.operands):
                if value == op.result:
                    reader.operands[place] = again

"""hipdnn-offload: outline every maximal region that one engine of the target takes as a `hipdnn.graph`."""

from torch_mlir import ir

from ..ir.blocks import public_functions
from ..ir.claims import Graphs
from ..ir.module_pass import module_pass
from ..ir.outlining import outline
from ..targets.table import find_target


@module_pass("hipdnn-offload")
def offload(module: ir.Operation, *, target: str = "host") -> None:
    """Group torch ops into `hipdnn.graph` regions: an op joins its producers' regions as long as an engine takes the whole.

    The test is a dry run of the emission that later compiles the region, checked against the target's engine tables. Constants are cloned
    inside. What no engine takes stays where it is.

    Before: `%y = torch.aten.convolution %x, %w, ...`; `%z = torch.aten.relu %y`.
    After: `%z = hipdnn.graph ins(%x, %w) ({ ^bb0(%a, %b): ...convolution...; ...relu...; hipdnn.yield %r })`.

    Args:
        module: the module operation.
        target: whose engines to ask.
    """
    library = find_target(target)
    for function in public_functions(module):
        outline(function, Graphs(library))

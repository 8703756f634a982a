"""hipdnn-outline-launches: what hipDNN has no operation for becomes `hipdnn.launch` regions, one kernel each."""

from torch_mlir import ir

from ..ir.blocks import public_functions
from ..ir.claims import Launches
from ..ir.module_pass import module_pass
from ..ir.outlining import outline
from ..targets.table import find_target


@module_pass("hipdnn-outline-launches")
def outline_launches(module: ir.Operation, *, target: str = "host") -> None:
    """Group the ops that hipdnn-offload left into `hipdnn.launch` regions: elementwise ones as far as one kernel can, others alone.

    Before: `%y = torch.aten.bitwise_and.Tensor %x, %m`; `%z = torch.aten.bitwise_not %y`.
    After: `%z = hipdnn.launch ins(%x, %m) ({ ^bb0(%a, %b): ...bitwise_and...; ...bitwise_not...; hipdnn.yield %r })`.

    Args:
        module: the module operation.
        target: whose port has the kernels.
    """
    library = find_target(target)
    for function in public_functions(module):
        outline(function, Launches(library))

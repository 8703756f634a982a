"""hipdnn-outline-launches: what hipDNN has no operation for becomes `hipdnn.launch` regions, one kernel each."""

from dataclasses import dataclass
from typing import Any

from hipdnn_mlir.errors import Reject
from hipdnn_mlir.ops.emitter import Operand
from hipdnn_mlir.ops.kernels import is_map, kernel_region
from hipdnn_mlir.ops.spec import OpView, Pad, TensorType, moves
from hipdnn_mlir.target import Target, find_target

from .outlining import Found, Region, outline
from .registration import functions, module_pass


@module_pass("hipdnn-outline-launches")
def outline_launches(module: Any, *, target: str = "host") -> None:
    """Group the ops that hipdnn-offload left into `hipdnn.launch` regions: elementwise ones as far as one map computes them, others alone.

    Before: `%y = torch.aten.bitwise_and.Tensor %x, %m`; `%z = torch.aten.bitwise_not %y`.
    After: `%z = "hipdnn.launch"(%x, %m) ({ ^bb0(%a, %b): ...bitwise_and...; ...bitwise_not...; "hipdnn.yield"(%r) })`.

    Args:
        module: the module operation.
        target: whose port has the kernels.
    """
    library = find_target(target)
    for function in functions(module):
        if "sym_visibility" not in function.attributes:
            outline(function, Launches(library))


@dataclass(frozen=True)
class Launches:
    """Regions that one kernel of a target computes."""

    target: Target
    operation: str = "hipdnn.launch"
    writes_all: bool = True
    looks_ahead: bool = False

    def joins(self, found: Found) -> bool:
        """Ops with a kernel that no view shows; on GPUs a border is one launch rather than a fill and a copy."""
        row, op = found
        if row.call is None and not is_map(row.name):
            return False
        if not moves(row, op):
            return True
        return self.target.architecture is not None and row.move is not None and isinstance(row.move(op), Pad)

    def absorbs(self, _: Found) -> bool:
        """Nothing."""
        return False

    def is_second_choice(self, _: Region) -> bool:
        """Never: kernels are equals."""
        return False

    def take(
        self,
        pairs: list[tuple[OpView, list[Any]]],
        operands: dict[Any, Operand],
        results: list[tuple[Any, TensorType]],
    ) -> dict[str, Any] | Reject:
        """Dry-run the kernel's description and look for its function at the target."""
        kernel = kernel_region(pairs, operands, results)
        if isinstance(kernel, Reject):
            return kernel
        if kernel.function not in self.target.kernels:
            op = pairs[-1][0]
            return Reject(op.label, "kernel", f"target {self.target.name} has no {kernel.function} kernel", op.node)
        return {}

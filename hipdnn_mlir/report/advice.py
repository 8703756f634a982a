"""What would change the verdict on a node that is left out."""

from collections.abc import Sequence

from hipdnn_mlir_runtime.errors import NO_ROW, Reject

from ..frontend.decompositions.random_numbers import RANDOM
from ..frontend.shape_inference import DATA_DEPENDENT

NEW_OPERATOR = "write its operator in Python (docs/extending.md)"
_ADVICE = {
    "torch-mlir": f"export the model with another opset, or {NEW_OPERATOR}",
    "subgraph": "export the model without control flow, or run it in ONNX Runtime with this provider",
    "dtype": "export the model with another type of elements, such as float32",
    "cost": "run it with placement=maximal",
    "plan": "compile for what the library here takes, or update the library",
    "operand": "make the operand a constant of the model",
    "compiled": "place the original model",
    RANDOM: "give the node the attribute seed",
}


def advice(
    reject: Reject, taken_by: Sequence[str], symbols: Sequence[str] = (), *, new_operator: str = NEW_OPERATOR
) -> str:
    """One clause, or several joined by "or"; empty where nothing is known.

    Args:
        reject: of a node.
        taken_by: other targets that take the node.
        symbols: names of the model's dynamic dimensions.
        new_operator: what helps where the op table has no row for the operator.
    """
    known = [f"compile with --target {' or '.join(taken_by)}"] if taken_by else []
    if reject.rule == DATA_DEPENDENT:
        static = f"make dimensions static: {' '.join(f'--shape {name}=SIZE' for name in symbols)}"
        of_data = "run the model in ONNX Runtime, which computes shapes as it goes"
        known.append(static if symbols and "depends on data" not in reject.reason else of_data)
    elif reject.rule == "dtype" and "f64" in reject.reason:
        known.append("export the model in float32")
    elif reject.rule in {NO_ROW, "function"}:
        known.append(new_operator)
    elif reject.rule in _ADVICE:
        known.append(_ADVICE[reject.rule])
    return ", or ".join(known)

"""What cuDNN's fused engines take, as cuDNN's documentation states it and as far as it was tried (docs/cuda.md)."""

from dataclasses import dataclass

from ..abi import Attribute as A
from ..dtypes import BF16, F16, F32
from ..ops.graph import Graph
from .rules import ATTENTION

_FEATURE_MULTIPLE, _MOST_FEATURES = 8, 128
_KEY_MULTIPLE = 8
"""Of keys beside a mask, whose rows are read in wide accesses."""


@dataclass(frozen=True)
class FusedAttention:
    """One attention of f16 or bf16 with heads of up to 128 features, and a mask that is added."""

    def refuses(self, graph: Graph) -> str | None:
        """Why the graph is not taken, or None."""
        if len(graph.nodes) != 1 or graph.nodes[0].type != ATTENTION:
            return "takes one attention"
        (node,) = graph.nodes
        query, key, value, *masks = (graph.tensors[index] for index in node.inputs.values())
        output = graph.tensors[node.outputs[A.OPERATION_SDPA_FWD_ODESC]]
        if query.dtype not in (F16, BF16):
            return f"has attention of {query.dtype}"
        for tensor in (query, key, value, output):
            features = tensor.dims[3]
            if features % _FEATURE_MULTIPLE or features > _MOST_FEATURES:
                return f"has heads of {features} features: expected a multiple of {_FEATURE_MULTIPLE} up to {_MOST_FEATURES}"
            if tensor.strides[3] != 1:
                return "has features that are not adjacent"
        for mask in masks:
            if mask.dtype not in (query.dtype, F32):
                return f"has a mask of {mask.dtype}"
            if mask.dims[3] != key.dims[2] or mask.dims[3] % _KEY_MULTIPLE or mask.strides[3] != 1:
                return f"has a mask of dims {list(mask.dims)} with strides {list(mask.strides)} for {key.dims[2]} keys"
        return None

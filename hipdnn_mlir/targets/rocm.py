"""What the engines of AMD's hipDNN providers take, as their sources state it.

A graph is brought into a provider's form first (`rocm_forms`). Where two published versions of a provider differ, a graph has to please
both. `sources` of a rule names the files that it follows. A provider asks its library at run time too (is there a kernel for these sizes?);
that is no rule, and not here. Nor is what providers take and a generated kernel does as well: docs/amd.md lists it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from hipdnn_mlir_runtime.abi import Attribute as A
from hipdnn_mlir_runtime.abi import DataType
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import BF16, F32

from ..ops.graph import DEFAULT_ALIGNMENT, Graph, Node, Tensor
from .graph_parts import (
    CLIPS,
    FLOATS,
    IMAGE_RANK,
    Refusal,
    breaks_chain,
    counts_or_bounds,
    first_of,
    has_any,
    is_packed,
    mode_of,
    named_tensors,
    other_operand,
    result_of,
    starts_with,
)
from .rules import ATTENTION, BACKWARD_DATA, BATCH_NORM, BATCH_NORMS, CONVOLUTION, MATMUL, RMS_NORM
from .sources import Source

_COUNTED = 2**32
"""Numbers that 32 bits have."""
ENGINE_NAMES = frozenset({
    "MIOPEN_ENGINE", "MIOPEN_ENGINE_DETERMINISTIC", "HIPBLASLT_ENGINE", "HIP_MLOPS_ENGINE", "ASM_SDPA_ENGINE", "HIP_FLASH2_ENGINE",
    "ROCKE_ENGINE",
})  # fmt: skip
"""Every engine that hipDNN registers (projects/hipdnn, data_sdk EngineNames.hpp); an engine's id is a hash of its name."""
PROVIDER_ALIGNMENT = DEFAULT_ALIGNMENT
"""Bytes that the address of every tensor has to be a multiple of, for all providers.

hipDNN takes a graph that states another alignment to plugins of version 1.3 of its interface or newer only, and a pointer that is not
aligned as its tensor says is refused (in the same repository, below projects/hipdnn: plugin_sdk PluginVersionConstants.hpp, backend
EnginePluginResourceManager.cpp). Providers declare 1.0 to 1.2.
"""


@dataclass(frozen=True)
class MiopenConvolution:
    """MIOPEN_ENGINE: a convolution, forward or of the data, alone; forward ones also with (bias and) ReLU. A bias alone is not taken.

    On gfx90a the provider refuses what follows a convolution, where older versions computed it wrongly. MIOpen has kernels for it on
    CDNA alone, and AMD's own tests leave it out on every gfx10, gfx11 and gfx12.

    Attributes:
        architecture: of the GPU.
    """

    architecture: str

    FUSING: ClassVar = frozenset({"gfx942", "gfx950"})
    """Architectures on which a convolution is taken with what follows it."""
    sources: ClassVar = (
        Source(
            "2026-11-24",
            "dnn-providers/miopen-provider",
            (
                "docs/OperationSupport.md",
                "config/MIOPEN_ENGINE.toml",
                "MiopenConvDescriptor.cpp",
                "MiopenUtils.cpp",
                "Workarounds.hpp",
                "engines/plans/MiopenConvPlanBuilder.cpp",
                "engines/plans/MiopenConvFwdBiasActivPlanBuilder.cpp",
                "engines/plans/MiopenConvFwdBiasActivPlan.cpp",
            ),
        ),
    )

    def refuses(self, graph: Graph) -> Refusal:
        """Why the graph is not taken, or None."""
        if not starts_with(graph, CONVOLUTION, BACKWARD_DATA):
            return "starts with no convolution"
        anchor, *rest = graph.nodes
        if rest and anchor.type != CONVOLUTION:
            return "takes a transposed convolution alone"
        if rest and self.architecture not in self.FUSING:
            return f"takes a convolution alone on {self.architecture}"
        return first_of(
            lambda: self._epilogue(graph, rest),
            lambda: self._images(graph, anchor),
            lambda: self._attributes(anchor),
        )

    @staticmethod
    def _epilogue(graph: Graph, rest: Sequence[Node]) -> Refusal:
        modes = tuple(mode_of(node) for node in rest)
        if modes not in ((), (P.RELU_FWD,), (P.ADD, P.RELU_FWD)):
            return "an epilogue is ReLU, or bias and ReLU"
        return (
            breaks_chain(graph)
            or (_not_relu(rest[-1]) if rest else None)
            or (_bias(graph, rest[0]) if len(rest) == 2 else None)
        )

    @staticmethod
    def _images(graph: Graph, anchor: Node) -> Refusal:
        """MIOpen's kernels are for one type and one layout, N C ... or N ... C; the padding of lower ranks is `conform_miopen`'s."""
        tensors = [
            *(graph.tensors[index] for index in anchor.inputs.values()),
            graph.tensors[result_of(graph.nodes[-1])],
        ]
        if {tensor.dtype for tensor in tensors} - FLOATS or len({tensor.dtype for tensor in tensors}) > 1:
            return f"x, w and y of {', '.join(str(tensor.dtype) for tensor in tensors)}"
        if len(tensors[0].dims) not in (4, 5):
            return f"images of {len(tensors[0].dims) - 2} spatial dims"
        return _one_layout(tensors)

    @staticmethod
    def _attributes(anchor: Node) -> Refusal:
        attributes = {name: list(values) for name, _, values in anchor.attributes}
        low, high = attributes[A.CONVOLUTION_PRE_PADDINGS], attributes[A.CONVOLUTION_POST_PADDINGS]
        if low != high or min(low) < 0:
            return "asymmetric or negative padding"
        return None if attributes[A.CONVOLUTION_COMP_TYPE] == [int(DataType.FLOAT)] else "computes in f32 only"


class MiopenBatchNorm:
    """MIOPEN_ENGINE: batch norm of inference, with a variance or an inverse deviation, alone or with ReLU; all but x and y in f32."""

    sources = (
        Source(
            "2026-11-24",
            "dnn-providers/miopen-provider",
            (
                "docs/OperationSupport.md",
                "config/MIOPEN_ENGINE.supported.toml",
                "MiopenUtils.cpp",
                "engines/plans/MiopenBatchnormPlanBuilder.cpp",
                "engines/plans/MiopenBatchnormApplicabilityChecks.cpp",
            ),
        ),
    )

    def refuses(self, graph: Graph) -> Refusal:
        """Why the graph is not taken, or None."""
        if not starts_with(graph, *BATCH_NORMS):
            return "starts with no batch norm"
        norm, *rest = graph.nodes
        if tuple(mode_of(node) for node in rest) not in ((), (P.RELU_FWD,)):
            return "an epilogue is ReLU"
        x, *vectors = (graph.tensors[index] for index in norm.inputs.values() if graph.tensors[index].value is None)
        y = graph.tensors[result_of(graph.nodes[-1])]
        if x.dtype not in FLOATS or x.dtype is not y.dtype or any(vector.dtype is not F32 for vector in vectors):
            return "takes x and y of one float type, scale, bias and statistics of f32"
        if len(x.dims) not in (4, 5):
            return f"images of {len(x.dims) - 2} spatial dims"
        if any(vector.dims != (1, x.dims[1], *(1,) * (len(x.dims) - 2)) for vector in vectors):
            return "scale, bias and statistics are not of the channels"
        kind = A.BATCHNORM_INF_VAR_COMP_TYPE_EXT if norm.type == BATCH_NORM else A.BATCHNORM_INF_COMP_TYPE_EXT
        if norm.get(kind) != int(DataType.FLOAT):
            return "computes in f32 only"
        return breaks_chain(graph) or (_not_relu(rest[0]) if rest else None) or _one_layout([x, y, *vectors])


class HipblasltMatmul:
    """HIPBLASLT_ENGINE: a matmul, alone, with bias, with an activation, or with both."""

    sources = (
        Source(
            "2026-11-24",
            "dnn-providers/hipblaslt-provider",
            (
                "docs/OperationSupport.md",
                "HipblasltUtils.cpp",
                "HipblasltMatrixLayout.cpp",
                "engines/plans/HipblasltMatmulPlanBuilder.cpp",
                "engines/plans/HipblasltMatmulPlan.cpp",
            ),
        ),
    )

    ACTIVATIONS = frozenset({P.RELU_FWD, P.GELU_APPROX_TANH_FWD, P.SWISH_FWD})

    def refuses(self, graph: Graph) -> Refusal:
        """Why the graph is not taken, or None."""
        if not starts_with(graph, MATMUL):
            return "starts with no matmul"
        product, *rest = graph.nodes
        is_biased = bool(rest) and mode_of(rest[0]) == P.ADD
        activations = rest[1:] if is_biased else rest
        if len(activations) > 1 or any(mode_of(node) not in self.ACTIVATIONS for node in activations):
            return "an epilogue is bias, an activation (ReLU, clamp, GELU by tanh, swish), or both"
        return first_of(
            lambda: breaks_chain(graph),
            lambda: self._types(graph),
            lambda: self._activation(activations[0]) if activations else None,
            lambda: self._bias(graph, rest[0]) if is_biased else None,
            lambda: self.layouts(graph, product),
        )

    @staticmethod
    def _types(graph: Graph) -> Refusal:
        kinds = {tensor.dtype for tensor in named_tensors(graph) if not tensor.is_virtual}
        if kinds - FLOATS or len(kinds) > 1:
            return f"tensors of {', '.join(sorted(map(str, kinds)))}"
        product, *rest = graph.nodes
        computes = [product.get(A.MATMUL_COMP_TYPE), *(node.get(A.POINTWISE_MATH_PREC) for node in rest)]
        return None if set(computes) == {int(DataType.FLOAT)} else "computes in f32 only"

    @staticmethod
    def _activation(node: Node) -> Refusal:
        if mode_of(node) == P.SWISH_FWD:
            return None if node.get(A.POINTWISE_SWISH_BETA) == 1.0 else "swish with a factor"
        if mode_of(node) != P.RELU_FWD:
            return None
        low, high = (node.get(name) for name in CLIPS[:2])
        if has_any(node, CLIPS[2:]) or low is None or (high is None and low != 0.0):
            return "takes ReLU and clamps with both limits only"
        return None

    @staticmethod
    def _bias(graph: Graph, node: Node) -> Refusal:
        bias = graph.tensors[other_operand(node, result_of(graph.nodes[0]))]
        columns = graph.tensors[result_of(node)].dims[-1]
        is_row = bias.dims[-1] == columns and prod(bias.dims) == columns and bias.strides[-1] == 1
        return None if is_row and bias.operand is not None else "a bias is one row of the result"

    @staticmethod
    def layouts(graph: Graph, product: Node) -> Refusal:
        """Row-major results, operands of either order, and batches one stride apart: the provider passes on but one, and checks none."""
        a, b = (graph.tensors[product.inputs[name]] for name in (A.OPERATION_MATMUL_ADESC, A.OPERATION_MATMUL_BDESC))
        c, y = (graph.tensors[result_of(node)] for node in (graph.nodes[0], graph.nodes[-1]))
        if not (len(a.dims) == len(b.dims) == len(c.dims) >= 2):
            return "operands of different rank"
        for tensor in (a, b, y):
            rows, columns = tensor.strides[-2:]
            if not (
                _spans(columns, rows, tensor.dims[-1]) or (tensor is not y and _spans(rows, columns, tensor.dims[-2]))
            ):
                return f"a matrix with strides {tensor.strides}"
            if not _is_strided_batch(tensor):
                return f"batches with strides {tensor.strides}"
        batches = [prod(tensor.dims[:-2]) for tensor in (a, b, y)]
        if batches[2] != max(batches[:2]) or min(batches[:2]) not in (1, batches[2]):
            return "batches that broadcast on both sides"
        # The batch stride of the result is read from the product's own tensor, which is virtual where there is an epilogue.
        if batches[2] > 1 and len(y.dims) > 2 and c.strides[-3] != y.strides[-3]:
            return "an epilogue whose result is strided"
        return None


class HipRmsNorm:
    """HIP_MLOPS_ENGINE, the HIP kernel provider: an RMS norm over channels, scale in f32, of fewer elements than 32 bits count.

    Older versions know channels and scales of f32 only. The kernel reads element by element, twice: scales of 16 bits are
    left to generated kernels.
    """

    sources = (
        Source(
            "2026-11-24",
            "dnn-providers/hip-kernel-provider/src/engines/hip_mlops_engine",
            (
                "plans/RMSnorm/RMSnormPlanBuilder.cpp",
                "plans/RMSnorm/RMSnormApplicabilityChecks.cpp",
                "plans/RMSnorm/RMSnormFwdPlan.cpp",
                "kernels/rmsnorm/RMSNormFwd.cpp",
            ),
        ),
    )

    def refuses(self, graph: Graph) -> Refusal:
        """Why the graph is not taken, or None."""
        if not starts_with(graph, RMS_NORM) or len(graph.nodes) != 1:
            return "takes an RMS norm alone"
        node = graph.nodes[0]
        x, scale = (
            graph.tensors[node.inputs[name]] for name in (A.OPERATION_RMSNORM_X_EXT, A.OPERATION_RMSNORM_SCALE_EXT)
        )
        y = graph.tensors[result_of(node)]
        if x.dtype not in FLOATS or x.dtype is not y.dtype or scale.dtype is not F32:
            return "takes x and y of one float type and a scale of f32"
        if prod(x.dims) >= _COUNTED:
            return f"{prod(x.dims)} elements, at most {_COUNTED - 1}"
        if len(x.dims) != IMAGE_RANK or scale.dims != (1, x.dims[1], 1, 1) or not all(map(is_packed, (x, y, scale))):
            return "takes channels of tensors in C order"
        return None if node.get(A.RMSNORM_COMP_TYPE_EXT) == int(DataType.FLOAT) else "computes in f32 only"


class AsmAttention:
    """ASM_SDPA_ENGINE: attention of bf16 with heads of listed sizes, whole or causal to the bottom right, no mask.

    Of the HIP kernel provider, built by default, for gfx942 and gfx950. It reads strides, but not that of the features, in bytes as 32
    bits. That rows lie on 16 bytes is not said there, and is played safe.
    """

    sources = (
        Source(
            "2026-11-24",
            "dnn-providers/hip-kernel-provider/src/engines/asm_sdpa_engine",
            (
                "plans/SdpaFwdPlanBuilder.cpp",
                "plans/SdpaFwdPlan.cpp",
                "plans/SdpaPlanUtils.hpp",
                "asm/asm_kernels/gfx942/fmha_v3_fwd/fmha_fwd.csv",
                "asm/asm_kernels/gfx950/fmha_v3_fwd/fmha_fwd.csv",
            ),
        ),
    )

    ARCHITECTURES = frozenset({"gfx942", "gfx950"})
    HEADS = frozenset({(128, 128), (192, 128)})
    """Features of queries and keys, and of values."""

    def refuses(self, graph: Graph) -> Refusal:
        """Why the graph is not taken, or None."""
        if len(graph.nodes) != 1 or not starts_with(graph, ATTENTION):
            return "takes one attention"
        (node,) = graph.nodes
        unknown = counts_or_bounds(node)
        if unknown is not None:
            return unknown
        query, key, value, *masks = (graph.tensors[index] for index in node.inputs.values())
        tensors = (query, key, value, graph.tensors[result_of(node)])
        if masks or node.get(A.SDPA_FWD_CAUSAL_MASK_EXT):
            return "takes no mask but a causal one of as many queries as keys"
        if any(tensor.dtype is not BF16 for tensor in tensors):
            return f"attention of {', '.join(sorted({str(tensor.dtype) for tensor in tensors}))}"
        if (query.dims[3], value.dims[3]) not in self.HEADS:
            return f"heads of {query.dims[3]} and {value.dims[3]} features"
        if key.dims[1] != value.dims[1] or query.dims[1] % key.dims[1]:
            return "heads that do not divide"
        if any(tensor.strides[3] != 1 or not all(map(_is_asm_stride, tensor.strides[:3])) for tensor in tensors):
            return "features that are not adjacent, or rows that do not lie on 16 bytes"
        return None


# -- parts of rules -------------------------------------------------------------------------------------------------------------------


def _not_relu(node: Node) -> Refusal:
    """ReLU, with an upper limit, or clamped between two (mapPointwiseModeToMiopenActivation in miopen-provider/MiopenUtils.cpp)."""
    low, high, slope = (node.get(name) for name in CLIPS)
    if slope is not None or (high is None and low not in (None, 0.0)):
        return "takes ReLU and clamps with both limits only"
    return None


def _bias(graph: Graph, node: Node) -> Refusal:
    """One number per channel, of the result's type: a full-size operand would be read as a bias."""
    bias, result = (
        graph.tensors[other_operand(node, result_of(graph.nodes[0]))],
        graph.tensors[result_of(graph.nodes[-1])],
    )
    dims = result.dims
    if bias.operand is None or bias.dims != (1, dims[1], *(1,) * (len(dims) - 2)) or not is_packed(bias):
        return "a bias is one number per channel"
    return None if bias.dtype is result.dtype else f"a bias of {bias.dtype} for a result of {result.dtype}"


def _one_layout(tensors: Sequence[Tensor]) -> Refusal:
    """All in C order, or all channels-last, without gaps."""
    if all(map(is_packed, tensors)) or all(is_packed(tensor, channels_last=True) for tensor in tensors):
        return None
    return "tensors of different layouts, or with gaps"


def _spans(inner: int, outer: int, size: int) -> bool:
    """Whether lines of `size` adjacent elements lie `outer` apart without overlap."""
    return inner == 1 and outer >= size


def _is_strided_batch(tensor: Tensor) -> bool:
    """Whether all dims before the last two are one dim with the stride of the third last."""
    if prod(tensor.dims[:-2]) == 1:
        return True
    step = tensor.strides[-3]
    for size, stride in zip(reversed(tensor.dims[:-2]), reversed(tensor.strides[:-2]), strict=True):
        if size != 1 and stride != step:
            return False
        step *= size
    return True


def _is_asm_stride(elements: int) -> bool:
    size = elements * BF16.bytes
    return size % PROVIDER_ALIGNMENT == 0 and size < 2**32

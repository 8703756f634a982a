"""Every target by name.

The host's library is asked what it takes. What a GPU's libraries take is stated as data, for none need be where a model is compiled;
building the plan is the real test.
"""

import re
from collections.abc import Callable
from typing import Literal, get_args

from hipdnn_mlir_runtime import precision as precisions
from hipdnn_mlir_runtime.abi import Pointwise as P
from hipdnn_mlir_runtime.dtypes import BF16, F16, F32, I4, I8, U8
from hipdnn_mlir_runtime.errors import ModelError

from ..ops.attention_graph import UNIT_FEATURES
from ..ops.byte_products import byte_products
from ..ops.depthwise import depthwise
from ..ops.few_channels import few_channels
from ..ops.graph import Graph
from .fusilli import FusilliGraph, conform_fusilli
from .host import HOST
from .nvidia import (
    BLAS_EPILOGUE,
    FLOAT8,
    CublasltMatmul,
    CudnnEpilogue,
    FusedAttention,
    UnitsAttention,
    conform_cudnn,
)
from .nvidia_integers import CudnnExactSums, conform_sums
from .rocm import (
    PROVIDER_ALIGNMENT,
    AsmAttention,
    HipblasltMatmul,
    HipRmsNorm,
    MiopenBatchNorm,
    MiopenConvolution,
)
from .rocm_forms import conform_asm_sdpa, conform_hip_kernels, conform_hipblaslt, conform_miopen
from .rules import (
    ANCHORS,
    BACKWARD_DATA,
    BATCH_NORMS,
    BLOCK_SCALES,
    CONVOLUTION,
    EPILOGUE_MODES,
    MATMUL,
    RESAMPLE,
    ROWWISE_TYPES,
    AnchorEpilogue,
    BiasActivation,
    FewRows,
    OwnConvolution,
    Reduction,
    Rowwise,
    Single,
    WholeBlocks,
)
from .target import CPU_CORE, CostModel, Engine, Rates, SourcedRule, Target

_FLOATS = frozenset({F32, F16, BF16})
_GPU_COST = CostModel(
    cpu=CPU_CORE, device=Rates(start_us=3.0, flops_per_us=50e6, bytes_per_us=2e6), hop_us=10.0, link_bytes_per_us=20e3
)
"""A data-centre GPU behind PCI Express, in order of magnitude."""
_FEW_ROWS, _FEW_ROWS_OF_UNITS = (
    Engine("GENERATED", FewRows(EPILOGUE_MODES, has_units=has_units), is_generated=True) for has_units in (False, True)
)
_GENERATED = (
    Engine("GENERATED", Rowwise(ROWWISE_TYPES, 32), is_generated=True),
    Engine(
        "GENERATED",
        Single(frozenset({RESAMPLE, *BATCH_NORMS}), _FLOATS),
        is_generated=True,
    ),
    Engine("GENERATED", Single(frozenset({RESAMPLE}), frozenset({I8, U8})), is_generated=True),
    Engine("GENERATED", WholeBlocks(BLOCK_SCALES, _FLOATS | {I4, I8}), is_generated=True),
    Engine("GENERATED", Reduction(ROWWISE_TYPES), is_generated=True),
    Engine("GENERATED", AnchorEpilogue(ANCHORS, EPILOGUE_MODES, _FLOATS, 16), is_generated=True, is_last_resort=True),
)
"""What the compiler writes kernels for."""
TF32 = f"+{precisions.TF32}"
"""Behind a target's name: matmuls and convolutions of f32 may round their operands to TF32."""
FUSILLI = "+fusilli"
"""Behind an AMD target's name: hipDNN's Fusilli provider is there, too, which is not in its default build."""
FUSILLI_ENGINE = "FUSILLI_ENGINE"
"""That provider's engine."""
_SLOW_IN_CUDNN = {P.GELU_FWD: 1 << 20}
"""Beside a matmul of (4096, 768) and (768, 3072) cuDNN's exact GELU of f16 takes 20 us of an H200, the matmul alone 34 us."""


_FLOAT8_ARCHITECTURES = ("sm_90",)
"""Whose matrix units multiply floats of 8 bits."""


def _cudnn(architecture: str, *, tf32: bool = False) -> Target:
    """NVIDIA's cuDNN and, for matmuls, cuBLASLt, with generated kernels for what they are not asked for.

    Matmuls that cuDNN takes are cuBLASLt's as well where it has their epilogues: which one runs a graph is decided when plans are made.
    Without TF32 cuDNN 9 fuses little into convolutions of f32, and nothing into matmuls: seen with 9.14 and 9.19
    on an H200, for images that are channels-last and results in C order.
    """
    activations = frozenset({P.RELU_FWD, P.TANH_FWD, P.SIGMOID_FWD, P.ELU_FWD})
    exact = (
        Engine("CUDNN_ENGINE", BiasActivation(activations, frozenset({F32}))),
        Engine("CUBLASLT_ENGINE", CublasltMatmul(frozenset({MATMUL}), BLAS_EPILOGUE, frozenset({F32}), 3)),
    )
    floats = _FLOATS if tf32 else _FLOATS - {F32}
    return Target(
        architecture,
        frozenset({CONVOLUTION, BACKWARD_DATA, RESAMPLE}),
        _GPU_COST,
        (
            _FEW_ROWS_OF_UNITS,
            Engine("GENERATED", OwnConvolution(few_channels, ROWWISE_TYPES, 64), is_generated=True),
            Engine("GENERATED", OwnConvolution(depthwise, ROWWISE_TYPES, 64), is_generated=True),
            Engine("GENERATED", OwnConvolution(byte_products, ROWWISE_TYPES, 64), is_generated=True),
            Engine(
                "CUDNN_ENGINE",
                CudnnEpilogue(ANCHORS, EPILOGUE_MODES, floats, 16, _SLOW_IN_CUDNN),
                conform=conform_cudnn,
            ),
            *(() if tf32 else exact),
            *((Engine("CUBLASLT_ENGINE", FLOAT8),) if architecture in _FLOAT8_ARCHITECTURES else ()),
            Engine("CUDNN_ENGINE", CudnnExactSums(), conform=conform_sums),
            Engine("GENERATED", UnitsAttention(is_faster=True), is_generated=True),
            Engine("CUDNN_ENGINE", FusedAttention()),
            Engine("GENERATED", UnitsAttention(), is_generated=True),
            *_GENERATED,
        ),
        filters_channels_last=True,
        matrices_by_columns=True,
        channel_multiples={F16: 8, BF16: 8, F32: 4},
        head_features=UNIT_FEATURES,
        architecture=architecture,
        merges_matmuls=True,
        splits_inner=True,
        exact_products=F16,
    )


def _rocm(architecture: str, *, fusilli: bool = False) -> Target:
    """AMD's hipDNN with the providers of its default build, or with Fusilli's, too, and generated kernels for what they refuse."""

    def provider(name: str, takes: SourcedRule, conform: Callable[[Graph], Graph]) -> Engine:
        return Engine(name, takes, alignment=PROVIDER_ALIGNMENT, conform=conform, sources=takes.sources)

    more = (provider(FUSILLI_ENGINE, FusilliGraph(), conform_fusilli),) if fusilli else ()
    return Target(
        architecture,
        frozenset(),
        _GPU_COST,
        (
            provider("MIOPEN_ENGINE", MiopenConvolution(architecture), conform_miopen),
            provider("MIOPEN_ENGINE", MiopenBatchNorm(), conform_miopen),
            _FEW_ROWS,
            provider("HIPBLASLT_ENGINE", HipblasltMatmul(), conform_hipblaslt),
            provider("HIP_MLOPS_ENGINE", HipRmsNorm(), conform_hip_kernels),
            *(
                (provider("ASM_SDPA_ENGINE", AsmAttention(), conform_asm_sdpa),)
                if architecture in AsmAttention.ARCHITECTURES
                else ()
            ),
            *more,
            *_GENERATED,
        ),
        matrices_by_columns=True,
        architecture=architecture,
        whole_epilogues=True,
    )


TargetName = Literal[
    "host",
    "sm_80",
    "sm_90",
    "gfx90a",
    "gfx942",
    "gfx950",
    "gfx1100",
    "gfx1151",
    "gfx1201",
    "gfx1250",
    "gfx90a+fusilli",
    "gfx942+fusilli",
    "gfx950+fusilli",
    "gfx1100+fusilli",
    "gfx1151+fusilli",
    "gfx1201+fusilli",
    "gfx1250+fusilli",
]
"""What a program can be compiled for."""
NVIDIA: tuple[str, ...] = tuple(name for name in get_args(TargetName) if name.startswith("sm_"))
AMD: tuple[str, ...] = tuple(
    name for name in get_args(TargetName) if name.startswith("gfx") and not name.endswith(FUSILLI)
)
TARGETS: dict[str, Target] = {target.name: target for target in (HOST, *map(_cudnn, NVIDIA), *map(_rocm, AMD))}


def target_name(name: str, precision: str) -> str:
    """The name under which `find_target` finds what a precision allows."""
    return name + TF32 if precision == precisions.TF32 and not name.endswith(TF32) else name


_WITH_TF32 = {name + TF32: _cudnn(name, tf32=True) for name in NVIDIA}
_WITH_FUSILLI = {name + FUSILLI: _rocm(name, fusilli=True) for name in AMD}


def _other_gpu(name: str) -> str:
    """What to do with a GPU of an architecture that no target is of: in ONNX Runtime its name comes from the device."""
    base, modes, _ = name.partition(":")
    if modes and base in AMD:
        return f"write {base}, without modes"
    if not re.fullmatch(r"gfx[0-9a-f]+|sm_\d+", base):
        return ""
    older = [target for target in NVIDIA if name.startswith("sm_") and int(target[3:]) < int(name[3:])]
    if older:
        return f"a GPU of {name} runs programs for {older[-1]}"
    return f"there is no code for {name}: run on the CPU, target 'host' or the provider's device of the CPU"


def find_target(name: str) -> Target:
    """The target of a name, with FUSILLI behind it, and TF32, which changes nothing where there is none.

    Raises:
        ModelError: unknown; it lists the known ones.
    """
    plain = name.removesuffix(TF32)
    known = TARGETS | _WITH_FUSILLI
    if plain not in known:
        listed = f"{', '.join(TARGETS)}, or one of AMD's with {FUSILLI} behind it"
        raise ModelError(f"unknown target {name!r}: expected one of {listed}", hint=_other_gpu(plain))
    return _WITH_TF32.get(name, known[plain])

"""What AMD's providers take and programs leave to generated kernels, with the reason: a table of docs/amd.md."""

from dataclasses import dataclass

from .sources import Source

_READ = "2026-11-24"
_MIOPEN = "dnn-providers/miopen-provider"
_HIP_KERNELS = "dnn-providers/hip-kernel-provider"
_MLOPS = f"{_HIP_KERNELS}/src/engines/hip_mlops_engine"


@dataclass(frozen=True)
class Unused:
    """One of these.

    Attributes:
        what: provider and graphs.
        why: the reason, a sentence.
        sources: where it was read.
    """

    what: str
    why: str
    sources: tuple[Source, ...]


UNUSED = (
    Unused(
        "MIOpen: an activation, or a sum, difference, product, maximum or minimum, alone",
        "A generated kernel computes it together with its neighbours.",
        (Source(_READ, _MIOPEN, ("MiopenUnaryActivationChecks.cpp", "MiopenBinaryPointwiseChecks.cpp")),),
    ),
    Unused(
        "MIOpen, HIP MLOps: batch norm of training",
        "The [operations](ops.md) have none.",
        (
            Source(_READ, _MIOPEN, ("MiopenBatchnormFwdTrainingPlanBuilder.cpp",)),
            Source(_READ, _MLOPS, ("plans/batchnorm/BatchnormApplicabilityChecks.cpp",)),
        ),
    ),
    Unused(
        "HIP MLOps: batch norm of inference",
        "MIOpen takes the same.",
        (Source(_READ, _MLOPS, ("plans/batchnorm/BatchnormApplicabilityChecks.cpp",)),),
    ),
    Unused(
        "HIP MLOps: layer norm; RMS norm with a scale of 16 bits, a bias or ReLU",
        "It is one kernel either way. Generated ones read rows of up to 8192 elements once, 16 bytes at a time; the "
        "provider's read them twice, element by element.",
        (
            Source(
                _READ,
                _MLOPS,
                (
                    "plans/layernorm/LayernormApplicabilityChecks.cpp",
                    "plans/layernorm/LayernormFwdPlan.cpp",
                    "kernels/layernorm/LayernormFwd.cpp",
                    "plans/RMSnorm/RMSnormApplicabilityChecks.cpp",
                    "kernels/rmsnorm/RMSNormFwd.cpp",
                ),
            ),
        ),
    ),
    Unused(
        "HIP MLOps: pooling",
        "It is one thread per result either way. The provider's maximum passes over NaN, and that of minus infinities is the lowest "
        "float. Indices are of 32 bits, those of models of 64.",
        (
            Source(
                _READ,
                _MLOPS,
                (
                    "plans/resample/ResampleApplicabilityChecks.cpp",
                    "plans/resample/ResampleFwdPlan.cpp",
                    "kernels/resample/ResampleFwd.cpp",
                ),
            ),
        ),
    ),
    Unused(
        "hipBLASLt: MX-FP8 (`gfx950`, `gfx1250`); ASM SDPA: FP8",
        "In models, floats of 8 bits have scales per tensor or channel, not per block; attention is computed in 16 bits.",
        (
            Source(_READ, "dnn-providers/hipblaslt-provider", ("docs/OperationSupport.md",)),
            Source(_READ, f"{_HIP_KERNELS}/src/engines/asm_sdpa_engine", ("plans/SdpaFwdPlanBuilder.cpp",)),
        ),
    ),
    Unused(
        "Fusilli: reductions, RMS norm, pointwise operations alone",
        "A generated kernel computes them together with their neighbours.",
        (Source(_READ, "dnn-providers/fusilli-provider/include", ("graph_import.h",)),),
    ),
    Unused(
        "`ROCKE_ENGINE`, engines from kernel descriptors, `HIP_FLASH2_ENGINE`",
        "They are not in the default build.",
        (Source(_READ, _HIP_KERNELS, ("README.md",)),),
    ),
)

"""The op table's samples that are graphs for an engine."""

from __future__ import annotations

from engine_plugin.loader import Array
from gpu.sample_programs import inputs, named_samples
from hipdnn_mlir.ops.samples import KERNEL, Sample

# On an engine; a sample that is data movement alone has none. A soft cap is the host library's own, and no part of what plugins are given.
SAMPLES = {
    name: sample
    for name, sample in named_samples().items()
    if sample.engine not in ("", KERNEL) and "softcap" not in sample.attributes
}


def feeds_of(sample: Sample) -> dict[str, Array]:
    """A sample's inputs by name."""
    return {f"x{number}": array for number, array in enumerate(inputs(sample))}

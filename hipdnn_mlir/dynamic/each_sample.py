"""One step of the compiler at every sample point."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from hipdnn_mlir_runtime.errors import HipdnnMlirError

Sample = TypeVar("Sample")
Made = TypeVar("Made")


def each_sample(step: Callable[[Sample], Made], samples: Sequence[Sample]) -> list[Made]:
    """Apply a step to each sample in turn; an error that it raises knows of which sample its numbers are.

    Raises:
        HipdnnMlirError: as the step does, with `sample` set.
    """
    made = []
    for number, sample in enumerate(samples):
        try:
            made.append(step(sample))
        except HipdnnMlirError as error:
            error.sample = number
            raise
    return made

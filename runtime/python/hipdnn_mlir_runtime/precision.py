"""What an f32 model is run in: `--precision`."""

from .dtypes import BF16, F16, DType
from .errors import ModelError
from .options import options_of

UNCHANGED = "model"
"""As the model is."""
TF32 = "tf32"
"""As the model is, but matmuls and convolutions of f32 may round their operands to TF32 (10 bits of fraction)."""
_NARROW = {F16.name: F16, BF16.name: BF16}
PRECISIONS = options_of("compile")["precision"].choices


def find_precision(name: str) -> DType | None:
    """The 16-bit type of a name, None for `model` and `tf32`; raises ModelError listing the known ones."""
    if name not in PRECISIONS:
        raise ModelError(f"unknown precision {name!r}: expected one of {', '.join(PRECISIONS)}")
    return _NARROW.get(name)

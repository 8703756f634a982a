"""What an f32 model is run in: `--precision`."""

from typing import Final, Literal, get_args

from .dtypes import BF16, F16, DType
from .errors import ModelError

Precision = Literal["model", "tf32", "f16", "bf16"]
"""As the table of options has it; a test compares."""
UNCHANGED: Final = "model"
"""As the model is."""
TF32: Final = "tf32"
"""As the model is, but matmuls and convolutions of f32 may round their operands to TF32 (10 bits of fraction)."""
_NARROW = {F16.name: F16, BF16.name: BF16}
PRECISIONS: tuple[str, ...] = get_args(Precision)


def find_precision(name: str) -> DType | None:
    """The 16-bit type of a name, None for `model` and `tf32`; raises ModelError listing the known ones."""
    if name not in PRECISIONS:
        raise ModelError(f"unknown precision {name!r}: expected one of {', '.join(PRECISIONS)}")
    return _NARROW.get(name)

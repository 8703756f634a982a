"""The alignment of tensors whose place in memory depends on sizes: what it is at the sample points says nothing of other sizes."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from hipdnn_mlir_runtime.abi import Attribute, AttributeType, Descriptor
from hipdnn_mlir_runtime.dtypes import ALL

from ..program.schema import Execute, ProgramModel

_BYTES = {int(dtype.hipdnn): dtype.bytes for dtype in ALL if dtype.hipdnn is not None}


def loosen(programs: Sequence[ProgramModel]) -> list[ProgramModel]:
    """The programs with the alignment of one element for what lies elsewhere in its buffer at other sample points.

    Args:
        programs: the program at each sample point; not modified.
    """
    moved = set(_moved(programs))
    if not moved:
        return list(programs)
    return [
        replace(
            program,
            executables=[
                replace(e, descriptors=[_loosened(d, {uid for n, uid in moved if n == number}) for d in e.descriptors])
                for number, e in enumerate(program.executables)
            ],
        )
        for program in programs
    ]


def _moved(programs: Sequence[ProgramModel]) -> Iterator[tuple[int, int]]:
    """The tensors with offsets that differ: number of the executable, and uid."""
    first = programs[0]
    for steps in zip(*(program.steps for program in programs), strict=False):
        if not isinstance(steps[0], Execute) or any(type(step) is not Execute for step in steps):
            continue
        executable = steps[0].executable
        for operand, *places in zip(first.executables[executable].operands, *(s.operands for s in steps), strict=False):
            if len({place.offset for place in places}) > 1:
                yield executable, operand["uid"]


def _loosened(descriptor: list[Any], uids: set[int]) -> list[Any]:
    kind, attributes = descriptor
    stated = {attribute[0]: attribute[2] for attribute in attributes}
    uid = stated.get(int(Attribute.TENSOR_UNIQUE_ID))
    if kind != int(Descriptor.TENSOR_DESCRIPTOR) or uid is None or uid[0] not in uids:
        return descriptor
    alignment = int(Attribute.TENSOR_BYTE_ALIGNMENT)
    bytes_ = _BYTES[stated[int(Attribute.TENSOR_DATA_TYPE)][0]]
    kept = [attribute for attribute in attributes if attribute[0] != alignment]
    return [kind, [*kept, [alignment, int(AttributeType.INT64), [bytes_]]]]

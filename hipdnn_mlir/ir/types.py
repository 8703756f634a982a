"""Types of the torch dialect and of builtin tensors and memrefs, read as dims and element types.

The bindings have no classes for the torch dialect's types: their text is what there is to read.
"""

from functools import lru_cache

from torch_mlir import ir

from hipdnn_mlir_runtime.dtypes import BY_TORCH, DType

from ..ops.spec import Refusal, TensorType
from ..ops.strides import Strides, packed

_PREFIX = "!torch.vtensor<"
_IS_TENSOR: dict[ir.TypeID, bool] = {}
"""By the class of a type, which takes a twentieth of the time that printing it takes."""


def is_tensor(kind: ir.Type) -> bool:
    """True for a `!torch.vtensor`."""
    known = _IS_TENSOR.get(kind.typeid)
    if known is None:
        known = _IS_TENSOR[kind.typeid] = str(kind).startswith(_PREFIX)
    return known


def tensor_type(kind: ir.Type) -> TensorType:
    """Dims and dtype of a `!torch.vtensor<[...],...>`; refuses unranked or untyped ones and element types without a row."""
    return _read(str(kind))


@lru_cache(maxsize=4096)
def _read(text: str) -> TensorType:
    if not text.startswith(_PREFIX + "["):
        raise Refusal("type", f"type {text}")
    dims, element = text[len(_PREFIX) + 1 : -1].rsplit("],", 1)
    if element not in BY_TORCH:
        raise Refusal("dtype", f"element type {element}")
    return TensorType(
        tuple(None if size == "?" else int(size) for size in dims.split(",") if size),
        BY_TORCH[element],
    )


def torch_tensor(dims: tuple[int, ...], dtype: DType) -> ir.Type:
    """The `!torch.vtensor` type."""
    return ir.Type.parse(f"{_PREFIX}[{','.join(map(str, dims))}],{dtype.torch}>")


def builtin_tensor(kind: ir.Type) -> ir.RankedTensorType:
    """The builtin tensor type that stores a `!torch.vtensor` (signless)."""
    shape = tensor_type(kind)
    return ir.RankedTensorType.get(list(shape.static_dims()), ir.Type.parse(shape.dtype.builtin))


def same_storage(torch_kind: ir.Type, other: ir.Type) -> bool:
    """Whether `other` (torch tensor, memref or builtin tensor) holds what `torch_kind` says: same dims and stored element."""
    if torch_kind == other:
        return is_tensor(torch_kind)
    if not isinstance(other, (ir.MemRefType, ir.RankedTensorType)) or not is_tensor(torch_kind):
        return False
    shape = tensor_type(torch_kind)
    dims = tuple([None if size < 0 else size for size in other.shape])
    return dims == shape.dims and str(other.element_type) == shape.dtype.builtin


def memref_strides(kind: ir.MemRefType) -> tuple[Strides, int] | None:
    """Strides and offset (in elements) of a memref, or None where one is not static; packed where it has no elements."""
    if 0 in kind.shape:
        return packed(kind.shape), 0
    strides, offset = kind.get_strides_and_offset()
    dynamic = ir.ShapedType.get_dynamic_stride_or_offset()
    if offset == dynamic or dynamic in strides:
        return None
    return tuple(strides), offset


def strided_memref(
    dims: tuple[int, ...], element: ir.Type, strides: Strides | None = None, offset: int = 0
) -> ir.MemRefType:
    """A memref type; fully dynamic strides where `strides` is None."""
    if strides is None:
        return ir.MemRefType.get(list(dims), element, layout=ir.StridedLayoutAttr.get_fully_dynamic(len(dims)))
    return ir.MemRefType.get(list(dims), element, layout=ir.StridedLayoutAttr.get(offset, list(strides)))

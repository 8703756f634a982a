"""Views, joins and padding."""

from collections.abc import Iterator

from .case import MOVEMENT, Sample, accept, f32, reject


def reshapes() -> Iterator[Sample]:
    """Other dims, same elements."""
    open_dim = f32(None, 3)
    for op in ("aten.view", "aten.reshape"):
        yield accept(op, MOVEMENT, [f32(2, 3, 4), [6, -1]], f32(6, 4))
        yield reject(op, "shape", [f32(2, 3), [4, 2]], f32(4, 2))
    yield accept("prims.collapse", MOVEMENT, [f32(2, 3, 4), 0, 1], f32(6, 4))
    yield reject("prims.collapse", "dynamic-shape", [f32(None, 3, 4), 0, 1], f32(None, 4))
    yield accept("aten.flatten.using_ints", MOVEMENT, [f32(2, 3, 4), 1, -1], f32(2, 12))
    yield reject("aten.flatten.using_ints", "dynamic-shape", [open_dim, 0, 1], f32(None))
    yield accept("prims.split_dim", MOVEMENT, [f32(6, 4), 0, 2], f32(2, 3, 4))
    yield reject("prims.split_dim", "dynamic-shape", [open_dim, 1, 3], f32(None, 3, 1))
    yield accept("aten.unflatten.int", MOVEMENT, [f32(2, 12), 1, [3, -1]], f32(2, 3, 4))
    yield reject("aten.unflatten.int", "dynamic-shape", [open_dim, 1, [3, 1]], f32(None, 3, 1))
    yield accept("aten.squeeze", MOVEMENT, [f32(1, 3, 1)], f32(3))
    yield reject("aten.squeeze", "dynamic-shape", [f32(None, 3, 1)], f32(None, 3))
    yield accept("aten.squeeze.dim", MOVEMENT, [f32(2, 1, 3), 1], f32(2, 3))
    yield reject("aten.squeeze.dim", "dynamic-shape", [f32(None, 1, 3), 1], f32(None, 3))
    yield accept("prims.squeeze", MOVEMENT, [f32(1, 3, 1), [0, 2]], f32(3))
    yield reject("prims.squeeze", "dynamic-shape", [f32(None, 3, 1), [2]], f32(None, 3))
    yield accept("aten.unsqueeze", MOVEMENT, [f32(2, 3), -1], f32(2, 3, 1))
    yield reject("aten.unsqueeze", "dynamic-shape", [open_dim, 0], f32(1, None, 3))


def views() -> Iterator[Sample]:
    """Transposes and slices."""
    open_dim = f32(None, 3)
    yield accept("aten.transpose.int", MOVEMENT, [f32(2, 3, 4), 0, -1], f32(4, 3, 2))
    yield reject("aten.transpose.int", "dynamic-shape", [open_dim, 0, 1], f32(3, None))
    for op in ("aten.t", "aten.numpy_T"):
        yield accept(op, MOVEMENT, [f32(2, 3)], f32(3, 2))
        yield reject(op, "dynamic-shape", [open_dim], f32(3, None))
    yield accept("aten.permute", MOVEMENT, [f32(2, 3, 4), [2, 0, 1]], f32(4, 2, 3))
    yield reject("aten.permute", "dynamic-shape", [open_dim, [1, 0]], f32(3, None))
    yield accept("aten.slice.Tensor", MOVEMENT, [f32(6, 3), 0, 1, 5, 2], f32(2, 3))
    yield accept("aten.slice.Tensor", MOVEMENT, [f32(6, 3), 0, -2, None, 1], f32(2, 3))
    yield reject("aten.slice.Tensor", "attribute", [f32(6, 3), 0, 5, 0, -1], f32(5, 3))
    yield accept("aten.select.int", MOVEMENT, [f32(6, 3), 0, -1], f32(3))
    yield reject("aten.select.int", "dynamic-shape", [open_dim, 1, 0], f32(None))


def joins() -> Iterator[Sample]:
    """Concatenation and padding."""
    yield accept("aten.cat", MOVEMENT, [[f32(2, 3), f32(2, 4)], -1], f32(2, 7))
    yield reject("aten.cat", "dynamic-shape", [[f32(None, 3), f32(2, 3)], 0], f32(None, 3))
    yield accept("aten.constant_pad_nd", MOVEMENT, [f32(2, 3), [1, 2, 0, 1], 0.5], f32(3, 6))
    yield reject("aten.constant_pad_nd", "attribute", [f32(2, 3), [-1, 0], 0.5], f32(2, 2))
    yield accept("aten.pad", MOVEMENT, [f32(2, 3), [1, 2], "constant", 1.0], f32(2, 6))
    yield reject("aten.pad", "attribute", [f32(1, 2, 3), [-1, 0], "constant", 1.0], f32(1, 2, 2))

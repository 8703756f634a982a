"""Small decoders whose caches grow by Concat, and the loop that hands their outputs back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

VOCABULARY, WIDTH, HEADS, HEAD, POSITIONS, WINDOW = 60, 32, 4, 8, 4096, 5
MASKS = ("flags", "by index", "added", "none", "window")
"""How a model hides keys: by flags of 0 and 1, looked up as exporters do; by what is added; those ahead alone; all but the last ones."""
Arrays = dict[str, np.ndarray]
Run = Callable[[Any, Arrays], Sequence[np.ndarray]]


class _Graph:
    """Nodes, written as calls."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._rng = np.random.default_rng(0)

    def __call__(self, operator: str, *operands: Any, name: str = "", **attributes: Any) -> str:
        """A node; numbers and arrays among its operands become constants."""
        names = [operand if isinstance(operand, str) else self.constant(operand) for operand in operands]
        result = name or f"v{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, names, [result], name=result, **attributes))
        return result

    def constant(self, value: Any) -> str:
        array = np.asarray(value)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *dims: int, scale: float = 1.0) -> str:
        return self.constant((self._rng.standard_normal(dims) * scale / np.sqrt(dims[0])).astype(np.float32))


def growing_model(
    masks: str = "flags",
    layers: int = 2,
    more: Callable[[_Graph, str], str] | None = None,
    heads: int = HEADS,
    *,
    is_placed: bool = False,
) -> onnx.ModelProto:
    """A decoder with a table of positions, and attention written out.

    Args:
        masks: of `MASKS`, or `flags in a window`.
        layers: number of layers.
        more: adds nodes for an output `more` of four dims, given the graph and the first cache.
        heads: of keys and values; those of the queries share them.
        is_placed: whether the positions of tokens are an input.
    """
    g = _Graph()
    past = g("Gather", g("Shape", "past_key_values.0.key"), 2)
    batch, new = (g("Gather", g("Shape", "input_ids"), index) for index in range(2))
    total = g("Add", past, new)
    places = g("Add", g("Range", 0, new, 1), past)
    mask = _mask(g, masks, batch, total, places)
    x = g(
        "Add",
        g("Gather", g.weight(VOCABULARY, WIDTH, scale=2), "input_ids"),
        g("Gather", g.weight(POSITIONS, WIDTH, scale=30), "position_ids" if is_placed else places),
    )
    for n in range(layers):
        q, k, v = (_heads(g, x, count) for count in (HEADS, heads, heads))
        keys = g("Concat", f"past_key_values.{n}.key", k, name=f"present.{n}.key", axis=2)
        values = g("Concat", f"past_key_values.{n}.value", v, name=f"present.{n}.value", axis=-2)
        keys, values = (_repeated(g, cache, heads) for cache in (keys, values))
        scores = g("Div", g("MatMul", q, g("Transpose", keys, perm=[0, 1, 3, 2])), np.float32(HEAD**0.5))
        weights = g("Softmax", g("Add", scores, mask), axis=-1)
        y = g("Transpose", g("MatMul", weights, values), perm=[0, 2, 1, 3])
        x = g("Add", x, g("MatMul", g("Reshape", y, [0, 0, WIDTH]), g.weight(WIDTH, WIDTH)))
    g("MatMul", x, g.weight(WIDTH, VOCABULARY), name="logits")
    cache = ["b", heads, "p", HEAD]
    names = [f"{n}.{part}" for n in range(layers) for part in ("key", "value")]
    inputs = [
        _value("input_ids", ["b", "s"], np.int64),
        *([_given(masks)] if masks not in ("none", "window") else []),
        *([_value("position_ids", ["b", "s"], np.int64)] if is_placed else []),
    ]
    outputs = [
        _value("logits", ["b", "s", VOCABULARY]),
        *(_value(f"present.{name}", ["b", heads, "q", HEAD]) for name in names),
    ]
    if more is not None:
        g("Identity", more(g, "present.0.key"), name="more")
        outputs.append(_value("more", [f"m{axis}" for axis in range(4)]))
    inputs += [_value(f"past_key_values.{name}", cache) for name in names]
    graph = helper.make_graph(g.nodes, "growing", inputs, outputs, g.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def _value(name: str, dims: Sequence[int | str], dtype: Any = np.float32) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims)


def _given(masks: str) -> onnx.ValueInfoProto:
    return (
        _value("attention_mask", ["b", 1, "s", "t"])
        if masks == "added"
        else _value("attention_mask", ["b", "t"], np.int64)
    )


def _heads(g: _Graph, x: str, count: int) -> str:
    return g(
        "Transpose", g("Reshape", g("MatMul", x, g.weight(WIDTH, count * HEAD)), [0, 0, count, HEAD]), perm=[0, 2, 1, 3]
    )


def _repeated(g: _Graph, cache: str, heads: int) -> str:
    """A cache for all queries, as exporters repeat those that several share."""
    if heads == HEADS:
        return cache
    shape = [g("Gather", g("Shape", cache), [axis]) for axis in range(4)]
    spread = g("Concat", *shape[:2], [HEADS // heads], *shape[2:], axis=0)
    return g(
        "Reshape", g("Expand", g("Unsqueeze", cache, [2]), spread), g("Concat", shape[0], [HEADS], *shape[2:], axis=0)
    )


def _mask(g: _Graph, masks: str, batch: str, total: str, places: str) -> str:
    """What is added to scores: [b or 1, 1, s, t]."""
    if masks == "added":
        return g("Identity", "attention_mask")
    own, keys = g("Unsqueeze", places, [1]), g("Range", 0, total, 1)
    shown = g("LessOrEqual", keys, own)
    if "window" in masks:
        shown = g("And", shown, g("Greater", keys, g("Sub", own, WINDOW)))
    if "flags" in masks:
        shown = g("And", shown, g("Unsqueeze", g("Cast", "attention_mask", to=onnx.TensorProto.BOOL), [1, 2]))
    if masks == "by index":
        rows = g("Unsqueeze", g("Range", 0, batch, 1), [1, 2, 3])
        at = g("Add", g("Mul", rows, g("Gather", g("Shape", "attention_mask"), [1])), keys)
        flat = g("Reshape", g("Cast", "attention_mask", to=onnx.TensorProto.BOOL), [-1])
        shown = g("And", shown, g("Gather", flat, at))
        shown = g(
            "Slice", shown, [0], g("Unsqueeze", total, [0]), [3]
        )  # as Optimum's models do, to as many keys as there are
    hidden = np.float32(-np.inf if masks == "none" else np.finfo(np.float32).min)
    return g("Where", shown, np.float32(0), hidden)


def first_feeds(session: Any, batch: int) -> Arrays:
    """Caches without rows."""
    ports = [port for port in session.get_inputs() if port.name.startswith("past")]
    return {port.name: np.zeros((batch, port.shape[1], 0, port.shape[3]), np.float32) for port in ports}


def mask_of(session: Any, batch: int, new: int, total: int, padded: int) -> Arrays:
    """What a model wants to know beside tokens and caches; the last text of a batch begins with padding."""
    found: Arrays = {}
    for port in session.get_inputs():
        if port.name == "attention_mask" and len(port.shape) == 2:
            found[port.name] = np.ones((batch, total), np.int64)
            found[port.name][-1, :padded] = 0
        elif port.name == "attention_mask":
            hidden = np.arange(total) > np.arange(total - new, total)[:, None]
            hidden = hidden | (np.arange(total) < padded) & (np.arange(batch) == batch - 1)[:, None, None, None]
            found[port.name] = np.where(hidden, np.finfo(np.float32).min, np.float32(0))
        elif port.name == "position_ids":
            found[port.name] = np.tile(np.arange(total - new, total), (batch, 1))
    return found


def decode(
    session: Any,
    pieces: Sequence[np.ndarray],
    padded: int = 0,
    change: Mapping[int, Callable[[np.ndarray], np.ndarray]] | None = None,
) -> tuple[list[np.ndarray], Arrays]:
    """The last position's logits after each piece of text, and the caches at the end.

    Args:
        session: of ONNX Runtime or of this project.
        pieces: tokens [batch, any number].
        padded: how many tokens of padding the last text begins with.
        change: piece -> what is done to each cache before it.
    """
    batch = len(pieces[0])
    caches, found, total = first_feeds(session, batch), [], 0
    names = [port.name for port in session.get_outputs()]
    for index, piece in enumerate(pieces):
        total += piece.shape[1]
        caches = {name: (change or {}).get(index, lambda cache: cache)(cache) for name, cache in caches.items()}
        feeds = {"input_ids": piece, **mask_of(session, batch, piece.shape[1], total, padded), **caches}
        results = dict(zip(names, session.run(None, feeds), strict=True))
        caches = {name: results[name.replace("past_key_values", "present")] for name in caches}
        found.append(results["logits"][:, -1])
    return found, caches


def pieces_of(batch: int, counts: Sequence[int], seed: int = 0) -> list[np.ndarray]:
    """Random tokens in pieces of so many."""
    rng = np.random.default_rng(seed)
    return [rng.integers(0, VOCABULARY, (batch, count)) for count in counts]

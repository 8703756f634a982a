"""Random convolutions, matrix products and attentions as ONNX models, and their results in float64."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = npt.NDArray[np.generic]

TYPES = {"f16": TensorProto.FLOAT16, "bf16": TensorProto.BFLOAT16, "tf32": TensorProto.FLOAT}
COUNTS = {"conv": 300, "matmul": 200, "attention": 100}
MOST_PRODUCTS = 1.5e9
"""Of one case, for the sake of the CPU that checks it."""


@dataclass(frozen=True)
class Conv:
    """A convolution with its epilogue; ``flat`` is the way patches are embedded: rows of features as the result."""

    dtype: str
    batch: int
    channels: int
    filters: int
    groups: int
    image: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilation: int
    padding: int
    bias: bool
    residual: bool
    relu: bool
    flat: bool

    def out(self) -> tuple[int, int]:
        """Height and width of the result."""
        reach = [self.dilation * (k - 1) + 1 for k in self.kernel]
        return tuple(
            (i + 2 * self.padding - r) // s + 1 for i, r, s in zip(self.image, reach, self.stride, strict=True)
        )  # type: ignore[return-value]

    def products(self) -> float:
        """Multiplications."""
        return float(np.prod([self.batch, self.filters, *self.out(), self.channels // self.groups, *self.kernel]))


@dataclass(frozen=True)
class Matmul:
    """x[*batch, m, k] @ w[k, n] of a weight, or of a second input with the batch."""

    dtype: str
    batch: tuple[int, ...]
    m: int
    k: int
    n: int
    weight: bool
    bias: bool
    residual: bool
    activation: str

    def products(self) -> float:
        """Multiplications."""
        return float(np.prod([*self.batch, self.m, self.k, self.n]))


@dataclass(frozen=True)
class Attention:
    """softmax(q k' / sqrt(d) + mask) v, written out as exporters do."""

    dtype: str
    batch: int
    heads: int
    queries: int
    keys: int
    features: int
    mask: str

    def products(self) -> float:
        """Multiplications."""
        return 2.0 * np.prod([self.batch, self.heads, self.queries, self.keys, self.features])


Case = Conv | Matmul | Attention


def _convs(rng: np.random.Generator, count: int) -> Iterator[Conv]:
    def pick(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    made = 0
    while made < count:
        is_patch = made % 4 == 0
        side = int(rng.integers(1, 17))
        kernel = (side, side) if rng.random() < 0.7 else (side, int(rng.integers(1, 17)))
        stride = (
            kernel if is_patch else (int(rng.integers(1, 17)),) * 2 if rng.random() < 0.4 else (pick([1, 1, 2]),) * 2
        )
        groups = pick([1, 1, 1, 2, 0])
        channels = 3 if is_patch else int(rng.integers(1, 65))
        groups = 1 if is_patch else channels if groups == 0 else groups
        channels += channels % groups
        case = Conv(
            dtype=pick(list(TYPES)),
            batch=pick([1, 2, 32]),
            channels=channels,
            filters=groups * int(rng.integers(1, 65)) if groups < 3 else channels,
            groups=groups,
            image=(int(rng.integers(7, 231)), int(rng.integers(7, 231))),
            kernel=kernel,
            stride=stride,
            dilation=1 if is_patch else pick([1, 1, 1, 2, 3]),
            padding=0 if is_patch else pick([0, 1, side // 2]),
            bias=rng.random() < 0.75,
            residual=not is_patch and rng.random() < 0.3,
            relu=rng.random() < 0.5,
            flat=is_patch and rng.random() < 0.7,
        )
        if min(case.out()) > 0 and case.products() < MOST_PRODUCTS:
            made += 1
            yield case


def _matmuls(rng: np.random.Generator, count: int) -> Iterator[Matmul]:
    def pick(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    sizes = [1, 2, 3, 5, 7, 8, 13, 16, 31, 32, 64, 77, 96, 128, 129, 197, 256, 384, 500, 512, 768, 1000, 1024, 2048]
    made = 0
    while made < count:
        is_weight = rng.random() < 0.7
        case = Matmul(
            dtype=pick(list(TYPES)),
            batch=pick([(), (2,), (3, 4), (12,)]),
            m=pick(sizes),
            k=pick(sizes),
            n=pick(sizes),
            weight=is_weight,
            bias=is_weight and rng.random() < 0.7,
            residual=rng.random() < 0.3,
            activation=pick(["", "Relu", "Gelu", "Sigmoid", "Tanh"]),
        )
        if case.products() < MOST_PRODUCTS:
            made += 1
            yield case


def _attentions(rng: np.random.Generator, count: int) -> Iterator[Attention]:
    def pick(values: Any) -> Any:
        return values[int(rng.integers(len(values)))]

    made = 0
    while made < count:
        queries = pick([1, 8, 16, 50, 64, 77, 100, 128, 197, 256, 384, 512])
        case = Attention(
            dtype=pick(list(TYPES)),
            batch=pick([1, 2, 8]),
            heads=pick([1, 2, 3, 8, 12]),
            queries=queries,
            keys=pick([queries, 64, 96, 128, 200, 512]),
            features=pick([8, 16, 32, 40, 64, 80, 96, 128]),
            mask=pick(["", "row", "full"]),
        )
        if case.products() < MOST_PRODUCTS:
            made += 1
            yield case


def cases() -> dict[str, Case]:
    """All cases by name; the same on every machine."""
    rng = np.random.default_rng(20261122)
    makers = {"conv": _convs, "matmul": _matmuls, "attention": _attentions}
    return {f"{kind} {i:03d}": case for kind, make in makers.items() for i, case in enumerate(make(rng, COUNTS[kind]))}


class Model:
    """A graph that is built up node by node, with weights from a seed."""

    def __init__(self, dtype: str, seed: int) -> None:
        self._type = TYPES[dtype]
        self._rng = np.random.default_rng(seed)
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._weights: list[onnx.TensorProto] = []

    def input(self, name: str, dims: tuple[int, ...]) -> str:
        """An input of the model."""
        self._inputs.append(helper.make_tensor_value_info(name, self._type, dims))
        return name

    def weight(self, name: str, dims: tuple[int, ...], scale: float) -> str:
        """A constant; normally distributed."""
        values = (self._rng.standard_normal(dims) * scale).astype(helper.tensor_dtype_to_np_dtype(self._type))
        self._weights.append(numpy_helper.from_array(values, name))
        return name

    def integers(self, name: str, values: list[int]) -> str:
        """A constant of dims or axes."""
        self._weights.append(numpy_helper.from_array(np.array(values, np.int64), name))
        return name

    def number(self, name: str, value: float) -> str:
        """A constant of rank 0."""
        self._weights.append(
            numpy_helper.from_array(np.array(value, helper.tensor_dtype_to_np_dtype(self._type)), name)
        )
        return name

    def add(self, op: str, *operands: str, **attributes: Any) -> str:
        """A node; its result's name."""
        self._nodes.append(helper.make_node(op, operands, [f"v{len(self._nodes)}"], **attributes))
        return f"v{len(self._nodes) - 1}"

    def finish(self, result: str) -> onnx.ModelProto:
        """The model."""
        output = helper.make_tensor_value_info(result, self._type, None)
        graph = helper.make_graph(self._nodes, "case", self._inputs, [output], self._weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
        return onnx.shape_inference.infer_shapes(model)


def build(case: Case, seed: int) -> onnx.ModelProto:
    """The ONNX model of a case."""
    make = Model(case.dtype, seed)
    if isinstance(case, Conv):
        return _build_conv(make, case)
    return _build_matmul(make, case) if isinstance(case, Matmul) else _build_attention(make, case)


def _build_conv(make: Model, case: Conv) -> onnx.ModelProto:
    per_group = case.channels // case.groups
    scale = (per_group * case.kernel[0] * case.kernel[1]) ** -0.5
    operands = [
        make.input("x", (case.batch, case.channels, *case.image)),
        make.weight("w", (case.filters, per_group, *case.kernel), scale),
    ]
    if case.bias:
        operands.append(make.weight("b", (case.filters,), 1.0))
    value = make.add(
        "Conv",
        *operands,
        kernel_shape=case.kernel,
        strides=case.stride,
        dilations=[case.dilation] * 2,
        pads=[case.padding] * 4,
        group=case.groups,
    )
    if case.residual:
        value = make.add("Add", value, make.input("z", (case.batch, case.filters, *case.out())))
    if case.relu:
        value = make.add("Relu", value)
    if case.flat:
        value = make.add("Reshape", value, make.integers("dims", [case.batch, case.filters, -1]))
        value = make.add("Transpose", value, perm=[0, 2, 1])
    return make.finish(value)


def _build_matmul(make: Model, case: Matmul) -> onnx.ModelProto:
    x = make.input("x", (*case.batch, case.m, case.k))
    right = (
        make.weight("w", (case.k, case.n), case.k**-0.5)
        if case.weight
        else make.input("w", (*case.batch, case.k, case.n))
    )
    value = make.add("MatMul", x, right)
    if case.bias:
        value = make.add("Add", value, make.weight("b", (case.n,), 1.0))
    if case.residual:
        value = make.add("Add", value, make.input("z", (*case.batch, case.m, case.n)))
    if case.activation:
        value = make.add(case.activation, value)
    return make.finish(value)


def _build_attention(make: Model, case: Attention) -> onnx.ModelProto:
    heads = (case.batch, case.heads)
    q, k, v = (
        make.input(name, (*heads, length, case.features))
        for name, length in (("q", case.queries), ("k", case.keys), ("v", case.keys))
    )
    scores = make.add("MatMul", q, make.add("Transpose", k, perm=[0, 1, 3, 2]))
    scores = make.add("Mul", scores, make.number("scale", case.features**-0.5))
    if case.mask:
        rows = case.queries if case.mask == "full" else 1
        scores = make.add("Add", scores, make.input("mask", (case.batch, 1, rows, case.keys)))
    return make.finish(make.add("MatMul", make.add("Softmax", scores, axis=-1), v))


def reference(case: Case, model: onnx.ModelProto, feeds: Mapping[str, Array]) -> npt.NDArray[np.float64]:
    """The result in float64, by PyTorch on the CPU, of the very operands in their narrow type."""
    import torch
    from torch.nn import functional

    given = {name: torch.from_numpy(array.astype(np.float64)) for name, array in feeds.items()}
    for tensor in model.graph.initializer:
        if tensor.data_type != TensorProto.INT64:
            given[tensor.name] = torch.from_numpy(numpy_helper.to_array(tensor).astype(np.float64))
    if isinstance(case, Conv):
        value = functional.conv2d(
            given["x"],
            given["w"],
            given.get("b"),
            stride=case.stride,
            padding=case.padding,
            dilation=case.dilation,
            groups=case.groups,
        )
        value = value + given["z"] if case.residual else value
        value = value.relu() if case.relu else value
        value = value.flatten(2).transpose(1, 2) if case.flat else value
    elif isinstance(case, Matmul):
        value = given["x"] @ given["w"]
        value = value + given["b"] if case.bias else value
        value = value + given["z"] if case.residual else value
        known = {
            "": lambda x: x,
            "Relu": torch.relu,
            "Gelu": functional.gelu,
            "Sigmoid": torch.sigmoid,
            "Tanh": torch.tanh,
        }
        value = known[case.activation](value)
    else:
        scores = given["q"] @ given["k"].transpose(2, 3) * given["scale"]
        scores = scores + given["mask"] if case.mask else scores
        value = scores.softmax(-1) @ given["v"]
    return value.numpy()

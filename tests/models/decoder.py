"""A decoder as onnxruntime-genai's model builder writes it: layers of attention over a cache and of a gated network, in f16."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx
from onnx import numpy_helper

HIDDEN, GATED, HEADS, KV_HEADS, HEAD, ROWS = 128, 256, 4, 2, 32, 64
"""Sizes of a row, of a gated layer, heads of queries and of keys, width of a head, rows of a cache."""
BLOCK = 32
_Array = npt.NDArray[np.generic]


def decoder(layers: int, *, bits: int = 16) -> onnx.ModelProto:
    """A model of one text: rows `x` [1, s, HIDDEN], the last position, and caches that are as long as the text will be.

    Args:
        layers: how many.
        bits: of the weights, 16 or 4.
    """
    names = [(f"k{layer}", f"v{layer}") for layer in range(layers)]
    caches = [
        f"float16[1,{KV_HEADS},{ROWS},{HEAD}] {prefix}{name}"
        for prefix in ("past_", "")
        for pair in names
        for name in pair
    ]
    rng = np.random.default_rng(0)
    constants: dict[str, _Array] = {}
    body = "".join(_layer(rng, layer, constants, bits) for layer in range(layers))
    model = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]>
      g (float16[1,s,{HIDDEN}] x0, int32[1] last, {", ".join(caches[: len(caches) // 2])})
        => (float16[1,s,{HIDDEN}] x{layers}, {", ".join(caches[len(caches) // 2 :])}) {{ {body} }}""")
    angles = np.outer(np.arange(ROWS), 1 / 10 ** np.arange(HEAD // 2))
    constants |= {"cos": np.cos(angles).astype(np.float16), "sin": np.sin(angles).astype(np.float16)}
    constants["total"] = np.array(ROWS, np.int32)
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    return model


def _layer(rng: np.random.Generator, i: int, constants: dict[str, _Array], bits: int) -> str:
    def matmul(result: str, x: str, inner: int, columns: int) -> str:
        name = f"{result}_w"
        if bits == 16:
            constants[name] = (rng.standard_normal((inner, columns)) / np.sqrt(inner)).astype(np.float16)
            return f"{result} = MatMul ({x}, {name})\n"
        constants[name] = rng.integers(0, 256, (columns, inner // BLOCK, BLOCK // 2)).astype(np.uint8)
        scales = rng.uniform(0.5, 1.5, columns * inner // BLOCK) / (4 * np.sqrt(inner))
        constants[f"{name}_scales"] = scales.astype(np.float16)
        attributes = f"K={inner}, N={columns}, bits={bits}, block_size={BLOCK}"
        return f"{result} = com.microsoft.MatMulNBits <{attributes}> ({x}, {name}, {name}_scales)\n"

    for name in ("before", "between"):
        constants[f"{name}{i}_scale"] = rng.uniform(0.5, 1.5, HIDDEN).astype(np.float16)
    heads = f"num_heads={HEADS}, kv_num_heads={KV_HEADS}, do_rotary=1"
    return f"""
        before{i} = SimplifiedLayerNormalization <epsilon=0.00001> (x{i}, before{i}_scale)
        {matmul(f"qkv{i}", f"before{i}", HIDDEN, HEAD * (HEADS + 2 * KV_HEADS))}
        y{i}, k{i}, v{i} = com.microsoft.GroupQueryAttention <{heads}> (qkv{i}, , , past_k{i}, past_v{i}, last, total, cos, sin)
        {matmul(f"joined{i}", f"y{i}", HEADS * HEAD, HIDDEN)}
        sum{i} = Add (x{i}, joined{i})
        between{i} = SimplifiedLayerNormalization <epsilon=0.00001> (sum{i}, between{i}_scale)
        {matmul(f"gate{i}", f"between{i}", HIDDEN, GATED)}
        {matmul(f"up{i}", f"between{i}", HIDDEN, GATED)}
        sigmoid{i} = Sigmoid (gate{i})
        swish{i} = Mul (gate{i}, sigmoid{i})
        product{i} = Mul (swish{i}, up{i})
        {matmul(f"down{i}", f"product{i}", GATED, HIDDEN)}
        x{i + 1} = Add (sum{i}, down{i})"""

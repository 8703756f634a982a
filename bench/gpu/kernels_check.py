"""Generated kernels on an NVIDIA GPU: errors against NumPy, and memory moved per second.

`pack FOLDER [ARCHITECTURE]` compiles the cases, where hipdnn-mlir is installed. `check FOLDER [PATTERN]` runs them where there is a GPU;
it needs cupy, numpy and ml_dtypes alone, and this file.
"""

import fnmatch
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
NUMPY = {"bf16": np.dtype(ml_dtypes.bfloat16), "bool": np.dtype(np.bool_)} | {
    f"{letter}{bits}": np.dtype(f"{kind}{bits // 8}")
    for letter, kind, widths in (("f", "f", (16, 32, 64)), ("i", "i", (8, 16, 32, 64)), ("u", "u", (8, 16, 32, 64)))
    for bits in widths
}
ERROR = {"f32": 3e-6, "f64": 1e-13, "f16": 2e-3, "bf16": 1.6e-2}
SUMMED = 8 * 2.0**-24
"""Error per term of a sum of products of normal numbers, one after the other in f32: its rounding errors grow with the sum."""
LAST = "last"
"""Layout in which dim 1 is the fastest."""


def values(spec: dict[str, Any]) -> Array:
    """The elements of an input by its seed: normal floats, integers below `limit`."""
    generator, dtype, dims = np.random.default_rng(spec["seed"]), NUMPY[spec["dtype"]], spec["dims"]
    if spec.get("limit") == -1:  # positions without repetition
        return (7 * np.arange(math.prod(dims)).reshape(dims)).astype(dtype)
    if "range" in spec:
        return generator.uniform(*spec["range"], dims).astype(dtype)
    if dtype.kind in "iu":
        return generator.integers(0, spec.get("limit", 100), dims).astype(dtype)
    return generator.standard_normal(dims, np.float32).astype(dtype)


def wide(x: Array) -> Array:
    """Floats in at least f32, which is enough to check 16 bits with."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind != "i" else x


def softmax(x: Array, axis: int = -1) -> Array:
    """Softmax in f64."""
    x = wide(x).astype(np.float64)
    raised = np.exp(x - x.max(axis, keepdims=True))
    return raised / raised.sum(axis, keepdims=True)


def layer_norm(x: Array, scale: Array, bias: Array) -> Array:
    """Layer norm in f64."""
    x = wide(x).astype(np.float64)
    x = x - x.mean(-1, keepdims=True)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * wide(scale) + wide(bias)


def rms_norm(x: Array, scale: Array) -> Array:
    """RMS norm in f64."""
    x = wide(x).astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * wide(scale)


def max_pool(x: Array) -> Array:
    """Windows of 3 x 3, step 2, padding 1."""
    padded = np.pad(wide(x), ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    return windows[:, :, ::2, ::2].max((-1, -2))


def convolution(x: Array, w: Array, step: int, border: int) -> Array:
    """Convolution of images in f64, one element of the filter after the other."""
    padded = np.pad(wide(x).astype(np.float64), ((0, 0), (0, 0), (border, border), (border, border)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, w.shape[2:], (2, 3))[:, :, ::step, ::step]
    taps = [(i, j) for i in range(w.shape[2]) for j in range(w.shape[3])]
    pixels = (np.tensordot(windows[..., i, j], wide(w).astype(np.float64)[:, :, i, j], ([1], [1])) for i, j in taps)
    return np.moveaxis(sum(pixels, np.float64(0)), -1, 1)


def gelu(x: Array) -> Array:
    """Gelu in f64, with erf by the C library."""
    x = wide(x).astype(np.float64)
    few = np.unique(x)
    return 0.5 * x * (1 + np.array([math.erf(v) for v in few / math.sqrt(2)])[np.searchsorted(few, x)])


def scattered(data: Array, rows: Array, updates: Array) -> Array:
    """Rows replaced."""
    made = data.copy()
    made[rows[:, 0]] = updates
    return made


FUNCTIONS: dict[str, tuple[Callable[..., Any], float, float]] = {
    "exp": (np.exp, -100, 88), "log": (np.log, 1e-3, 1e3), "sin": (np.sin, -1000, 1000), "cos": (np.cos, -1000, 1000),
    "tan": (np.tan, -100, 100), "asin": (np.arcsin, -1, 1), "acos": (np.arccos, -1, 1), "atan": (np.arctan, -20, 20),
    "sinh": (np.sinh, -80, 80), "cosh": (np.cosh, -80, 80), "tanh": (np.tanh, -9, 9), "asinh": (np.arcsinh, -100, 100),
    "acosh": (np.arccosh, 1, 100), "atanh": (np.arctanh, -1, 1), "erf": (np.vectorize(math.erf), -4, 4), "sqrt": (np.sqrt, 0, 100),
    "rsqrt": (lambda x: 1 / np.sqrt(x), 1e-3, 100), "reciprocal": (lambda x: 1 / x, 1e-3, 100),
}  # fmt: skip
REFERENCES: dict[str, Callable[..., Array]] = {
    "add": lambda a, b: wide(a) + wide(b),
    "bias_relu": lambda a, b: np.maximum(wide(a) + wide(b), 0),
    "copy": lambda a: a,
    "softmax": softmax,
    "softmax_channels": lambda a: softmax(a, 1),
    "layer_norm": layer_norm,
    "rms_norm": rms_norm,
    "gelu": gelu,
    "mean_spatial": lambda a: wide(a).astype(np.float64).mean((2, 3), keepdims=True),
    "sum_rows": lambda a: a.astype(np.float64).sum(0, keepdims=True),
    "max_pool": max_pool,
    "matmul": lambda a, b: wide(a).astype(np.float64) @ wide(b).astype(np.float64),
    "conv_1x1": lambda x, w: convolution(x, w, 1, 0),
    "conv_3x3": lambda x, w: convolution(x, w, 1, 1),
    "conv_7x7": lambda x, w: convolution(x, w, 2, 3),
    "gather": lambda a, i: a[i],
    "scatter": scattered,
    "arg_max": lambda a: np.argmax(wide(a), -1, keepdims=True),
    "top_5": lambda a: np.take_along_axis(wide(a), np.argsort(-wide(a), -1, kind="stable")[:, :5], -1),
    "cumsum": lambda a: np.cumsum(a, -1, dtype=a.dtype),
    "resize": lambda a: a.repeat(2, 2).repeat(2, 3),
    **{name: lambda x, f=function: f(x.astype(np.float64)) for name, (function, _, _) in FUNCTIONS.items()},
}


def strides_of(dims: Sequence[int], layout: str | None) -> list[int]:
    """Packed strides, in elements."""
    order = [0, *range(2, len(dims)), 1] if layout == LAST else list(range(len(dims)))
    strides, step = [0] * len(dims), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= dims[axis]
    return strides


def tensor(
    dtype: str, *dims: int, layout: str | None = None, shown: Sequence[int] | None = None, **more: Any
) -> dict[str, Any]:
    """One tensor; `shown` are the dims to which it broadcasts."""
    strides = strides_of(dims, layout)
    if shown is None:
        return {"dtype": dtype, "dims": list(dims), "seen": list(dims), "strides": strides, **more}
    strides = [0 if size == 1 else step for size, step in zip(dims, strides, strict=True)]
    return {"dtype": dtype, "dims": list(dims), "seen": list(shown), "strides": strides, **more}


def code_of_operation(name: str, arity: int) -> list[list[Any]]:
    """An elementwise kernel of one instruction."""
    code: list[list[Any]] = [["load", i] for i in range(arity)]
    return [*code, [name, *range(arity)], ["store", arity, arity]]


COPY = {"code": [["load", 0], ["store", 1, 0]]}


def cases() -> list[dict[str, Any]]:
    """All cases: function or graph, tensors in and out, reference."""
    t, image, big = tensor, (32, 256, 56, 56), 1 << 25
    found: list[dict[str, Any]] = []

    def case(name: str, what: str, reference: str, ins: list[Any], outs: list[Any], **attributes: Any) -> None:
        found.append(
            {"name": name, "what": what, "reference": reference, "ins": ins, "outs": outs, "attributes": attributes}
        )

    for dtype in ("f32", "f16", "bf16"):
        case(
            f"add {dtype}",
            "elementwise",
            "add",
            [t(dtype, big), t(dtype, big)],
            [t(dtype, big)],
            code=code_of_operation("add", 2),
        )
    case(
        "add f32 odd",
        "elementwise",
        "add",
        [t("f32", 10_000_019), t("f32", 10_000_019)],
        [t("f32", 10_000_019)],
        code=code_of_operation("add", 2),
    )
    bias = [["load", 0], ["load", 1], ["add", 0, 1], ["const", "f16", 0], ["max", 2, 3], ["store", 2, 4]]
    case("bias + relu f16 channels-last", "elementwise", "bias_relu", [t("f16", *image, layout=LAST), t("f16", 1, 256, 1, 1, shown=image)],
         [t("f16", *image, layout=LAST)], code=bias)  # fmt: skip
    case(
        "cast f32 to f16",
        "elementwise",
        "copy",
        [t("f32", big)],
        [t("f16", big)],
        code=[["load", 0], ["cast", "f16", 0], ["store", 1, 1]],
    )
    for dtype in ("f32", "f16", "i8"):
        case(
            f"to channels-last {dtype}",
            "elementwise",
            "copy",
            [t(dtype, *image)],
            [t(dtype, *image, layout=LAST)],
            **COPY,
        )
        case(
            f"to channels-first {dtype}",
            "elementwise",
            "copy",
            [t(dtype, *image, layout=LAST)],
            [t(dtype, *image)],
            **COPY,
        )
    for dtype, rows, columns in (
        ("f32", 32768, 512),
        ("f16", 16384, 1024),
        ("f16", 4096, 8192),
        ("f32", 64, 500_000),
        ("f32", 9999, 77),
    ):
        x = t(dtype, rows, columns)
        case(f"softmax {dtype} {rows}x{columns}", "softmax", "softmax", [x], [x])
    x = t("f32", 8, 150, 128 * 128)
    case("softmax over channels f32", "softmax_channels", "softmax_channels", [x], [x])
    for dtype, rows, columns in (("bf16", 32768, 768), ("f32", 16384, 1024), ("f16", 8192, 4096)):
        x, w = t(dtype, rows, columns), t(dtype, columns)
        case(f"layer norm {dtype} {rows}x{columns}", "layer_norm", "layer_norm", [x, w, w], [x])
        case(f"RMS norm {dtype} {rows}x{columns}", "rms_norm", "rms_norm", [x, w], [x])
    case("gelu bf16", "gelu", "gelu", [t("bf16", big)], [t("bf16", big)])
    case("gelu f32 (erf)", "gelu", "gelu", [t("f32", 1 << 22)], [t("f32", 1 << 22)])
    for layout in (None, LAST):
        x = t("f16", 256, 2048, 7, 7, layout=layout)
        case(
            f"global average f16 {layout or 'first'}", "mean_spatial", "mean_spatial", [x], [t("f16", 256, 2048, 1, 1)]
        )
        x, y = t("f16", 64, 64, 112, 112, layout=layout), t("f16", 64, 64, 56, 56, layout=layout)
        case(f"max pool f16 {layout or 'first'}", "max_pool", "max_pool", [x], [y])
    case("sum over rows f32", "reduce", "sum_rows", [t("f32", 8192, 4096)], [t("f32", 1, 4096)], operator="add")
    case(
        "gather f16",
        "gather",
        "gather",
        [t("f16", 50_000, 768), t("i64", 64, 512, limit=50_000)],
        [t("f16", 64, 512, 768)],
        axis=0,
    )
    case("scatter f16", "scatter_nd", "scatter", [t("f16", 8192, 1024), t("i64", 64, 1, limit=-1), t("f16", 64, 1024)],
         [t("f16", 8192, 1024)], reduction="none")  # fmt: skip
    case(
        "arg max f32",
        "arg_reduce",
        "arg_max",
        [t("f32", 4096, 8192)],
        [t("i64", 4096, 1)],
        axis=1,
        mode="max",
        select_last=False,
    )
    case("running sum i64", "scan", "cumsum", [t("i64", 256, 4096)], [t("i64", 256, 4096)],
         axis=1, operator="add", exclusive=False, reverse=False)  # fmt: skip
    case("resize x2 f16 channels-last", "resize", "resize", [t("f16", 16, 64, 56, 56, layout=LAST)],
         [t("f16", 16, 64, 112, 112, layout=LAST)], mode="nearest", coordinates="asymmetric", nearest="floor", cubic=-0.75,
         exclude_outside=False, antialias=False, extrapolation=0.0, scales=[1, 1, 2, 2])  # fmt: skip
    products(case)
    for name, (_, low, high) in FUNCTIONS.items():
        x = t("f32", 1 << 18, range=[low, high])
        case(f"{name} f32", "elementwise", name, [x], [t("f32", 1 << 18)], code=code_of_operation(name, 1))
    for number, made in enumerate(found):
        made["terms"] = terms_of(made)
        for place, spec in enumerate(made["ins"]):
            made["ins"][place] = {**spec, "seed": 100 * number + place}
    return found


def products(case: Callable[..., None]) -> None:
    """Add the cases of convolutions and matrix products."""
    t = tensor
    for dtype, m, k, n in (
        ("f32", 4096, 4096, 4096),
        ("f16", 4096, 4096, 4096),
        ("f32", 512, 2048, 512),
        ("f32", 1, 2048, 1000),
    ):
        case(f"product {dtype} {m}x{k}x{n}", "matmul", "matmul", [t(dtype, m, k), t(dtype, k, n)], [t(dtype, m, n)])
    heads = t("f32", 96, 384, 384)
    case("product f32 96 of 384x384", "matmul", "matmul", [heads, heads], [heads])
    for layout in (None, LAST):
        for what, x, w, size in (
            ("conv_3x3", (32, 64, 56, 56), (64, 64, 3, 3), 56),
            ("conv_1x1", (32, 256, 56, 56), (64, 256, 1, 1), 56),
            ("conv_7x7", (32, 3, 224, 224), (64, 3, 7, 7), 112),
            ("conv_3x3", (1, 512, 7, 7), (512, 512, 3, 3), 7),
        ):
            ins = [t("f32", *x, layout=layout), t("f32", *w, layout=layout)]
            name = f"{what} f32 {x[0]}x{x[1]}x{x[2]} {layout or 'first'}"
            case(name, what, what, ins, [t("f32", x[0], w[0], size, size, layout=layout)])


def terms_of(case: dict[str, Any]) -> int:
    """Products of normal numbers that each result of a convolution or matrix product is the sum of."""
    if case["what"] == "matmul":
        return int(case["ins"][0]["dims"][-1])
    return math.prod(case["ins"][1]["dims"][1:]) if case["what"].startswith("conv") else 1


# -- pack -------------------------------------------------------------------------------------------------------------


def compiled(case: dict[str, Any], architecture: str) -> Any:
    """The kernel of a case, or why there is none."""
    from hipdnn_mlir.codegen import find_architecture, generate, generate_graph

    found = find_architecture(architecture)
    if case["what"] in GRAPHS:
        return generate_graph(graph_of(case), found)
    tensors = [
        {"role": role, "dtype": t["dtype"], "dims": t["seen"], "strides": t["strides"]}
        for role in ("in", "out")
        for t in case[f"{role}s"]
    ]
    return generate({"function": case["what"], "tensors": tensors, "attributes": case["attributes"]}, found)


GRAPHS: dict[str, tuple[str, list[Any]]] = {
    "softmax": ("aten.softmax.int", [..., -1, None]),
    "softmax_channels": ("aten.softmax.int", [..., 1, None]),
    "layer_norm": ("aten.layer_norm", [..., "columns", ..., ..., 1e-5, True]),
    "rms_norm": ("aten.rms_norm", [..., "columns", ..., 1e-6]),
    "gelu": ("aten.gelu", [..., "none"]),
    "mean_spatial": ("aten.mean.dim", [..., [2, 3], True, None]),
    "max_pool": ("aten.max_pool2d", [..., [3, 3], [2, 2], [1, 1], [1], False]),
    "matmul": ("aten.matmul", [..., ...]),
    "conv_1x1": ("aten.convolution", [..., ..., None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1]),
    "conv_3x3": ("aten.convolution", [..., ..., None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1]),
    "conv_7x7": ("aten.convolution", [..., ..., None, [2, 2], [3, 3], [1, 1], False, [0, 0], 1]),
}
"""Rows of the op table with their arguments; `...` are the operands, in order."""


def graph_of(case: dict[str, Any]) -> Any:
    """The operation graph of a case, as the op table emits it."""
    from hipdnn_mlir.ops.emitter import Emitter, Operand, Storage
    from hipdnn_mlir.ops.spec import OpView, TensorArg, TensorType
    from hipdnn_mlir.ops.table import find
    from hipdnn_mlir_runtime.dtypes import BY_NAME, F32

    emitter = Emitter(F32)
    operands = []
    for key, t in enumerate(case["ins"]):
        dims, dtype = tuple(t["dims"]), BY_NAME[t["dtype"]]
        emitter.bind(key, Operand(dims, dtype, Storage(tuple(t["strides"]))), key)
        operands.append(TensorArg(key, TensorType(dims, dtype)))
    name, arguments = GRAPHS[case["what"]]
    left = iter(operands)
    args = [next(left) if a is ... else [case["ins"][0]["dims"][-1]] if a == "columns" else a for a in arguments]
    out = case["outs"][0]
    kind = TensorType(tuple(out["dims"]), BY_NAME[out["dtype"]])
    row = find(f"torch.{name}")
    assert row is not None
    assert row.emit is not None
    made = row.emit(emitter, OpView(name, args, [kind], used=(True,)))
    emitter.define("result", made[0] if isinstance(made, list) else made, kind)
    return emitter.finish([("result", kind)], [Storage(tuple(out["strides"]))])


def pack(folder: Path, architecture: str) -> None:
    """Compile every case into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    listed = []
    for number, case in enumerate(cases()):
        made = compiled(case, architecture)
        if not hasattr(made, "code"):
            print(f"{case['name']}: left out, {made}")
            continue
        case["launches"] = []
        for place, kernel in enumerate([*made.preceded_by, made]):
            file = f"{number:03}-{place}.ptx"
            (folder / file).write_text(kernel.code)
            launch = {
                "file": file,
                "function": kernel.name,
                "grid": kernel.grid,
                "block": kernel.block,
                "arguments": kernel.arguments,
            }
            case["launches"].append(launch)
        listed.append(case)
    (folder / "cases.json").write_text(json.dumps(listed, indent=1))
    print(f"{len(listed)} cases in {folder}")


# -- check ------------------------------------------------------------------------------------------------------------


def memory_of(array: Array, spec: dict[str, Any]) -> Array:
    """An array's elements as its layout has them in memory."""
    if len(spec["dims"]) > 2 and spec["strides"] == strides_of(spec["dims"], LAST):
        return np.ascontiguousarray(np.moveaxis(array, 1, -1)).reshape(-1)
    return array.reshape(-1)


def array_of(memory: Array, spec: dict[str, Any]) -> Array:
    """The array that lies in memory in a layout."""
    return np.lib.stride_tricks.as_strided(memory, spec["dims"], [s * memory.itemsize for s in spec["strides"]])


def run(case: dict[str, Any], folder: Path, repeats: int = 20) -> tuple[str, bool]:
    """One line on a case, and whether it is right."""
    import cupy

    arrays = [
        values(spec) if spec.get("limit") != -1 else np.arange(math.prod(spec["dims"])).reshape(spec["dims"]) * 7
        for spec in case["ins"]
    ]
    buffers = [cupy.asarray(memory_of(a, s).view(np.uint8)) for a, s in zip(arrays, case["ins"], strict=True)]
    sizes = [math.prod(s["dims"]) * NUMPY[s["dtype"]].itemsize for s in case["outs"]]
    buffers += [cupy.full(size, 0xCD, cupy.uint8) for size in sizes]
    launches = []
    for launch in case["launches"]:
        function = cupy.RawModule(path=str(folder / launch["file"])).get_function(launch["function"])
        launches.append((function, launch["grid"], launch["block"], tuple(buffers[a] for a in launch["arguments"])))

    def once() -> None:
        for function, grid, block, arguments in launches:
            function(tuple(grid), tuple(block), arguments)

    once()
    cupy.cuda.runtime.deviceSynchronize()
    want = REFERENCES[case["reference"]](*arrays)
    out = case["outs"][0]
    got = array_of(buffers[len(arrays)].get().view(NUMPY[out["dtype"]]), out)
    error, is_right = compared(got, want, out["dtype"], case["terms"])
    start, stop = cupy.cuda.Event(), cupy.cuda.Event()
    once()
    start.record()
    for _ in range(repeats):
        once()
    stop.record()
    stop.synchronize()
    elapsed_us = cupy.cuda.get_elapsed_time(start, stop) * 1000 / repeats
    moved = sum(sizes) + sum(math.prod(s["dims"]) * NUMPY[s["dtype"]].itemsize for s in case["ins"])
    if case["what"] == "gather":
        moved = 2 * sizes[0]
    mark = "" if is_right else "  WRONG"
    return (
        f"{case['name']:34} {elapsed_us:10.1f} us {moved / elapsed_us / 1000:8.1f} GB/s  error {error}{mark}",
        is_right,
    )


def compared(got: Array, want: Array, dtype: str, terms: int) -> tuple[str, bool]:
    """Greatest error in words, and whether it is within what the type, and f32 for sums of so many terms, allow."""
    if dtype not in ERROR:
        count = int(np.count_nonzero(got != want))
        return f"{count} elements differ", count == 0
    a, b = wide(got).astype(np.float64), np.asarray(want, np.float64)
    difference = np.abs(a - b)
    relative = float(np.nanmax(difference / np.maximum(np.abs(b), 1e-3 if dtype != "f64" else 1e-9)))
    absolute = float(np.nanmax(difference))
    is_right = (
        bool(np.all(difference <= ERROR[dtype] * np.maximum(1, np.abs(b)) + (terms - 1) * SUMMED))
        and not np.isnan(a).any()
    )
    return f"abs {absolute:.1e} rel {relative:.1e}", is_right


def check(folder: Path, pattern: str) -> int:
    """Run the packed cases whose names match."""
    failures = 0
    for case in json.loads((folder / "cases.json").read_text()):
        if not fnmatch.fnmatch(case["name"], pattern):
            continue
        line, is_right = run(case, folder)
        print(line, flush=True)
        failures += not is_right
    print(f"{failures} wrong")
    return 1 if failures else 0


def main() -> int:
    """Run a command."""
    match sys.argv[1:]:
        case ["pack", folder, *more]:
            pack(Path(folder), more[0] if more else "sm_90")
            return 0
        case ["check", folder, *more]:
            return check(Path(folder), more[0] if more else "*")
    print(__doc__)
    return 2


if __name__ == "__main__":
    sys.exit(main())

"""One step of a decoder on an NVIDIA GPU: compiled here without its weights, run there with random ones, against PyTorch.

`python bench/gpu/decode.py pack FOLDER FILE [--batch 1] [--rows 256] [--valid 129] [--query 1]` compiles the folder of
onnxruntime-genai's builder (a Llama of f16 or int4 for CUDA, see tests/generation/decoders.py) for sm_90 at static sizes.
`run FILE... [--torch] [--profile]` is for the GPU: it fills the weights, compares the logits with PyTorch's in f32, and prints
the milliseconds of a step, by replay of a captured graph, beside the bytes of weights and valid cache over the card's memory
bandwidth. With `--torch` also those of PyTorch with a static cache, torch.compile and CUDA graphs.
"""

from __future__ import annotations

import argparse
import base64
import gzip
import json
import sys
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

SMALL = 1 << 17
"""Bytes up to which a constant is carried along."""
BANDWIDTH = {"H200": 4.3e12, "H100": 3.35e12}
"""Bytes a second that a card reads at best."""
STEPS, ROUNDS = 20, 15
EPSILON = 1e-6


def pack(folder: Path, file: Path, batch: int, rows: int, valid: int, query: int, page_rows: int | None) -> None:
    """Write a program without its large constants, and the sizes that it was compiled for; with `page_rows` its caches are in pages."""
    from hipdnn_mlir import compile as compiled

    sizes = {
        "batch_size": batch,
        "sequence_length": query,
        "past_sequence_length": rows,
        "total_sequence_length": valid,
    }
    if page_rows is not None:
        of_text = rows // page_rows
        sizes = sizes | {"pages": 1 + batch * of_text, "sequence_pages": of_text}
        del sizes["past_sequence_length"]
    program = compiled(folder / "model.onnx", target="sm_90", shapes=sizes, page_rows=page_rows)
    config = json.loads((folder / "genai_config.json").read_text())["model"]["decoder"]
    more = {"config": config, "valid": valid, "rows": rows, "batch": batch, "query": query, "page_rows": page_rows}
    write_packed(program, file, more)


def write_packed(program: Any, file: Path, more: dict[str, Any]) -> None:
    """Write a program without its large constants, and what else is said of it."""
    small, large = {}, {}
    for name, array in program.tensors.items():
        held = np.asarray(array)
        if held.nbytes <= SMALL:
            small[name] = [held.dtype.str, held.shape, base64.b64encode(held.tobytes()).decode()]
        else:
            large[name] = [held.dtype.str, held.shape]
    written = {"text": program.text, "small": small, "large": large, **more}
    file.write_bytes(gzip.compress(json.dumps(written).encode(), 6))


def read_packed(file: Path) -> dict[str, Any]:
    """What `write_packed` wrote."""
    found: dict[str, Any] = json.loads(gzip.decompress(file.read_bytes()))
    return found


def with_weights(packed: dict[str, Any]) -> tuple[SimpleNamespace, dict[str, Any]]:
    """A packed program with random weights, the same in each process; and all constants by name, on the GPU."""
    torch.manual_seed(0)
    arrays = {
        name: np.frombuffer(base64.b64decode(data), kind).reshape(shape)
        for name, (kind, shape, data) in packed["small"].items()
    }
    on_gpu = {name: torch.from_numpy(array.copy()).cuda() for name, array in arrays.items()}
    for name, (kind, shape) in packed["large"].items():
        dtype = np.dtype(kind)
        if dtype == np.uint8:
            # Pairs of codes from -7 to 7: those of a mean that is not zero would let errors grow from layer to layer.
            low, high = (torch.randint(-7, 8, shape, device="cuda") & 15 for _ in range(2))
            made = (low | high << 4).to(torch.uint8)
        elif "scales" in name:
            made = (torch.rand(shape, device="cuda") * 0.002 + 0.004).to(
                {2: torch.float16, 4: torch.float32}[dtype.itemsize]
            )
        else:
            made = (torch.randn(shape, device="cuda") * 0.02).to(torch.float16)
        on_gpu[name], arrays[name] = made, made.cpu().numpy()
    return SimpleNamespace(text=packed["text"], tensors=arrays), on_gpu


class Step:
    """A packed step with weights.

    Args:
        file: what `pack` wrote.
    """

    def __init__(self, file: str) -> None:
        self.file, self.packed = file, read_packed(Path(file))
        self.program, self.on_gpu = with_weights(self.packed)
        config, b = self.packed["config"], self.packed["batch"]
        dims = (b, config["num_key_value_heads"], self.packed["rows"], config["head_size"])
        self.layers, self.valid, self.query = config["num_hidden_layers"], self.packed["valid"], self.packed["query"]
        self.heads, self.kv_heads = config["num_attention_heads"], config["num_key_value_heads"]
        self.caches = [[torch.randn(dims, device="cuda").half() for _ in range(2)] for _ in range(self.layers)]
        self.ids = torch.randint(3, 30000, (b, self.query), device="cuda")
        self.mask = torch.ones((b, self.valid), dtype=torch.int64, device="cuda")
        self.table = None
        if (page_rows := self.packed.get("page_rows")) is not None:
            count = self.packed["rows"] // page_rows
            self.table = (1 + torch.randperm(b * count, device="cuda")).to(torch.int32).reshape(b, count)
        weights = sum(t.numel() * t.element_size() for n, t in self.on_gpu.items() if "embed" not in n)
        read = 2 * self.layers * b * dims[1] * self.valid * dims[3] * 2
        self.read_bytes = weights + read

    def weight(self, name: str) -> Any:
        """A matrix [columns, inner] of f16."""
        plain = f"{name}.MatMul.weight.folded"
        if plain in self.on_gpu:
            return self.on_gpu[plain]
        codes, scales = (self.on_gpu[f"{name}.MatMul.weight_{part}"] for part in ("Q4.folded", "scales"))
        low, high = (codes & 15).to(torch.int8), (codes >> 4).to(torch.int8)
        numbers = torch.stack([low, high], -1).reshape(codes.shape[0], -1)
        numbers = torch.where(numbers > 7, numbers - 16, numbers).float()
        return (numbers.reshape(*scales.shape, -1) * scales[..., None]).reshape(numbers.shape).half()

    def in_pages(self, cache: Any) -> Any:
        """A copy of a cache [batch, heads, rows, size], in pages where the program has them; page 0 is nobody's."""
        if self.table is None:
            return cache.clone()
        b, heads, rows, size = cache.shape
        count = self.table.shape[1]
        parts = cache.reshape(b, heads, count, rows // count, size).transpose(1, 2)
        pool = torch.zeros((1 + b * count, heads, rows // count, size), dtype=cache.dtype, device="cuda")
        pool[self.table.long()] = parts
        return pool

    def whole(self, cache: Any) -> Any:
        """What `in_pages` was made of, after a step."""
        if self.table is None:
            return cache
        found = cache[self.table.long()].transpose(1, 2)
        return found.reshape(*found.shape[:2], -1, found.shape[-1])

    def bound(self, session: Any, stream: Any) -> tuple[Any, Any, list[list[Any]]]:
        """A function that runs a step in place, its logits, and the caches that it changes."""
        config = self.packed["config"]
        vocabulary = self.on_gpu["model.embed_tokens.weight"].shape[0]
        logits = torch.zeros((self.ids.shape[0], self.query, vocabulary), dtype=torch.float16, device="cuda")
        caches = [[self.in_pages(t) for t in pair] for pair in self.caches]
        feeds, outs = {"input_ids": self.ids, "attention_mask": self.mask}, {"logits": logits}
        if self.table is not None:
            feeds["page_table"] = self.table
        for layer, pair in enumerate(caches):
            for kind, tensor in zip(("key", "value"), pair, strict=True):
                feeds[config["inputs"][f"past_{kind}_names"] % layer] = tensor
                outs[config["outputs"][f"present_{kind}_names"] % layer] = tensor
        return session.bind(feeds, outs, stream=stream), logits, caches


class Llama(torch.nn.Module):
    """The same step in PyTorch.

    Args:
        step: whose weights to take.
        dtype: of weights and arithmetic.
    """

    def __init__(self, step: Step, dtype: Any) -> None:
        super().__init__()
        self.step, self.dtype = step, dtype

        def kept(name: str, tensor: Any) -> Any:
            # Tensors that a module owns stay where they are: captured graphs may write them.
            self.register_buffer(name, tensor)
            return getattr(self, name)

        def normalized(name: str) -> Any:
            return step.on_gpu[f"model.layers.{name}.weight"].to(dtype)

        self.embed = step.on_gpu["model.embed_tokens.weight"]
        self.cos, self.sin = (step.on_gpu[name].to(dtype) for name in ("cos_cache", "sin_cache"))
        self.layers = []
        for layer in range(step.layers):
            names = ("attn.qkv_proj", "attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj")
            qkv, o, gate, up, down = (step.weight(f"model.layers.{layer}.{name}").to(dtype) for name in names)
            norms = (normalized(f"{layer}.input_layernorm"), normalized(f"{layer}.post_attention_layernorm"))
            self.layers.append((qkv, o, torch.cat([gate, up]), down, *norms))
        self.norm, self.head = normalized(f"{step.layers}.final_norm_layernorm"), step.weight("lm_head").to(dtype)
        self.caches = [
            [kept(f"cache_{layer}_{kind}", t.to(dtype).clone()) for kind, t in enumerate(pair)]
            for layer, pair in enumerate(step.caches)
        ]

    def forward(self, ids: Any, positions: Any, mask: Any) -> Any:
        """Logits; the caches get new rows."""
        from torch.nn.functional import embedding, linear, rms_norm, scaled_dot_product_attention, silu

        step = self.step
        b, s = ids.shape
        x = embedding(ids, self.embed).to(self.dtype)
        cos, sin = self.cos[positions][None, None], self.sin[positions][None, None]

        def rotated(t: Any) -> Any:
            first, second = t.chunk(2, -1)
            return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

        for (qkv, o, gate_up, down, before, after), (keys, values) in zip(self.layers, self.caches, strict=True):
            size = keys.shape[3]
            q, k, v = (
                linear(rms_norm(x, before.shape, before, EPSILON), qkv)
                .view(b, s, -1, size)
                .transpose(1, 2)
                .split([step.heads, step.kv_heads, step.kv_heads], 1)
            )
            keys.index_copy_(2, positions, rotated(k))
            values.index_copy_(2, positions, v)
            y = scaled_dot_product_attention(rotated(q), keys, values, attn_mask=mask, enable_gqa=True)
            x = x + linear(y.transpose(1, 2).reshape(b, s, -1), o)
            gate, up = linear(rms_norm(x, after.shape, after, EPSILON), gate_up).chunk(2, -1)
            x = x + linear(silu(gate) * up, down)
        return linear(rms_norm(x, self.norm.shape, self.norm, EPSILON), self.head)

    def arguments(self) -> tuple[Any, Any, Any]:
        """Of a call: ids, positions, and which rows of the caches each query sees."""
        first = self.step.valid - self.step.query
        positions = torch.arange(first, self.step.valid, device="cuda")
        rows = torch.arange(self.step.packed["rows"], device="cuda")
        return self.step.ids, positions, (rows[None] <= positions[:, None])[None, None]


def timed(run: Any, stream: Any) -> list[float]:
    """Milliseconds of a step, of each of some rounds."""
    found = []
    for _ in range(ROUNDS):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record(stream)
        for _ in range(STEPS):
            run()
        end.record(stream)
        end.synchronize()
        found.append(start.elapsed_time(end) / STEPS)
    return found


def measure(file: str, with_torch: bool, profiles: bool) -> None:
    """Print what a step is worth."""
    from hipdnn_mlir_runtime.session.session import Session

    step = Step(file)
    session = Session(step.program, port="cuda", graph_capture=True)
    stream = torch.cuda.Stream()
    with torch.no_grad():
        reference = Llama(step, torch.float32)
        want = reference(*reference.arguments())
        want_caches = reference.caches
        del reference
    torch.cuda.synchronize()
    run, logits, caches = step.bound(session, stream)
    torch.cuda.synchronize()  # the caches are copied on another stream
    run()
    torch.cuda.synchronize()
    error = ((logits.float() - want).square().mean() / want.square().mean()).sqrt().item()
    furthest = max(
        ((step.whole(a).float() - b).abs().max() / b.abs().max()).item()
        for ours, theirs in zip(caches, want_caches, strict=True)
        for a, b in zip(ours, theirs, strict=True)
    )
    del want, want_caches
    card = torch.cuda.get_device_name()
    peak = next((rate for name, rate in BANDWIDTH.items() if name in card), None)
    theirs = None
    if with_torch:
        torch.cuda.empty_cache()
        with torch.no_grad(), torch.cuda.stream(stream):
            model = Llama(step, torch.float16)
            arguments = model.arguments()
            compiled = torch.compile(model, mode="reduce-overhead", fullgraph=True)
            for _ in range(6):
                compiled(*arguments)
            theirs = timed(lambda: compiled(*arguments), stream)
    for _ in range(5):
        run()
    ours = timed(run, stream)
    if with_torch:
        with torch.no_grad(), torch.cuda.stream(stream):
            theirs += timed(lambda: compiled(*arguments), stream)
        ours += timed(run, stream)
    ms = median(ours)
    line = f"{card} {Path(file).name}: {ms:.4f} ms a step"
    if peak is not None:
        limit = 1e3 * step.read_bytes / peak
        line += f", {ms / limit:.2f} x the {limit:.3f} ms that {step.read_bytes / 1e9:.2f} GB take"
    if theirs is not None:
        line += f", {ms / median(theirs):.2f} x PyTorch's {median(theirs):.4f} ms"
    print(
        f"{line}; error {error:.1e} of the logits' RMS, caches differ by {furthest:.1e} of their largest element at most",
        flush=True,
    )
    if profiles:
        from hipdnn_mlir_runtime.session.profiling.profile import profile

        run_feeds = {
            port.name: np.zeros(port.shape, {"i64": np.int64, "f16": np.float16}[str(port.dtype)])
            for port in session.inputs
        }
        run_feeds["attention_mask"] = np.ones(run_feeds["attention_mask"].shape, np.int64)
        made = profile(session, run_feeds, repeat=20)
        total: dict[str, list[float]] = {}
        for row in made.steps:
            total.setdefault(str(row.operations), []).append(row.time.median_us)
        for name, times in sorted(total.items(), key=lambda item: -sum(item[1])):
            print(f"{sum(times):9.1f} us {len(times):4d} {name}")


def main() -> None:
    """Pack or run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack")
    packing.add_argument("folder", type=Path)
    packing.add_argument("file", type=Path)
    for name, default in (("batch", 1), ("rows", 256), ("valid", 129), ("query", 1)):
        packing.add_argument(f"--{name}", type=int, default=default)
    packing.add_argument("--page-rows", type=int)
    running = commands.add_parser("run")
    running.add_argument("files", nargs="+")
    running.add_argument("--torch", action="store_true")
    running.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    if given.command == "pack":
        pack(given.folder, given.file, given.batch, given.rows, given.valid, given.query, given.page_rows)
        return
    for file in given.files:
        measure(file, given.torch, given.profile)


if __name__ == "__main__":
    sys.exit(main())

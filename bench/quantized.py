"""Quantized models on the host port and on ONNX Runtime's CPU provider, in turns, in CPU time of the process.

``python bench/quantized.py [--models resnet50,mobilenetv3,vit-tiny,bert] [--threads 1 2] [--repeat 15] [--folder DIR]`` exports models of
timm and transformers with random weights, quantizes them with ONNX Runtime's quantizer (u8 values, s8 weights per channel; BERT in each
run), and prints a line for each number of threads: CPU time and time on the wall, and how far both are from ONNX Runtime on the f32 model,
relative to the largest output. `--profile` adds where the time goes. Models stay in the folder. Needs timm, torchvision, transformers and
torch.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime as ort
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import hipdnn_mlir
from hipdnn_mlir_runtime.cli.measure import interleave
from hipdnn_mlir_runtime.session.profiling.profile import profile

Array = npt.NDArray[np.generic]
IMAGES = {
    "resnet50": "resnet50",
    "mobilenetv3": "mobilenetv3_large_100",
    "vit-tiny": "vit_tiny_patch16_224",
}
"""Models of timm."""


def export_image_model(name: str, path: Path, batch: int) -> None:
    """A model of timm, for as many images."""
    import timm
    import torch

    torch.manual_seed(0)
    options = {"zero_init_last": False} if name == "resnet50" else {}
    model = timm.create_model(IMAGES[name], exportable=True, **options).eval()
    torch.onnx.export(
        model, (torch.randn(batch, 3, 224, 224),), str(path), input_names=["x"], dynamo=False, opset_version=17
    )


def export_bert(path: Path) -> None:
    """A BERT-base without its embeddings' words, for 128 tokens."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    config = BertConfig(vocab_size=1000, attn_implementation="eager")
    model = BertModel(config).eval()
    tokens = torch.randint(0, 1000, (1, 128))
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    torch.onnx.export(model, (), str(path), kwargs=inputs, dynamo=True, external_data=False)


class RandomImages(CalibrationDataReader):
    """Normal numbers."""

    def __init__(self, count: int, batch: int) -> None:
        rng = np.random.default_rng(0)
        self._left: Iterator[dict[str, Array]] = iter(
            [{"x": rng.standard_normal((batch, 3, 224, 224)).astype(np.float32)} for _ in range(count)]
        )

    def get_next(self) -> dict[str, Array] | None:
        """Inputs of the next run."""
        return next(self._left, None)


def make(name: str, folder: Path, batch: int = 1) -> Path:
    """The quantized model of a name, for as many images, made where the folder lacks it."""
    of_batch = "" if batch == 1 else f"-b{batch}"
    made, exported, prepared = (folder / f"{name}{of_batch}{end}.onnx" for end in ("-int8", "", "-prepared"))
    if made.exists():
        return made
    folder.mkdir(parents=True, exist_ok=True)
    if name == "bert":
        export_bert(exported)
        quant_pre_process(exported, prepared)
        quantize_dynamic(prepared, made, weight_type=QuantType.QInt8)
    else:
        export_image_model(name, exported, batch)
        quant_pre_process(exported, prepared)
        quantize_static(
            prepared, made, RandomImages(max(8 // batch, 1), batch), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8, reduce_range=not has_exact_sums(),
        )  # fmt: skip
    return made


def has_exact_sums() -> bool:
    """Whether ONNX Runtime sums products of u8 and s8 exactly here; without VNNI it recommends weights of 7 bits."""
    facts = Path("/proc/cpuinfo").read_text()
    return "avx512_vnni" in facts or "avx_vnni" in facts


def feeds_of(session: ort.InferenceSession) -> dict[str, Array]:
    """Random inputs."""
    rng = np.random.default_rng(7)
    return {
        value.name: rng.standard_normal(value.shape).astype(np.float32)
        if value.type == "tensor(float)"
        else rng.integers(0, 2 if value.name == "attention_mask" else 1000, value.shape)
        for value in session.get_inputs()
    }


def reference_of(path: Path, threads: int) -> ort.InferenceSession:
    """ONNX Runtime's session."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def compare(path: Path, threads: int, repeat: int, program: Any) -> str:
    """One line: both times and their ratio, by both clocks, and both errors."""
    session, reference = program.session(threads=threads), reference_of(path, threads)
    feeds = feeds_of(reference)
    exact = reference_of(path.with_name(path.name.replace("-int8", "")), threads).run(None, feeds)[0]
    subjects: Mapping[str, Callable[[], Any]] = {
        "program": lambda: session.run(None, feeds),
        "ort": lambda: reference.run(None, feeds),
    }
    errors = [float(np.abs(run()[0] - exact).max() / np.abs(exact).max()) for run in subjects.values()]
    texts = []
    for clock in (time.process_time, time.perf_counter):
        timings = interleave(subjects, repeat, block=3, clock=clock)
        ours, theirs = (timings[key].median_ms for key in subjects)
        texts.append(f"{ours:8.2f} {theirs:8.2f} {ours / theirs:6.3f}")
    return f"{path.stem:20} {threads:3}  {'  '.join(texts)}   {errors[0]:.3f} {errors[1]:.3f}"


def costs(program: Any, feeds: dict[str, Array]) -> str:
    """Microseconds of a run on one thread and number of steps by engine and plan, most first."""
    spent: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for step in profile(program.session(threads=1), feeds, warmup=2, repeat=7).steps:
        name = f"{step.engine or step.kind}: {step.description.split(' on tiles')[0]}"
        spent[name] += round(step.time.median_us)
        counts[name] += 1
    return "\n".join(f"    {us:9} us in {counts[name]:3} x {name}" for name, us in spent.most_common(14))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", default=",".join([*IMAGES, "bert"]))
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--folder", type=Path, default=Path(gettempdir(), "quantized-models"))
    parser.add_argument("--profile", action="store_true")
    given = parser.parse_args()
    facts = Path("/proc/cpuinfo").read_text().splitlines()
    name = next((line.partition(":")[2].strip() for line in facts if line.startswith("model name")), "?")
    print(f"{name}, {'VNNI' if has_exact_sums() else 'no VNNI: weights of 7 bits'}, ONNX Runtime {ort.__version__}")
    print(f"{'model':20} thr  {'CPU ms':>8} {'ORT':>8} {'ratio':>6}  {'wall ms':>8} {'ORT':>8} {'ratio':>6}   errors")
    for name in given.models.split(","):
        path = make(name, given.folder)
        program = hipdnn_mlir.compile(onnx.load(path))
        for threads in given.threads:
            print(compare(path, threads, given.repeat, program), flush=True)
        if given.profile:
            print(costs(program, feeds_of(reference_of(path, 1))))


if __name__ == "__main__":
    main()

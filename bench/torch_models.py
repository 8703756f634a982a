"""Models of timm and transformers, compiled from PyTorch and compared with it: `python bench/torch_models.py [NAME...]` prints a table.

The weights are random, the configurations and inputs small: what counts is whether a model compiles as one program and computes what
PyTorch computes. Needs `pip install timm transformers`; nothing is downloaded when it runs.
"""

from __future__ import annotations

import math
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

import hipdnn_mlir

TOLERANCE, LIMIT = 1e-4, 1e-3
"""Of the largest value of an output, in f32: what needs no further question, and what is wrong in any case."""
_TORCHVISION_OPS = ("nms", "qnms")

Make = Callable[[], tuple[torch.nn.Module, Mapping[str, Any] | tuple[Any, ...]]]
"""Makes a module and its arguments."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: of the model.
        graphs: hipDNN graphs of its program.
        kernels: kernels of its program.
        error: largest difference from PyTorch, of the output's largest value.
        seconds: to export and compile it.
        problem: why there is no program; else empty.
        from_f64, pytorch_from_f64: errors of both against PyTorch in f64, where they differ by more than the tolerance.
    """

    name: str
    graphs: int = 0
    kernels: int = 0
    error: float = math.nan
    seconds: float = 0.0
    problem: str = ""
    from_f64: float = math.inf
    pytorch_from_f64: float = 0.0

    @property
    def is_equal(self) -> bool:
        """Whether it computes what PyTorch computes; beyond the tolerance, whether it is as near to f64 as PyTorch is."""
        if self.problem:
            return False
        return self.error <= TOLERANCE or (self.error <= LIMIT and self.from_f64 <= 2 * self.pytorch_from_f64)

    def __str__(self) -> str:
        if self.problem:
            return f"{self.name:34} {'':>7} {'':>8} {'':>9} {self.seconds:8.1f}  {self.problem}"
        verdict = "equal" if self.is_equal else "DIFFERS"
        if self.error > TOLERANCE:
            verdict += f" (from f64: {self.from_f64:.1e}, PyTorch's f32: {self.pytorch_from_f64:.1e})"
        return f"{self.name:34} {self.graphs:7} {self.kernels:8} {self.error:9.1e} {self.seconds:8.1f}  {verdict}"


def _timm(name: str, **options: Any) -> Make:
    size = options.pop("size", 64)
    fixed = {"img_size": size} if options.pop("is_sized", False) else {}

    def make() -> tuple[torch.nn.Module, tuple[Any, ...]]:
        import timm

        return timm.create_model(name, pretrained=False, num_classes=10, **fixed, **options), (
            torch.randn(1, 3, size, size),
        )

    return make


_VISION: dict[str, Make] = {
    "resnet18": _timm("resnet18"),
    "resnet50": _timm("resnet50"),
    "resnext50_32x4d": _timm("resnext50_32x4d"),
    "wide_resnet50_2": _timm("wide_resnet50_2"),
    "seresnet50": _timm("seresnet50"),
    "densenet121": _timm("densenet121"),
    "vgg11_bn": _timm("vgg11_bn"),
    "mobilenetv2_100": _timm("mobilenetv2_100"),
    "mobilenetv3_large_100": _timm("mobilenetv3_large_100"),
    "mobilenetv4_conv_small": _timm("mobilenetv4_conv_small"),
    "efficientnet_b0": _timm("efficientnet_b0"),
    "efficientnetv2_rw_t": _timm("efficientnetv2_rw_t"),
    "regnetx_002": _timm("regnetx_002"),
    "regnety_002": _timm("regnety_002"),
    "convnext_atto": _timm("convnext_atto"),
    "convnextv2_atto": _timm("convnextv2_atto"),
    "inception_v3": _timm("inception_v3", size=96),
    "hrnet_w18_small": _timm("hrnet_w18_small"),
    "ghostnet_100": _timm("ghostnet_100"),
    "repvgg_a0": _timm("repvgg_a0"),
    "mixer_s32_224": _timm("mixer_s32_224", size=64, is_sized=True),
    "vit_tiny_patch16_224": _timm("vit_tiny_patch16_224", size=64, is_sized=True),
    "deit_tiny_patch16_224": _timm("deit_tiny_patch16_224", size=64, is_sized=True),
    "beit_base_patch16_224": _timm("beit_base_patch16_224", size=64, is_sized=True, depth=2),
    "swin_tiny_patch4_window7_224": _timm("swin_tiny_patch4_window7_224", size=224),
    "poolformer_s12": _timm("poolformer_s12"),
    "xcit_nano_12_p16_224": _timm("xcit_nano_12_p16_224", size=64),
    "coat_lite_tiny": _timm("coat_lite_tiny", size=64, is_sized=True),
    "mobilevit_xxs": _timm("mobilevit_xxs"),
    "edgenext_xx_small": _timm("edgenext_xx_small"),
}


def _config(family: str, **options: Any) -> Any:
    import transformers

    small = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "vocab_size": 99,
    }
    config = getattr(transformers, f"{family}Config")
    return config(**{**small, **options})


def _transformer(
    family: str, kind: str = "Model", inputs: Callable[[], Mapping[str, Any]] | None = None, **options: Any
) -> Make:
    def make() -> tuple[torch.nn.Module, Mapping[str, Any]]:
        import transformers

        model = getattr(transformers, f"{family}{kind}")(_config(family, **options))
        return model, (inputs or _tokens)()

    return make


def _tokens() -> dict[str, Any]:
    ids = torch.randint(3, 99, (2, 11))
    mask = torch.ones(2, 11, dtype=torch.int64)
    mask[1, 7:] = 0
    return {"input_ids": ids, "attention_mask": mask}


def _causal_tokens() -> dict[str, Any]:
    return {"input_ids": torch.randint(3, 99, (2, 11)), "use_cache": False}


def _pixels(size: int = 32) -> dict[str, Any]:
    return {"pixel_values": torch.randn(1, 3, size, size)}


def _whisper() -> tuple[torch.nn.Module, Mapping[str, Any]]:
    import transformers

    config = transformers.WhisperConfig(
        d_model=32,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=64,
        decoder_attention_heads=4,
        num_mel_bins=20,
        max_source_positions=50,
        vocab_size=99,
    )
    config.pad_token_id = 0
    return transformers.WhisperModel(config).get_encoder(), {"input_features": torch.randn(1, 20, 100)}


_LLAMA = {"num_key_value_heads": 2, "max_position_embeddings": 64}
_TEXT: dict[str, Make] = {
    "bert": _transformer("Bert"),
    "roberta": _transformer("Roberta", max_position_embeddings=64),
    "distilbert": _transformer("DistilBert", dim=32, hidden_dim=64, n_layers=2, n_heads=4),
    "electra": _transformer("Electra", embedding_size=32),
    "albert": _transformer("Albert", embedding_size=32),
    "mpnet": _transformer("MPNet"),
    "deberta_v2": _transformer("DebertaV2"),
    "convbert": _transformer("ConvBert", embedding_size=32),
    "squeezebert": _transformer("SqueezeBert", embedding_size=32),
    "modernbert": _transformer(
        "ModernBert", pad_token_id=0, cls_token_id=1, sep_token_id=2, bos_token_id=1, eos_token_id=2
    ),
    "gpt2": _transformer("GPT2", "LMHeadModel", _causal_tokens, n_embd=32, n_layer=2, n_head=4),
    "gpt_neox": _transformer("GPTNeoX", "ForCausalLM", _causal_tokens),
    "opt": _transformer(
        "OPT", "ForCausalLM", _causal_tokens, ffn_dim=64, word_embed_proj_dim=32, max_position_embeddings=64
    ),
    "llama": _transformer("Llama", "ForCausalLM", _causal_tokens, **_LLAMA),
    "mistral": _transformer("Mistral", "ForCausalLM", _causal_tokens, **_LLAMA),
    "qwen2": _transformer("Qwen2", "ForCausalLM", _causal_tokens, **_LLAMA),
    "qwen3": _transformer("Qwen3", "ForCausalLM", _causal_tokens, **_LLAMA, head_dim=8),
    "phi": _transformer("Phi", "ForCausalLM", _causal_tokens, **_LLAMA),
    "gemma": _transformer("Gemma", "ForCausalLM", _causal_tokens, **_LLAMA, head_dim=8),
    "falcon": _transformer("Falcon", "ForCausalLM", _causal_tokens),
    "bloom": _transformer("Bloom", "ForCausalLM", _causal_tokens, n_layer=2, n_head=4),
    "t5_encoder": _transformer("T5", "EncoderModel", _tokens, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4),
    "vit": _transformer("ViT", inputs=_pixels, image_size=32, patch_size=8),
    "deit": _transformer("DeiT", inputs=_pixels, image_size=32, patch_size=8),
    "dinov2": _transformer("Dinov2", inputs=_pixels, image_size=32, patch_size=8),
    "clip_vision": _transformer("CLIPVision", inputs=_pixels, image_size=32, patch_size=8),
    "segformer": _transformer(
        "Segformer",
        inputs=lambda: _pixels(64),
        depths=[1, 1, 1, 1],
        hidden_sizes=[8, 16, 32, 64],
        num_attention_heads=[1, 2, 4, 8],
    ),
    "whisper_encoder": _whisper,
    "wav2vec2": _transformer(
        "Wav2Vec2", inputs=lambda: {"input_values": torch.randn(1, 4000)}, conv_dim=[16] * 7, num_conv_pos_embeddings=16
    ),
}


MODELS: dict[str, Make] = {
    **{f"timm/{k}": v for k, v in _VISION.items()},
    **{f"transformers/{k}": v for k, v in _TEXT.items()},
}


def measure(name: str, make: Make) -> Row:
    """Compile a model and compare its results with PyTorch's."""
    torch.manual_seed(0)
    start = time.perf_counter()
    try:
        module, arguments = make()
        module = randomized(module.eval())
        start = time.perf_counter()
        program = hipdnn_mlir.compile(module, arguments)
        seconds = time.perf_counter() - start
        session = program.session()
    except Exception as error:  # noqa: BLE001 - a line of the table, whatever it is
        if "-v" in sys.argv:
            traceback.print_exc()
        return Row(name, seconds=time.perf_counter() - start, problem=f"{type(error).__name__}: {str(error)[:300]}")
    leaves = pytree.tree_leaves(arguments)
    tensors = [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]
    got = session.run(None, {port.name: tensor.numpy() for port, tensor in zip(session.inputs, tensors, strict=True)})
    with torch.no_grad():
        results = module(**arguments) if isinstance(arguments, Mapping) else module(*arguments)
    wanted = [leaf for leaf in pytree.tree_leaves(results) if isinstance(leaf, torch.Tensor)]
    steps = program.model.steps
    graphs = sum(type(step).__name__ == "Execute" for step in steps)
    kernels = sum(type(step).__name__ == "Launch" for step in steps)
    theirs = [tensor.numpy() for tensor in wanted]
    error = largest(got, theirs)
    if error <= TOLERANCE or not isinstance(arguments, tuple):
        return Row(name, graphs, kernels, error, seconds)
    with torch.no_grad():
        exact = [
            leaf.numpy() for leaf in pytree.tree_leaves(module.double()(*(tensor.double() for tensor in arguments)))
        ]
    return Row(name, graphs, kernels, error, seconds, "", largest(got, exact), largest(theirs, exact))


def largest(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    """The largest difference of several outputs."""
    return max(difference(mine, theirs) for mine, theirs in zip(got, wanted, strict=True))


def randomized(module: torch.nn.Module) -> torch.nn.Module:
    """The module with running statistics and layer scales that are not those of a new one, which would hide mistakes."""
    for name, tensor in [*module.named_buffers(), *module.named_parameters()]:
        if name.endswith("running_mean"):
            tensor.uniform_(-0.2, 0.2)
        elif name.endswith("running_var"):
            tensor.uniform_(0.8, 1.2)
        elif name.rpartition(".")[2] in ("gamma", "gamma_1", "gamma_2", "cls_token", "pos_embed"):
            tensor.detach().uniform_(-0.5, 0.5)
        elif tensor.dim() > 1 and tensor.is_floating_point() and not tensor.any():
            tensor.detach().normal_(std=0.05)
    return module


def difference(mine: np.ndarray, theirs: np.ndarray) -> float:
    """The largest difference, of the reference's largest value; NaN for references that are the same everywhere, which prove nothing."""
    assert mine.shape == theirs.shape, f"{mine.shape}, expected {theirs.shape}"
    wanted = theirs.astype(np.float64)
    if not np.isfinite(wanted).all() or (wanted.size > 1 and (wanted == wanted.flat[0]).all()):
        return math.inf
    return float(np.abs(mine.astype(np.float64) - wanted).max() / np.abs(wanted).max())


def _chosen(names: list[str]) -> Iterator[tuple[str, Make]]:
    for name, make in MODELS.items():
        if not names or any(part in name for part in names):
            yield name, make


def without_torchvision_ops() -> torch.library.Library:
    """Declare the ops that torchvision is missing beside a PyTorch for the CPU alone; nothing here calls them."""
    library = torch.library.Library("torchvision", "DEF")
    for name in _TORCHVISION_OPS:
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def main() -> None:
    """Measure and print a line for each model, and how many are equal."""
    warnings.simplefilter("ignore")
    keep = without_torchvision_ops()
    import timm
    import transformers

    print(f"PyTorch {torch.__version__}, timm {timm.__version__}, transformers {transformers.__version__}")
    print(f"equal: within {TOLERANCE:g} of an output's largest value, or as near to f64 as PyTorch's f32")
    print(f"{'model':34} {'graphs':>7} {'kernels':>8} {'error':>9} {'compile s':>8}")
    rows = []
    for name, make in _chosen([argument for argument in sys.argv[1:] if not argument.startswith("-")]):
        rows.append(measure(name, make))
        print(rows[-1], flush=True)
    print(f"{sum(row.is_equal for row in rows)} of {len(rows)} equal PyTorch")
    del keep


if __name__ == "__main__":
    main()

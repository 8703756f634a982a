"""Architectures of timm, torchvision and transformers with random weights, as modules and inputs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

Made = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]
"""A module and its inputs, by position."""

_TIMM = (
    "resnet18", "resnet50", "resnetv2_50", "resnext50_32x4d", "wide_resnet50_2", "seresnet50", "skresnet18", "ecaresnet26t", "resnest14d",
    "res2net50_26w_4s", "bat_resnext26ts", "lambda_resnet26t", "gcresnet33ts", "tresnet_m", "eca_nfnet_l0", "nf_resnet50", "dm_nfnet_f0",
    "densenet121", "dla34", "vgg11_bn", "vovnet39a", "darknet53", "cspresnet50", "cspdarknet53", "selecsls42b", "hardcorenas_a",
    "mobilenetv2_100", "mobilenetv3_small_100", "mobilenetv3_large_100", "mobilenetv4_conv_small", "mobilenetv4_hybrid_medium",
    "mobileone_s0", "fastvit_t8", "efficientnet_b0", "efficientnet_lite0", "efficientnetv2_rw_t", "tinynet_e", "ghostnet_100",
    "ghostnetv2_100", "fbnetc_100", "mnasnet_100", "mixnet_s", "lcnet_050", "rexnet_100", "regnetx_002", "regnety_008", "repvgg_a0",
    "repvit_m0_9", "repghostnet_050", "starnet_s1", "xception41", "inception_v3", "inception_v4",
    "inception_resnet_v2", "hrnet_w18_small", "convmixer_768_32", "convnext_atto", "convnext_tiny", "convnextv2_atto",
    "inception_next_tiny", "mixer_s32_224", "resmlp_12_224", "gmixer_24_224", "gmlp_s16_224", "poolformer_s12", "poolformerv2_s12",
    "caformer_s18", "focalnet_tiny_srf", "vit_tiny_patch16_224", "vit_small_patch16_224", "deit_tiny_patch16_224",
    "deit3_small_patch16_224", "beit_base_patch16_224", "eva02_tiny_patch14_224", "cait_xxs24_224", "xcit_nano_12_p16_224",
    "crossvit_9_240", "coat_lite_tiny", "convit_tiny", "pit_ti_224", "pvt_v2_b0", "twins_pcpvt_small", "swin_tiny_patch4_window7_224",
    "swinv2_tiny_window8_256", "swinv2_cr_tiny_ns_224", "maxvit_rmlp_pico_rw_256", "coatnet_nano_rw_224", "maxxvit_rmlp_nano_rw_256",
    "levit_128", "efficientformer_l1", "efficientformerv2_s0", "efficientvit_b0", "efficientvit_m0", "edgenext_xx_small", "mobilevit_xxs",
    "mobilevitv2_050", "davit_tiny", "gcvit_xxtiny", "hiera_tiny_224", "nest_tiny", "tiny_vit_5m_224", "visformer_tiny",
    "tnt_s_legacy_patch16_224", "sequencer2d_s", "mambaout_femto",
)  # fmt: skip

_TORCHVISION = (
    "squeezenet1_1",
    "googlenet",
    "shufflenet_v2_x0_5",
    "shufflenet_v2_x1_0",
    "alexnet",
    "mnasnet0_5",
    "swin_v2_t",
)
_SEGMENTATION = ("lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large", "fcn_resnet50")


class _First(torch.nn.Module):
    """A module whose call gives the first tensor of another one's results."""

    def __init__(self, module: torch.nn.Module, names: tuple[str, ...]) -> None:
        super().__init__()
        self.module, self.names = module, names

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        results = self.module(**dict(zip(self.names, tensors, strict=True))) if self.names else self.module(*tensors)
        return next(iter(results.values())) if isinstance(results, dict) else results[0]


def _timm(name: str) -> Made:
    import timm

    module = timm.create_model(name, pretrained=False)
    return module, (torch.randn(1, *module.pretrained_cfg["input_size"]),)


def _torchvision(name: str) -> Made:
    import torchvision

    return torchvision.models.get_model(
        name, weights=None, **({"init_weights": True} if name == "googlenet" else {})
    ), (torch.randn(1, 3, 224, 224),)


def _segmentation(name: str) -> Made:
    import torchvision

    module = torchvision.models.get_model(name, weights=None, weights_backbone=None)
    return _First(module, ()), (torch.randn(1, 3, 256, 256),)


def _recurrent(kind: str, steps: int, size: int, layers: int, both: bool) -> Made:
    """Layers of torch.nn.LSTM or GRU on a sequence of as many features."""
    module = getattr(torch.nn, kind)(size, size, layers, batch_first=True, bidirectional=both)
    return _First(module, ()), (torch.randn(1, steps, size),)


def _transformer(config: str, model: str, kind: str, **options: Any) -> Made:
    import transformers

    made = getattr(transformers, model)(getattr(transformers, config)(**options))
    made.config.use_cache = False
    names, inputs = _INPUTS[kind](made.config)
    return _First(made, names), inputs


def _tokens(config: Any) -> tuple[tuple[str, ...], tuple[torch.Tensor, ...]]:
    ids = torch.randint(3, config.vocab_size, (1, 128))
    return ("input_ids", "attention_mask"), (ids, torch.ones_like(ids))


def _pixels(size: int, _config: Any) -> tuple[tuple[str, ...], tuple[torch.Tensor, ...]]:
    return ("pixel_values",), (torch.randn(1, 3, size, size),)


def _waves(_config: Any) -> tuple[tuple[str, ...], tuple[torch.Tensor, ...]]:
    return ("input_values",), (torch.randn(1, 16000),)


_INPUTS: dict[str, Callable[[Any], tuple[tuple[str, ...], tuple[torch.Tensor, ...]]]] = {
    "tokens": _tokens,
    "pixels": partial(_pixels, 224),
    "small pixels": partial(_pixels, 64),
    "waves": _waves,
}
_SMALL = {"num_hidden_layers": 4, "vocab_size": 8000}
_DECODER = {**_SMALL, "hidden_size": 512, "num_attention_heads": 8, "intermediate_size": 1376, "num_key_value_heads": 4}
_TRANSFORMERS: dict[str, Callable[[], Made]] = {
    "bert": partial(_transformer, "BertConfig", "BertModel", "tokens", **_SMALL),
    "distilbert": partial(_transformer, "DistilBertConfig", "DistilBertModel", "tokens", n_layers=4, vocab_size=8000),
    "albert": partial(
        _transformer,
        "AlbertConfig",
        "AlbertModel",
        "tokens",
        num_hidden_layers=4,
        hidden_size=768,
        num_attention_heads=12,
        intermediate_size=3072,
        vocab_size=8000,
    ),
    "electra": partial(_transformer, "ElectraConfig", "ElectraModel", "tokens", **_SMALL),
    "deberta_v2": partial(
        _transformer,
        "DebertaV2Config",
        "DebertaV2Model",
        "tokens",
        **_SMALL,
        hidden_size=384,
        num_attention_heads=6,
        intermediate_size=1536,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
    ),
    "mpnet": partial(_transformer, "MPNetConfig", "MPNetModel", "tokens", **_SMALL),
    "gpt2": partial(_transformer, "GPT2Config", "GPT2Model", "tokens", n_layer=4, vocab_size=8000),
    "llama": partial(_transformer, "LlamaConfig", "LlamaModel", "tokens", **_DECODER),
    "qwen3": partial(_transformer, "Qwen3Config", "Qwen3Model", "tokens", **_DECODER, head_dim=64),
    "t5_encoder": partial(_transformer, "T5Config", "T5EncoderModel", "tokens", num_layers=4, vocab_size=8000),
    "dinov2": partial(
        _transformer,
        "Dinov2Config",
        "Dinov2Model",
        "pixels",
        hidden_size=384,
        num_attention_heads=6,
        num_hidden_layers=6,
        image_size=224,
        patch_size=16,
    ),
    "clip_vision": partial(_transformer, "CLIPVisionConfig", "CLIPVisionModel", "pixels", num_hidden_layers=6),
    "segformer": partial(_transformer, "SegformerConfig", "SegformerForSemanticSegmentation", "pixels"),
    "depth_anything": partial(
        _transformer,
        "DepthAnythingConfig",
        "DepthAnythingForDepthEstimation",
        "pixels",
        reassemble_hidden_size=384,
        neck_hidden_sizes=[48, 96, 192, 384],
    ),
    "swin2sr": partial(
        _transformer,
        "Swin2SRConfig",
        "Swin2SRForImageSuperResolution",
        "small pixels",
        embed_dim=60,
        depths=[2, 2],
        num_heads=[6, 6],
    ),
    "wav2vec2": partial(_transformer, "Wav2Vec2Config", "Wav2Vec2Model", "waves", num_hidden_layers=4),
}

_RECURRENT: dict[str, Callable[[], Made]] = {
    "lstm_128": partial(_recurrent, "LSTM", 75, 128, 2, False),
    "bilstm_256": partial(_recurrent, "LSTM", 100, 256, 2, True),
    "lstm_512": partial(_recurrent, "LSTM", 50, 512, 2, False),
    "gru_256": partial(_recurrent, "GRU", 100, 256, 2, False),
}

ARCHITECTURES: dict[str, Callable[[], Made]] = {
    **_RECURRENT,
    **{name: partial(_timm, name) for name in _TIMM},
    **{name: partial(_torchvision, name) for name in _TORCHVISION},
    **{name: partial(_segmentation, name) for name in _SEGMENTATION},
    **_TRANSFORMERS,
}
"""What makes each architecture, by name."""


def settle(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> torch.nn.Module:
    """The module, for inference, with batch norms that have seen its activations.

    Those of a new module let activations grow or vanish from layer to layer, down to denormal numbers, which no trained model has and which
    take a CPU many times as long.
    """
    norms = [
        each
        for each in module.modules()
        if isinstance(each, (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d))
    ]
    module.eval()
    for norm in norms:
        norm.momentum = None
        norm.train()
    with torch.no_grad():
        for _ in range(2 if norms else 0):
            module(*(torch.randn(2, *each.shape[1:]) if each.is_floating_point() else each for each in inputs))
    return module.eval()

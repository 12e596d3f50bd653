"""Models as people serve them, small and with random weights: ten of timm, ten of transformers."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

Made = tuple[nn.Module, dict[str, Tensor]]
WORDS, LENGTH = 512, 32
SPREAD = {"initializer_range": 0.125}
"""Scale of weights with 64 inputs: with the 0.02 of large models, a layer of this size would add
almost nothing."""
SIZES = {
    "vocab_size": WORDS,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    **SPREAD,
}
DECODER = {**SIZES, "num_key_value_heads": 2, "use_cache": False}
WIDTHS = {
    "vocab_size": WORDS,
    "n_embd": 64,
    "n_layer": 2,
    "n_head": 4,
    "use_cache": False,
    **SPREAD,
}
_TIMM = (
    "resnet18",
    "mobilenetv3_small_050",
    "convnext_atto",
    "vit_tiny_patch16_224",
    "efficientnet_b0",
    "regnetx_002",
    "xcit_nano_12_p16_224",
    "poolformer_s12",
    "ghostnet_050",
    "mobilevit_xxs",
)
_TRANSFORMERS: dict[str, tuple[str, dict[str, Any]]] = {
    "BertModel": ("BertConfig", SIZES),
    "RobertaForMaskedLM": ("RobertaConfig", SIZES),
    "DistilBertModel": (
        "DistilBertConfig",
        {"vocab_size": WORDS, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, **SPREAD},
    ),
    "ElectraModel": ("ElectraConfig", {**SIZES, "embedding_size": 32}),
    "T5EncoderModel": (
        "T5Config",
        {
            "vocab_size": WORDS,
            "d_model": 64,
            "d_kv": 16,
            "d_ff": 128,
            "num_layers": 2,
            "num_heads": 4,
        },
    ),
    "GPT2LMHeadModel": ("GPT2Config", WIDTHS),
    "OPTForCausalLM": (
        "OPTConfig",
        {**SIZES, "ffn_dim": 128, "word_embed_proj_dim": 64, "use_cache": False, "init_std": 0.125},
    ),
    "LlamaForCausalLM": ("LlamaConfig", DECODER),
    "MistralForCausalLM": ("MistralConfig", DECODER),
    "Qwen2ForCausalLM": ("Qwen2Config", DECODER),
}
_vision: list[Any] = []
"""Names that torchvision asks for when it is imported; they must live as long as the process."""


def allow_torchvision() -> None:
    """timm imports torchvision and uses none of its operators; a torchvision built for CUDA loads
    no operators on a torch for CPUs."""
    if torch.version.cuda is None and not _vision:
        names = torch.library.Library("torchvision", "FRAGMENT")
        for operator in ("nms", "qnms"):
            names.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _vision.append(names)


def _timm(name: str) -> Made:
    allow_torchvision()
    sizes = {"img_size": 64} if name.startswith("vit") else {}
    return importlib.import_module("timm").create_model(name, pretrained=False, **sizes), {
        "x": torch.randn(2, 3, 64, 64)
    }


def _transformers(name: str) -> Made:
    library = importlib.import_module("transformers")
    config, sizes = _TRANSFORMERS[name]
    return getattr(library, name)(getattr(library, config)(**sizes)), {
        "input_ids": torch.randint(0, WORDS, (2, LENGTH))
    }


def of_timm() -> dict[str, Callable[[], Made]]:
    """The models of timm, by name."""
    return {name: lambda name=name: _timm(name) for name in _TIMM}  # type: ignore[misc]


def of_transformers() -> dict[str, Callable[[], Made]]:
    """The models of transformers, by name."""
    return {name: lambda name=name: _transformers(name) for name in _TRANSFORMERS}  # type: ignore[misc]


def made(make: Callable[[], Made], dtype: torch.dtype = torch.float32, device: str = "cpu") -> Made:
    """The same weights and inputs each time, as for serving. No part of the model may be without
    effect, because a fault there would change nothing: values that start as a constant, such as the
    zero scale of a residual branch, are moved a little, and batch norms get the mean and variance
    of their inputs, as in a trained model."""
    torch.manual_seed(11)
    module, inputs = make()
    with torch.no_grad():
        for one in module.parameters():
            if one.numel() > 1 and bool((one == one.flatten()[0]).all()):
                one.add_(0.2 * torch.randn_like(one))
        norms = [part for part in module.train().modules() if isinstance(part, nn.BatchNorm2d)]
        for part in norms:
            part.momentum = None
        if norms:
            module(**inputs)
    batch = {
        name: one.to(device, dtype) if one.is_floating_point() else one.to(device)
        for name, one in inputs.items()
    }
    return module.to(device, dtype).eval(), batch

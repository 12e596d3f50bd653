"""Models that are compared after a warm-up: ten of vision, ten of transformers and five of
torch.nn, small and with random weights."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tests.agent.golden_real.models import (
    DECODER,
    LENGTH,
    SIZES,
    SPREAD,
    WIDTHS,
    WORDS,
    Made,
    allow_torchvision,
)

Make = Callable[[], Made]
_TIMM = (
    "resnet10t",
    "mobilenetv3_small_050",
    "efficientnet_lite0",
    "ghostnet_050",
    "vit_tiny_patch16_224",
    "convnext_atto",
    "mixer_s32_224",
    "regnetx_002",
    "tinynet_e",
    "levit_128s",
)
_TORCHVISION = (
    "resnet18",
    "mobilenet_v3_small",
    "efficientnet_b0",
    "regnet_x_400mf",
    "shufflenet_v2_x0_5",
    "squeezenet1_1",
    "mnasnet0_5",
    "convnext_tiny",
    "swin_t",
    "vit_b_16",
)
_WHOLE = ("vit_tiny_patch16_224", "mixer_s32_224", "levit_128s", "vit_b_16")
"""Models with one fixed image size."""


class Greedy(nn.Module):
    """A language model that returns the next tokens, with or without their scores."""

    def __init__(self, model: nn.Module, scores: bool) -> None:
        super().__init__()
        self.model, self.scores = model, scores

    def forward(self, input_ids: Tensor) -> Any:
        scores = self.model(input_ids=input_ids).logits
        tokens = scores.argmax(-1)
        return {"scores": scores, "tokens": tokens} if self.scores else tokens


class Head(nn.Module):
    """Tags for hidden states; the loop has its own frame, because torch compiles no frame that
    calls a recurrent layer."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.tags = nn.LayerNorm(48), nn.Linear(48, 16)

    def forward(self, hidden: Tensor) -> Tensor:
        tags: Tensor = self.tags(self.norm(hidden))
        return tags


class Tagger(nn.Module):
    """A tag for each word, by a recurrent layer."""

    def __init__(self, kind: type[nn.Module]) -> None:
        super().__init__()
        self.words, self.layer, self.head = (
            nn.Embedding(WORDS, 32),
            kind(32, 48, batch_first=True),
            Head(),
        )

    def forward(self, words: Tensor) -> Tensor:
        hidden, _ = self.layer(self.words(words))
        tags: Tensor = self.head(hidden)
        return tags


class Bag(nn.Module):
    """A class for each bag of words."""

    def __init__(self) -> None:
        super().__init__()
        self.bag, self.head = nn.EmbeddingBag(WORDS, 64, mode="mean"), nn.Linear(64, 16)

    def forward(self, words: Tensor) -> Tensor:
        classes: Tensor = self.head(torch.relu(self.bag(words)))
        return classes


def _words() -> Tensor:
    return torch.randint(0, WORDS, (2, LENGTH))


def _image(name: str) -> dict[str, Tensor]:
    side = 224 if name in _WHOLE else 64
    return {"x": torch.randn(2, 3, side, side)}


def _of_timm(name: str) -> Made:
    allow_torchvision()
    return importlib.import_module("timm").create_model(name, pretrained=False), _image(name)


def _of_torchvision(name: str) -> Made:
    allow_torchvision()
    return importlib.import_module("torchvision").models.get_model(name, weights=None), _image(name)


def _of_transformers(
    kind: str,
    config: str,
    sizes: dict[str, Any],
    inputs: Callable[[], dict[str, Tensor]] | None = None,
) -> Made:
    allow_torchvision()
    library = importlib.import_module("transformers")
    return getattr(library, kind)(getattr(library, config)(**sizes)), inputs() if inputs else {
        "input_ids": _words()
    }


def _greedy(made: Made, scores: bool) -> Made:
    return Greedy(made[0], scores), made[1]


def _pairs() -> dict[str, Tensor]:
    return {"input_ids": _words(), "decoder_input_ids": _words()}


def _pixels() -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(2, 3, 32, 32)}


_DISTIL = {"vocab_size": WORDS, "dim": 64, "n_layers": 2, "n_heads": 4, "hidden_dim": 128, **SPREAD}
_T5 = {
    "vocab_size": WORDS,
    "d_model": 64,
    "d_kv": 16,
    "d_ff": 128,
    "num_layers": 2,
    "num_heads": 4,
    "use_cache": False,
}
_BART = {
    "vocab_size": WORDS,
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128,
    "decoder_ffn_dim": 128,
    "init_std": 0.125,
}
_VIT = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    **SPREAD,
}
_CONVNEXT = {"hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 2, 1], **SPREAD}
_CACHED = {**DECODER, "use_cache": True}
TRANSFORMERS: dict[str, Make] = {
    "BertModel": lambda: _of_transformers("BertModel", "BertConfig", SIZES),
    "DistilBertModel": lambda: _of_transformers("DistilBertModel", "DistilBertConfig", _DISTIL),
    "GPT2 greedy": lambda: _greedy(
        _of_transformers("GPT2LMHeadModel", "GPT2Config", WIDTHS), scores=False
    ),
    "Llama greedy": lambda: _greedy(
        _of_transformers("LlamaForCausalLM", "LlamaConfig", _CACHED), scores=False
    ),
    "Qwen2 with scores": lambda: _greedy(
        _of_transformers("Qwen2ForCausalLM", "Qwen2Config", DECODER), scores=True
    ),
    "MistralForCausalLM": lambda: _of_transformers("MistralForCausalLM", "MistralConfig", _CACHED),
    "T5ForConditionalGeneration": lambda: _of_transformers(
        "T5ForConditionalGeneration", "T5Config", _T5, _pairs
    ),
    "BartForConditionalGeneration": lambda: _of_transformers(
        "BartForConditionalGeneration", "BartConfig", _BART, _pairs
    ),
    "ViTForImageClassification": lambda: _of_transformers(
        "ViTForImageClassification", "ViTConfig", _VIT, _pixels
    ),
    "ConvNextForImageClassification": lambda: _of_transformers(
        "ConvNextForImageClassification", "ConvNextConfig", _CONVNEXT, _pixels
    ),
}
TORCH: dict[str, Make] = {
    "MLP": lambda: (
        nn.Sequential(nn.Linear(64, 128), nn.LayerNorm(128), nn.GELU(), nn.Linear(128, 32)),
        {"input": torch.randn(16, 64)},
    ),
    "TransformerEncoderLayer": lambda: (
        nn.TransformerEncoderLayer(64, 4, 128, batch_first=True),
        {"src": torch.randn(4, 24, 64)},
    ),
    "LSTM": lambda: (Tagger(nn.LSTM), {"words": _words()}),
    "Conv": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 16, 3),
            nn.BatchNorm2d(16),
            nn.SiLU(),
            nn.Conv2d(16, 32, 3),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        ),
        {"input": torch.randn(4, 3, 32, 32)},
    ),
    "EmbeddingBag": lambda: (Bag(), {"words": _words()}),
}


def of_vision() -> tuple[str, dict[str, Make]]:
    """Ten models of timm, or ten of torchvision if timm is not installed. Returns the name of the
    library, and the models by name."""
    if importlib.util.find_spec("timm") is not None:
        return "timm", {name: lambda name=name: _of_timm(name) for name in _TIMM}  # type: ignore[misc]
    return "torchvision", {name: lambda name=name: _of_torchvision(name) for name in _TORCHVISION}  # type: ignore[misc]

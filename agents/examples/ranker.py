"""Model of both examples: a small network that scores token sequences, with faults."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn import functional

VOCABULARY = 4096
BATCHES = (2, 4, 8)
SHORTEST, LONGEST = 34, 60


class Block(nn.Module):
    """A feed-forward layer on a normalised input, added to it."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide: torch.Tensor = functional.gelu(self.up(self.norm(x)))
        return x + self.down(wide)


class Ranker(nn.Module):
    """Scores each sequence of a batch; `checked` reads the activations: a graph break per layer."""

    def __init__(self, width: int, layers: int, checked: bool) -> None:
        super().__init__()
        self.checked = checked
        self.embed = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.score = nn.Linear(width, 1)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
            if self.checked and x.abs().max().item() > 1e4:
                print("activations are growing")
        scores: torch.Tensor = self.score(x.mean(1)).squeeze(-1)
        return scores


def build(options: argparse.Namespace) -> Ranker:
    """The model of this version, with its fault inside."""
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(1)
    layers = 6 if options.fault == "slow" else 3
    return Ranker(options.width, layers, checked=options.fault == "graph-break").to(options.device)


def compile_options(options: argparse.Namespace) -> dict[str, Any]:
    """Options for torch.compile: one graph per shape, which suits padded sequences."""
    chosen: dict[str, Any] = {"dynamic": False, "backend": options.backend}
    if options.mode != "default":
        chosen["mode"] = options.mode
    return chosen


def batches(options: argparse.Namespace) -> Iterator[torch.Tensor]:
    """Token batches without end, padded to one length; the fault `shapes` does not pad."""
    chance = torch.Generator().manual_seed(options.seed)

    def pick(low: int, high: int) -> int:
        return int(torch.randint(low, high, (), generator=chance))

    while True:
        size = BATCHES[pick(0, len(BATCHES))]
        length = pick(SHORTEST, LONGEST + 1)
        tokens = torch.randint(1, VOCABULARY, (size, length), generator=chance)
        yield tokens if options.fault == "shapes" else functional.pad(tokens, (0, LONGEST - length))

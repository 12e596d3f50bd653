"""CUDA graphs that are recorded repeatedly: for twelve sizes, and because a parameter is replaced
before each step."""

import compilewatch
import torch


def scaled(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) * 2


sizes = compilewatch.compile(scaled, mode="reduce-overhead", dynamic=True)
layer = torch.nn.Linear(64, 64).cuda()
# the old parameters: a new parameter at the address of an old one would find a graph recorded for
# that address
kept = []
replaced = compilewatch.compile(layer, name="layer", mode="reduce-overhead")
x = torch.ones(8, 64, device="cuda")
with torch.no_grad():
    for length in range(4, 16):
        for _ in range(3):
            sizes(torch.ones(length, 8, device="cuda"))
    for _ in range(6):
        for _ in range(3):
            replaced(x)
        kept.append(layer.weight)
        layer.weight = torch.nn.Parameter(torch.randn(64, 64, device="cuda"))
torch.cuda.synchronize()

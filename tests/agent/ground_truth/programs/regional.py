"""Regional compilation: each block of a model compiled in place; the blocks share their code, and
so their compilations."""

import torch


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.linear(x).relu()


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block() for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x


def compile_repeated_blocks(model: torch.nn.Module, kind: type[torch.nn.Module]) -> None:
    for module in model.modules():
        if isinstance(module, kind):
            module.compile(backend="aot_eager", fullgraph=True)


model = Model().requires_grad_(False)
compile_repeated_blocks(model, Block)
for _ in range(3):
    model(torch.ones(2, 8))

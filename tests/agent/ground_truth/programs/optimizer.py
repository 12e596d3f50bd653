"""A compiled optimizer step."""

import torch

model = torch.nn.Linear(4, 4)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)


@torch.compile(backend="eager")
def step() -> None:
    optimizer.step()


for _ in range(3):
    model(torch.ones(2, 4)).sum().backward()
    step()
    optimizer.zero_grad()

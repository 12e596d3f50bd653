"""A training step: mixed precision, two accumulated gradients, forward and backward compiled by
inductor."""

import torch

torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
compiled = torch.compile(model)
for _ in range(2):
    for _ in range(2):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = compiled(torch.ones(4, 8)).float().pow(2).mean() / 2
        loss.backward()
    optimizer.step()
    optimizer.zero_grad()

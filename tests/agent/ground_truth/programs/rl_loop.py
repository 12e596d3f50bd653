"""A loop as in reinforcement learning: a compiled policy whose actions leave the graph at every
step, and rewards that change it."""

import random

import torch

random.seed(0)
torch.manual_seed(0)
policy = torch.nn.Sequential(
    torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2)
).requires_grad_(False)


def environment(action: int, state: list[float]) -> tuple[list[float], float]:
    return [value + (0.1 if action else -0.1) for value in state], random.random()


@torch.compile(backend="eager")
def act(state: list[float]) -> tuple[list[float], float]:
    logits = policy(torch.tensor(state))
    action = int(torch.distributions.Categorical(logits=logits).sample())
    state, reward = environment(action, state)
    if reward > 0.5:
        print(end="")
    return state, reward


state = [0.0] * 4
for _ in range(12):
    state, reward = act(state)

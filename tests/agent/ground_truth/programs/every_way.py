"""torch.compile as a function, a decorator with and without options, on a module, in place, on a
method and on a lambda."""

import torch


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4).requires_grad_(False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)

    @torch.compile(backend="eager")
    def decorated_method(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * 2

    def method(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) * 3


class Other(Net):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x) - 1


@torch.compile(backend="eager")
def decorated(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def plain(x: torch.Tensor) -> torch.Tensor:
    return x + 2


net, in_place = Net(), Other()
in_place.compile(backend="eager")
for call in (
    decorated,
    torch.compile(plain, backend="eager"),
    torch.compile(backend="eager")(lambda x: x + 3),
    torch.compile(net, backend="eager"),
    in_place,
    torch.compile(net.method, backend="eager"),
    net.decorated_method,
):
    for _ in range(2):
        call(torch.ones(2, 4))

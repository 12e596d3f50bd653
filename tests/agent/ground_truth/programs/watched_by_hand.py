"""compilewatch.watch on functions, methods, coroutines and generators that call compiled code; no
`compilewatch run`."""

import asyncio
from collections.abc import AsyncIterator, Iterator

import compilewatch
import torch

compilewatch.init()


@torch.compile(backend="eager")
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@compilewatch.watch
def function(x: torch.Tensor) -> torch.Tensor:
    return doubled(x)


class Service:
    @compilewatch.watch(name="method")
    def method(self, x: torch.Tensor) -> torch.Tensor:
        return doubled(x)

    @compilewatch.watch(name="coroutine")
    async def coroutine(self, x: torch.Tensor) -> torch.Tensor:
        await asyncio.sleep(0)
        return doubled(x)


@compilewatch.watch(items=lambda x: x.shape[0])
def tokens(x: torch.Tensor) -> Iterator[torch.Tensor]:
    for _ in range(3):
        yield doubled(x)


@compilewatch.watch
async def stream(x: torch.Tensor) -> AsyncIterator[torch.Tensor]:
    for _ in range(2):
        yield doubled(x)


async def serve(service: Service) -> None:
    await asyncio.gather(*(service.coroutine(torch.ones(4)) for _ in range(5)))
    async for _ in stream(torch.ones(4)):
        pass


service = Service()
for _ in range(2):
    function(torch.ones(4))
    service.method(torch.ones(4))
    list(tokens(torch.ones(4)))
asyncio.run(serve(service))
module = compilewatch.compile(
    torch.nn.Linear(4, 4).requires_grad_(False), backend="eager", name="module"
)
for _ in range(3):
    module(torch.ones(2, 4))

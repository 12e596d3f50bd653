"""A job with 8 threads that call one compiled function of `fullgraph=True` until the job's input
ends; the job then prints its counts.

A module and a function are called in turn; each line on the standard input triggers calls with a
new size."""

import json
import sys
import threading

import compilewatch
import torch

backend = sys.argv[1]
compilewatch.init(model="ranker", version="1", interval=0.1)
torch.manual_seed(0)


def score(x: torch.Tensor) -> torch.Tensor:
    return torch.sin(x) * 2 + x.sum()


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x).relu() + 1


net = Net()
scored = compilewatch.compile(score, backend=backend, fullgraph=True, dynamic=False)
netted = compilewatch.watch(torch.compile(net, backend=backend, fullgraph=True, dynamic=False))
x = torch.randn(4, 8)
wanted = [score(x), net(x)]
for callable in (scored, netted):
    callable(x)
stop, calls, wrong, raised, races = threading.Event(), [0] * 8, [0] * 8, [], []


def shared_count() -> bool:
    """Whether all threads share one count of the compiled frames of a `fullgraph=True` call, as in
    torch 2.13: there torch raises this error when two such calls run at once, even without an agent
    or a command."""
    count = getattr(torch._C._dynamo.eval_frame, "set_fullgraph_compiled_frame_count", None)
    if count is None:
        return False
    count(5)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(count(7)))
    thread.start()
    thread.join()
    count(-1)
    return seen == [5]


RACY = shared_count()


def work(number: int) -> None:
    while not stop.is_set():
        for callable, want in zip((scored, netted), wanted, strict=True):
            try:
                wrong[number] += not torch.allclose(callable(x), want, rtol=1e-5, atol=1e-6)
                calls[number] += 1
            except Exception as error:  # noqa: BLE001 - the test checks that nothing raises
                (races if RACY and "found no compiled frames" in str(error) else raised).append(
                    f"{type(error).__name__}: {error}"[:300]
                )


def graphs() -> int:
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
for thread in threads:
    thread.start()
print("ready", flush=True)
compiled, size = [], 4
for _ in sys.stdin:
    before, size = graphs(), size + 1
    fresh = torch.randn(size, 8)
    same = torch.allclose(scored(fresh), score(fresh), rtol=1e-5, atol=1e-6) and torch.allclose(
        netted(fresh), net(fresh), atol=1e-5
    )
    print(json.dumps({"compiled": graphs() - before, "same": same, "raised": raised}), flush=True)
stop.set()
for thread in threads:
    thread.join()
stance = torch._dynamo.eval_frame._stance.stance
print(
    json.dumps(
        {
            "calls": calls,
            "wrong": sum(wrong),
            "raised": raised,
            "races": len(races),
            "stance": stance,
        }
    ),
    flush=True,
)

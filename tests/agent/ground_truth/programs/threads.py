"""Sixteen threads that all call a cold function at once."""

import threading

import torch


@torch.compile(backend="eager")
def shared(x: torch.Tensor) -> torch.Tensor:
    return x.sin() + 1


barrier = threading.Barrier(16)


def work() -> None:
    barrier.wait()
    shared(torch.ones(4))


threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()

"""During a compilation, each window reports its duration, its frame, and the longest earlier
compilation of that frame."""

from __future__ import annotations

import threading
from collections.abc import Callable

import torch

from tests.agent.sources.conftest import Seen


class Stuck:
    """A backend that compiles at once until a test makes it hang, and then until the test releases
    it."""

    def __init__(self) -> None:
        self.hangs = False
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(
        self, graph: torch.fx.GraphModule, inputs: list[torch.Tensor]
    ) -> Callable[..., object]:
        if self.hangs:
            self.reached.set()
            assert self.go_on.wait(60)
        forward: Callable[..., object] = graph.forward
        return forward


def ranked(x: torch.Tensor) -> torch.Tensor:
    return x * 2


def test_a_compilation_is_reported_while_it_lasts_with_its_usual_time(seen: Seen) -> None:
    backend = Stuck()
    compiled = torch.compile(ranked, backend=backend, dynamic=False)
    compiled(torch.ones(2))
    (first,) = seen.compiles()
    backend.hangs = True
    thread = threading.Thread(target=compiled, args=(torch.ones(3),))
    thread.start()
    assert backend.reached.wait(60)
    during, later = seen.look().gauges, seen.look().gauges
    backend.go_on.set()
    thread.join(60)
    assert during.compiling_frame == later.compiling_frame == "ranked"
    assert during.compiling_usual == first.seconds["total"]
    assert during.compiling_for is not None and later.compiling_for is not None
    assert 0 < during.compiling_for < later.compiling_for
    report = seen.look()
    assert (
        report.gauges.compiling_for,
        report.gauges.compiling_frame,
        report.gauges.compiling_usual,
    ) == (0.0, None, None)
    assert report.compiles[0].seconds["total"] >= later.compiling_for


def test_the_first_compilation_of_a_frame_has_no_usual_time(seen: Seen) -> None:
    backend = Stuck()
    backend.hangs = True
    thread = threading.Thread(target=torch.compile(ranked, backend=backend), args=(torch.ones(2),))
    thread.start()
    assert backend.reached.wait(60)
    gauges = seen.look().gauges
    backend.go_on.set()
    thread.join(60)
    assert (gauges.compiling_frame, gauges.compiling_usual) == ("ranked", None)


def test_a_backward_that_hangs_has_the_frame_of_its_forward(seen: Seen) -> None:
    from torch._dynamo.backends.common import aot_autograd

    backend = Stuck()
    compiled = torch.compile(
        ranked,
        backend=aot_autograd(fw_compiler=lambda graph, _: graph.forward, bw_compiler=backend),
    )
    result = compiled(torch.ones(2, requires_grad=True)).sum()
    backend.hangs = True
    thread = threading.Thread(target=result.backward)
    thread.start()
    assert backend.reached.wait(60)
    gauges = seen.look().gauges
    backend.go_on.set()
    thread.join(60)
    assert gauges.compiling_frame == "ranked"


def test_of_several_compilations_the_oldest_is_reported(seen: Seen) -> None:
    for frame in ("first", "second"):
        thread = threading.Thread(target=seen.recorder.on_compile_start, args=(frame,))
        thread.start()
        thread.join(60)
    assert seen.look().gauges.compiling_frame == "first"

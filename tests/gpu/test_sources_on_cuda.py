"""Effects that only a GPU shows: skipped CUDA graphs, memory peaks, and measurements without side
effects."""

from __future__ import annotations

from collections.abc import Callable

from conftest import Recording

Record = Callable[..., Recording]

HEAD = """
import compilewatch
compilewatch.init(version="1")
import torch
"""

SKIP = """
@torch.compile(mode="reduce-overhead")
def mutated(x):
    x.add_(1)
    return x * 2

for _ in range(3):
    mutated(torch.ones(64, device="cuda"))
compilewatch.shutdown()
"""

PEAK = """
x = torch.ones(4096, 4096, device="cuda", dtype=torch.bfloat16)
torch.compile(lambda x: x @ x, mode="max-autotune-no-cudagraphs")(x)
compilewatch.shutdown()
"""

UNTOUCHED = """
import time
import torch._dynamo
import torch._inductor.cudagraph_utils
f = compilewatch.watch(lambda x: x + 1, name="plus")
for _ in range(30):
    f(torch.ones(3))
    time.sleep(0.1)
assert not torch.cuda.is_initialized()
compilewatch.shutdown()
"""

FROM_THE_START = """
x = torch.ones(256, device="cuda")
f = compilewatch.compile(lambda x: torch.relu(x + 1), mode="reduce-overhead")
with torch.no_grad():
    plain = torch.relu(x + 1)
    for _ in range(500):
        y = f(x)
assert torch.equal(plain, y)
compilewatch.shutdown()
"""


def test_a_skipped_cuda_graph_is_reported_once_with_its_reason(record: Record) -> None:
    recording = record("-c", HEAD + SKIP)
    (skip,) = [
        finding for finding in recording.all("findings") if finding["kind"] == "cudagraph_skip"
    ]
    assert skip["text"] == "skipping cudagraphs due to mutated inputs (1 instances)"
    assert skip.get("count", 1) == 1
    assert recording.capability("cuda_graph_skips")[0] == "partly"


def test_a_compilation_that_raises_the_peak_reports_it(record: Record) -> None:
    recording = record("-c", HEAD + PEAK)
    assert any(
        compile.get("new_peak", 0) > 4 * 1024 * 1024 for compile in recording.all("compiles")
    )


def test_the_agent_never_starts_cuda(record: Record) -> None:
    recording = record("-c", HEAD + UNTOUCHED)
    assert recording.capability("gpu_time")[0] == "no"
    assert sum(region["calls"] for region in recording.all("regions")) == 30


def test_results_are_the_same_and_no_error_is_counted(record: Record) -> None:
    recording = record("-c", HEAD + FROM_THE_START)
    assert recording.reports[-1].get("losses", {}).get("internal_errors", 0) == 0

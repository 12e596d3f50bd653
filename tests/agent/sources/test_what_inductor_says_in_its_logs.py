"""Fallbacks and skipped CUDA graphs, which inductor tells its logs: told once, quoted without the user's code, nothing printed more."""

from __future__ import annotations

import logging

import pytest
import torch

from tests.agent.sources.conftest import Seen, found

SKIPS = logging.getLogger("torch._inductor.cudagraph_utils.__cudagraphs")
HINTS = logging.getLogger("torch._inductor.graph.__perf_hints")
QUOTED = """skipping cudagraphs due to mutated inputs (1 instances). Found from :
   File "/srv/app/serve.py", line 3, in main
    step(x)
   File "/srv/app/model.py", line 7, in step
    secret.add_(1)
"""


def test_an_operator_without_a_kernel_is_a_fallback(seen: Seen) -> None:
    with torch._inductor.config.patch(force_disable_caches=True):
        torch.compile(torch.linalg.inv)(torch.eye(3))
    texts = [finding.text for finding in found(seen.look(), "fallback")]
    assert "no inductor kernel for torch.ops.aten.linalg_inv_ex.default" in texts


def test_the_hints_are_read_and_not_printed(seen: Seen, caplog: pytest.LogCaptureFixture) -> None:
    assert HINTS.isEnabledFor(logging.INFO)
    HINTS.info("Using FallbackKernel: %s", "aten.nonzero")
    assert [finding.text for finding in found(seen.look(), "fallback")] == ["no inductor kernel for aten.nonzero"]
    assert not [record for record in caplog.records if record.name == HINTS.name]


def test_a_skip_that_is_logged_twice_and_counted_once_is_one(seen: Seen) -> None:
    SKIPS.warning(QUOTED)
    SKIPS.warning(QUOTED)
    torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] += 1
    poll(seen)
    (skip,) = found(seen.look(), "cudagraph_skip")
    assert (skip.text, skip.where, skip.count) == (
        "skipping cudagraphs due to mutated inputs (1 instances).",
        "model.py:7 in step",
        1,
    )


def test_a_skip_that_is_only_counted_is_told_without_a_reason(seen: Seen) -> None:
    torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] += 2
    poll(seen)
    poll(seen)
    (skip,) = found(seen.look(), "cudagraph_skip")
    assert (skip.text, skip.count) == ("skipped without a reason", 2)


def poll(seen: Seen) -> None:
    next(source for source in seen.sources if source.name == "cuda_graph_skips").poll(seen.recorder)

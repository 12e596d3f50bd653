"""Fallbacks and skipped CUDA graphs, which inductor logs: reported once, quoted without the user's
code, and without any additional output."""

from __future__ import annotations

import logging
import sys
from types import SimpleNamespace

import pytest
import torch
from compilewatch.sources.cuda.graph_rerecords import recording_cause
from compilewatch.sources.cuda.graph_skips import partition_skip_reason

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
    assert [finding.text for finding in found(seen.look(), "fallback")] == [
        "no inductor kernel for aten.nonzero"
    ]
    assert not [record for record in caplog.records if record.name == HINTS.name]


def test_a_skip_that_is_logged_twice_and_counted_once_is_one(seen: Seen) -> None:
    SKIPS.warning(QUOTED)
    SKIPS.warning(QUOTED)
    torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] += 1
    poll(seen)
    (skip,) = found(seen.look(), "cudagraph_skip")
    assert (skip.text, skip.where, skip.count) == (
        "skipping cudagraphs due to mutated inputs (1 instances)",
        "model.py:7 in step",
        1,
    )


def test_a_skip_that_is_only_counted_is_reported_without_a_reason(seen: Seen) -> None:
    torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] += 2
    poll(seen)
    poll(seen)
    (skip,) = found(seen.look(), "cudagraph_skip")
    assert (skip.text, skip.count) == ("skipped without a reason", 2)


def poll(seen: Seen) -> None:
    next(source for source in seen.sources if source.name == "cuda_graph_skips").poll(seen.recorder)


def test_a_graph_that_reached_its_limit_of_recordings_is_a_skip_without_the_users_code(
    seen: Seen,
) -> None:
    SKIPS.warning(
        "skipping cudagraph due to function 0 exceeding max re-recording limit (=128) on "
        "cudagraph node None due to "
        "input name: primals_1. data pointer changed from 140 to 141. input stack trace:   "
        'File "/srv/app/model.py", line 7, in step\n'
        "    secret.add_(1)\n."
    )
    torch._dynamo.utils.counters["inductor"]["cudagraph_skips"] += 1
    poll(seen)
    (skip,) = found(seen.look(), "cudagraph_skip")
    assert (skip.text, skip.where) == (
        "skipping cudagraph due to function 0 exceeding max re-recording limit (=128)",
        "model.py:7 in step",
    )


def test_many_distinct_sizes_are_recordings_and_no_skip(seen: Seen) -> None:
    with torch._inductor.config.patch("triton.cudagraph_dynamic_shape_warn_limit", 2):
        sizes: dict[tuple[int, ...], object] = {(1,): None, (2,): None}
        torch._inductor.cudagraph_utils.maybe_warning_due_to_dynamic_shape(sizes, (3,))  # type: ignore[arg-type]
    report = seen.look()
    assert found(report, "cudagraph_skip") == []
    (sizes_found,) = found(report, "cudagraph_rerecord")
    assert sizes_found.text == "3 distinct input sizes, each a CUDA graph of its own"


def test_a_graph_without_a_recordable_part_is_a_skip_although_torch_logs_nothing() -> None:
    def graph(reasons: list[str], parts: list[object]) -> SimpleNamespace:
        return SimpleNamespace(
            cudagraph_info=SimpleNamespace(cudagraph_fail_reasons=reasons), partition_maps=parts
        )

    assert partition_skip_reason(graph([], [object()])) == ""
    assert (
        partition_skip_reason(graph([], []))
        == "skipping cudagraphs due to no part of the graph that can be recorded"
    )
    assert (
        partition_skip_reason(graph(["dynamic shapes", "x"], []))
        == "skipping cudagraphs due to dynamic shapes, x"
    )


def test_a_recording_gives_its_reason() -> None:
    def first() -> str:
        return recording_cause(sys._getframe(), again=False)

    def mismatch(status: object) -> str:
        assert status
        return recording_cause(sys._getframe(), again=True)

    def deferred_cudagraphify(fn_cache: dict[int, object]) -> str:
        assert fn_cache
        return first()

    assert first() == deferred_cudagraphify({1: None}) == ""
    assert deferred_cudagraphify({1: None, 2: None}) == "recorded for another input size"
    assert "address" in mismatch(SimpleNamespace(name="StaticInputIdxMismatch"))
    assert mismatch(SimpleNamespace(name="Novel")) == "recorded again: Novel"

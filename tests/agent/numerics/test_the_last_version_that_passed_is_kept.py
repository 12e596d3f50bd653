"""The result of a version is kept for the next version on this host: lengths and projections, no
values, and no verdict."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path

import compilewatch
import pytest
import torch
from compilewatch.agent import shutdown
from compilewatch.numerics.golden import Golden
from compilewatch.numerics.golden_history import (
    MAX_VERSIONS,
    GoldenHistory,
    Summary,
    compare_summaries,
    summarize,
)

from tests.agent.golden_models import Perceptron

Start = Callable[..., None]


def passed(
    start: Start, folder: Path, version: str, module: torch.nn.Module, batch: torch.Tensor
) -> Golden:
    torch._dynamo.reset()
    start(version=version, spool=str(folder))
    found = compilewatch.golden("batch", torch.compile(module, backend="aot_eager"), batch)
    shutdown()
    assert found.state == "passed", found.text
    return found


def test_a_version_is_compared_with_the_one_before(start: Start, tmp_path: Path) -> None:
    module, batch = Perceptron(), torch.randn(16, 48)
    first = passed(start, tmp_path, "1", module, batch)
    again = passed(start, tmp_path, "1", module, batch)
    assert (first.parity.last, again.parity.last) == ("", "")
    same = passed(start, tmp_path, "2", module, batch)
    assert (same.parity.last, same.parity.last_version, same.parity.last_change) == (
        "same",
        "1",
        0.0,
    )
    assert passed(start, tmp_path, "3", Perceptron(), batch).parity.last == "other weights"
    assert passed(start, tmp_path, "4", module, torch.randn(16, 48)).parity.last in (
        "other inputs",
        "other weights",
    )


def test_a_change_of_the_code_with_the_same_weights_is_reported_and_is_no_failure(
    start: Start, tmp_path: Path
) -> None:
    class Changed(Perceptron):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return super().forward(x) * 1.02

    module, changed, batch = Perceptron(), Changed(), torch.randn(16, 48)
    changed.load_state_dict(module.state_dict())
    passed(start, tmp_path, "1", module, batch)
    found = passed(start, tmp_path, "2", changed, batch)
    assert (found.state, found.parity.last) == ("passed", "differs")
    # An estimate from four projections: the magnitude is right, the second digit is not.
    assert found.parity.last_change is not None and 0.01 < found.parity.last_change < 0.05


def test_the_file_is_private_to_the_user_and_holds_no_value(start: Start, tmp_path: Path) -> None:
    module, batch = Perceptron(), torch.randn(16, 48)
    passed(start, tmp_path, "1", module, batch)
    (path,) = tmp_path.glob("compilewatch-*/golden/*.golden")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    text = path.read_text()
    assert all(
        repr(value) not in text
        for value in (*batch.flatten().tolist(), *module(batch).flatten().tolist())
    )
    assert len(text) < 1000


def test_a_damaged_file_and_a_spool_that_is_off_cost_only_the_comparison(
    start: Start, tmp_path: Path
) -> None:
    module, batch = Perceptron(), torch.randn(16, 48)
    passed(start, tmp_path, "1", module, batch)
    (path,) = tmp_path.glob("compilewatch-*/golden/*.golden")
    path.write_bytes(b'[1, {"0": [1, 2, 3]}]')
    assert passed(start, tmp_path, "2", module, batch).parity.last == ""
    start(version="3", spool="off")
    torch._dynamo.reset()
    assert (
        compilewatch.golden("batch", torch.compile(module, backend="aot_eager"), batch).parity.last
        == ""
    )


def test_few_versions_are_kept(tmp_path: Path) -> None:
    kept = GoldenHistory(tmp_path / "golden", "m", "g")
    for version in range(MAX_VERSIONS + 3):
        kept.write(str(version), Summary("cpu", [1.0], [2.0], {"output": [float(version)] * 5}))
    assert list(kept.read()) == [str(version) for version in range(3, MAX_VERSIONS + 3)]
    newest = kept.read_last("6")
    assert newest is not None and newest[0] == "5"


@pytest.mark.parametrize(("share", "state"), [(1e-6, "same"), (1e-2, "differs")])
def test_a_change_of_the_whole_is_detected_and_rounding_is_not(share: float, state: str) -> None:
    one = torch.randn(64, 64)
    changed = one + share * torch.randn(64, 64)
    then, now = (summarize(torch, "cpu", [one], [], {"output": value}) for value in (one, changed))
    assert compare_summaries(then, now, 1e-4)[0] == state


def test_a_small_result_is_not_summarised() -> None:
    summary = summarize(torch, "cpu", [], [], {"loss": torch.tensor(3.25), "few": torch.ones(63)})
    assert summary.outputs == {} and compare_summaries(summary, summary, 1e-4) == (
        "too small",
        None,
    )

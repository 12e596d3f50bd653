"""Real models on a GPU, cold and warm: every row of the table agrees with torch's own trace or has
a reason; prints the time of our hooks within the compilations next to its goal."""

from __future__ import annotations

from pathlib import Path

import pytest
from table import CASES, Case, Measured, measured_twice

GOAL_SHARE, MOST_SHARE = 0.0005, 0.002
"""The goal, and the limit on a busy machine."""
MODELS = ("resnet50", "bert_lengths", "gpt2_reduce_overhead", "vit_training")
"""Models of realistic size: the cost per compilation does not shrink with the model."""


def table(case: Case, runs: list[Measured]) -> str:
    """A readable table of the compared values and the costs."""
    lines = []
    for one in runs:
        compiles = [
            f"{compile.kind} {compile.seconds['total']:.2f} s"
            for compile in one.compiles
            if compile.kind not in ("autotune", "cuda_graph")
        ]
        spent = f"{1e3 * one.spent['hooks']:.2f} ms ({1e3 * one.spent['wall']:.2f} wall)"
        share = (
            f"hooks {spent} in {one.spent['calls']:.0f} calls, {100 * one.share:.4f}% (goal "
            f"{100 * GOAL_SHARE}% cold)"
        )
        lines.append(
            f"{case.name}, {one.run.start}: {len(compiles)} compilations, "
            f"{', '.join(compiles[:3])}; {share}"
        )
        lines += [
            f"    {row.measure}: "
            f"{row.agent}{'' if row.agrees else f' (trace: {row.trace}; {row.why})'}"
            for row in one.rows
        ]
    return "\n".join(lines)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_row_agrees_or_is_explained(case: Case, tmp_path: Path) -> None:
    runs = measured_twice(case, tmp_path)
    print(table(case, runs))
    assert [row.fault for one in runs for row in one.rows if row.fault] == []
    cold, warm = runs
    if case.name in MODELS:
        assert cold.share < MOST_SHARE
    explain = {
        "gpt2_reduce_overhead": graphs_were_recorded,
        "skipped_graph": the_skip_has_a_reason,
        "silent_skip": the_silent_skip_is_reported,
        "recording_storm": each_recording_is_reported,
        "recompile_limit": unseen_lengths_ran_eager,
        "resnet50": a_cold_start_has_stages,
    }.get(case.name)
    if explain is not None:
        explain(cold)
        explain(warm)


def graphs_were_recorded(one: Measured) -> None:
    recorded = [compile for compile in one.compiles if compile.seconds.get("cuda_graphs", 0) > 0]
    assert recorded
    devices = [device for report in one.run.recorded[0].reports for device in report.gauges.devices]
    assert devices[-1].graph_pool and devices[-1].graph_pool <= (devices[-1].reserved or 0)
    assert [
        finding for finding in one.all("findings") if finding.kind.startswith("cudagraph")
    ] == []


def the_skip_has_a_reason(one: Measured) -> None:
    (skip,) = [finding for finding in one.all("findings") if finding.kind == "cudagraph_skip"]
    assert (skip.text, skip.count) == ("skipping cudagraphs due to mutated inputs (1 instances)", 1)


def the_silent_skip_is_reported(one: Measured) -> None:
    (skip,) = [finding for finding in one.all("findings") if finding.kind == "cudagraph_skip"]
    assert skip.text == "skipping cudagraphs due to no part of the graph that can be recorded"


def each_recording_is_reported(one: Measured) -> None:
    counts: dict[str, int] = {}
    for finding in one.all("findings"):
        if finding.kind == "cudagraph_rerecord":
            counts[finding.text] = counts.get(finding.text, 0) + finding.count
    assert counts.pop("9 distinct input sizes, each a CUDA graph of its own", 0) <= 1
    assert counts == {
        "recorded for another input size": 11,
        "recorded again: the address of a parameter or static input changed": 5,
    }


def unseen_lengths_ran_eager(one: Measured) -> None:
    eager = sum(region.eager_by.get("limit", 0) for region in one.all("regions"))
    assert 27 <= eager <= 28
    assert len([fact for fact in one.all("facts") if fact.kind == "latched_eager"]) == 1


def a_cold_start_has_stages(one: Measured) -> None:
    cold_starts = [fact.data for fact in one.all("facts") if fact.data.get("name") == "cold start"]
    assert [data["until"] for data in cold_starts][-1] == "ready"
    stages = cold_starts[-1]["stages"]
    assert set(stages) >= {"before init", "import torch", "compile"}
    assert sum(seconds for _, seconds in stages.values()) + cold_starts[-1][
        "unaccounted"
    ] == pytest.approx(cold_starts[-1]["total"], abs=0.01)

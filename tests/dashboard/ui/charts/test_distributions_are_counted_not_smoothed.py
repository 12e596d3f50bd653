"""Distributions and strip plots: every call and every instance is included, and both sides have
equal bins."""

from __future__ import annotations

import random

import pytest

from dashboard.ui.charts.cohort_labels import shorten_cohorts
from dashboard.ui.charts.latency_histograms import build_panels, merge_cells
from dashboard.ui.charts.strip_plot import StripPoint, build_strip_plot, points_from_evidence
from tests.dashboard.ui.charts.rows import A, B, calls

NOISE = random.Random(5)
SLOW = [0.02 * NOISE.lognormvariate(0, 0.2) for _ in range(3000)]


def test_shares_add_up_to_one_and_bin_edges_grow_by_a_constant_factor() -> None:
    (panel,), left_out = build_panels(
        merge_cells([calls(1, SLOW), calls(1, SLOW[:500], version=B)], "wall"), {7: "H200"}, A, B
    )
    assert left_out == [] and [curve.role for curve in panel.curves] == ["baseline", "candidate"]
    widths = set()
    for curve in panel.curves:
        assert sum(curve.shares) == pytest.approx(1.0, abs=1e-3)
        assert len(curve.edges) == len(curve.shares) + 1
        widths |= {round(b / a, 3) for a, b in zip(curve.edges, curve.edges[1:], strict=False)}
    assert len(widths) == 1
    assert panel.curves[0].p50 == pytest.approx(20.0, rel=0.03) and panel.unit == "ms"


def test_fewer_calls_get_wider_bins_instead_of_a_smoothed_line() -> None:
    many, few = (
        build_panels(merge_cells([calls(1, SLOW[:n])], "wall"), {}, A, B)[0][0].curves[0]
        for n in (3000, 60)
    )
    assert few.edges[1] / few.edges[0] > many.edges[1] / many.edges[0]


def test_a_side_with_too_few_calls_is_not_drawn_and_the_panel_states_this() -> None:
    (panel,), _ = build_panels(
        merge_cells([calls(1, SLOW), calls(1, SLOW[:19], version=B)], "wall"), {7: "H200"}, A, B
    )
    assert [curve.role for curve in panel.curves] == ["baseline"] and panel.facts.startswith(
        "baseline only"
    )


def test_panels_over_the_limit_are_listed_as_left_out() -> None:
    rows = [calls(1, SLOW[: 100 * (n + 1)], bucket=f"2^{n}") for n in range(8)]
    panels, left_out = build_panels(merge_cells(rows, "wall"), {7: "H200"}, A, B)
    assert (len(panels), left_out) == (6, ["H200, shapes 2^1", "H200, shapes 2^0"])


def test_each_instance_is_a_mark_and_the_change_compares_the_means() -> None:
    points = [
        StripPoint(f"i{n}", arm, "H200", value, 10)
        for n, (arm, value) in enumerate([("baseline", 0.01)] * 3 + [("candidate", 0.013)] * 2)
    ]
    strip = build_strip_plot("p50", points)
    (row,) = strip.rows
    assert (len(row.baseline), len(row.candidate), row.change, row.counts) == (
        3,
        2,
        "+30%",
        "3 vs 2\u00a0instances",
    )
    assert strip.as_json()["rows"][0]["candidate"]["values"] == [13.0, 13.0]


def test_a_single_side_has_no_change() -> None:
    assert (
        build_strip_plot("p50", [StripPoint("i", "baseline", "H200", 0.01, 10)]).rows[0].change
        == "one side only"
    )


def test_incomplete_dots_are_left_out() -> None:
    whole = {
        "instance": "i",
        "arm": "baseline",
        "stratum": "H200",
        "bucket": "2^8",
        "value": 0.01,
        "n": 3,
    }
    dots = [
        whole,
        None,
        whole | {"value": None},
        whole | {"arm": "else"},
        whole | {"value": float("nan")},
    ]
    evidence = {"evidence": [{"metric": "p50", "dots": dots, "dots_left_out": 2}]}
    assert points_from_evidence(evidence, "p50") == (
        [StripPoint("i", "baseline", "H200, shapes 2^8", 0.01, 3)],
        2,
    )
    assert points_from_evidence(evidence, "gpu_p50") == ([], 0)


def test_shortened_names_drop_the_common_parts() -> None:
    short, shared = shorten_cohorts(
        ["NVIDIA H200 · default, shapes 1", "NVIDIA H100 · default, shapes 1"]
    )
    assert (list(short.values()), shared) == (["H200", "H100"], "default, shapes 1")
    assert shorten_cohorts(["NVIDIA H200 · default"])[0] == {"NVIDIA H200 · default": "H200"}

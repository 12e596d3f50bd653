"""An older agent counts stalled calls as warm-up and reports fewer recompiles: these metrics are
not compared with it, and latency uses the same calls on both sides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import VERSION, Finding, Report, Request
from compilewatch.wire.sketch import Sketch

from dashboard.common import clock
from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import Fault, SimulatedInstance
from dashboard.fleet.fold_service import fold_all
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.fact_lines import fact_lines
from tests.dashboard.regressions.conftest import NOW_MINUTE

pytestmark = pytest.mark.django_db

STALLS = Fault(
    frame="score_batch", file="ranker/score.py", line=118, guard="self.tag == 'a'", stalled=0.05
)
OTHERS = {"stalled calls of score_batch", "recompiles"}


def as_an_older_agent(report: Report) -> Report:
    """An older agent reports stalled calls as warm-up, and a compilation of another code object as
    a first one."""
    regions = [replace(region, warmup=region.stalled, stalled=None) for region in report.regions]
    return replace(
        report,
        regions=regions,
        compiles=[replace(one, kind="first", reason="") for one in report.compiles],
    )


def report_all(instance: SimulatedInstance, store: Callable[..., None], older: bool) -> None:
    instance.rollout = replace(instance.rollout, fault=STALLS)
    reports = list(build_past_reports(instance, start_minute=NOW_MINUTE))
    if older:
        reports = [as_an_older_agent(report) for report in reports]
    store(Request(VERSION, clock.unix(), instance.identity, reports))
    fold_all()


@pytest.mark.parametrize("older", [("baseline",), ("candidate",), ("baseline", "candidate"), ()])
def test_the_same_calls_are_no_regression_whichever_agent_reports_them(
    side_by_side: list[SimulatedInstance],
    store_reports: Callable[..., None],
    older: tuple[str, ...],
) -> None:
    for arm, instance in zip(
        ("baseline", "candidate"), (side_by_side[0], side_by_side[-1]), strict=True
    ):
        report_all(instance, store_reports, arm in older)
    deployments_judge()
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    rows = {row["metric"]: row for row in verdict.evidence["evidence"]}
    differ = {
        one["what"] for one in verdict.evidence["not_compared"] if one["why"] == "agents_differ"
    }
    alike = older != ("baseline",) and older != ("candidate",)
    assert (
        verdict.kind == "roll_back",
        rows["p50"]["label"] == "REGRESSED",
        rows["p99"]["label"] == "REGRESSED",
    ) == (False, False, False)
    assert differ == (set() if alike else OTHERS)
    assert ("recompiles" in rows, "stalled" in rows) == (alike, not older)
    slow = [dot["value"] > 0.1 for dot in rows["p99"]["dots"]]
    assert slow == [not older] * len(slow), (
        "both sides include stalled calls, or both only steady calls"
    )
    if older == ("baseline",):
        assert (
            " waited for a compilation in the last half hour, above the budget of"
            in verdict.sentence
        )
        assert "not comparable with 2026.11.2: agent versions differ" in verdict.sentence


def test_a_later_instance_with_an_older_agent_changes_the_compared_calls(
    side_by_side: list[SimulatedInstance], store_reports: Callable[..., None]
) -> None:
    def p99() -> dict[str, float]:
        deployments_judge()
        verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
        row = next(row for row in verdict.evidence["evidence"] if row["metric"] == "p99")
        return {dot["instance"]: dot["value"] for dot in row["dots"]}

    report_all(side_by_side[0], store_reports, False)
    report_all(side_by_side[-1], store_reports, False)
    assert min(p99().values()) > 0.1
    joined = side_by_side[-2]
    report_all(joined, store_reports, True)
    later = p99()
    assert len(later) > 2 and max(later.values()) < 0.1
    clear_comparisons()
    assert p99() == later


def test_a_region_without_stalled_calls_reports_zero(
    side_by_side: list[SimulatedInstance],
) -> None:
    report = next(iter(build_past_reports(side_by_side[0], start_minute=NOW_MINUTE)))
    assert [region.stalled for region in report.regions] == [Sketch(), Sketch()]


def without_graphs(report: Report, *, nothing: bool, older: bool) -> Report:
    """A third of the calls, or all of them, run code without a graph: an older agent counts these
    calls as compiled."""
    findings = list(report.findings)
    if nothing and not older and report.seq[0] == 20:
        findings.append(
            Finding(
                "compiled_nothing",
                f"{report.regions[0].name}: compilation was requested, but no call ran compiled",
            )
        )
    regions = []
    for region in report.regions:
        bare = region.compiled if nothing else region.compiled // 3
        if older:
            regions.append(replace(region, stalled=None))
        else:
            regions.append(
                replace(region, compiled=region.compiled - bare, eager_by={"no_graph": bare})
            )
    return replace(report, regions=regions, findings=findings)


@pytest.mark.parametrize("nothing", [False, True])
def test_calls_without_a_graph_are_no_regression_either(
    side_by_side: list[SimulatedInstance], store_reports: Callable[..., None], nothing: bool
) -> None:
    for instance in (side_by_side[0], side_by_side[-1]):
        instance.rollout = replace(instance.rollout, fault=Fault())
        old = instance.identity.version == "2026.11.2"
        reports = [
            without_graphs(report, nothing=nothing, older=old)
            for report in build_past_reports(instance, start_minute=NOW_MINUTE)
        ]
        store_reports(Request(VERSION, clock.unix(), instance.identity, reports))
    fold_all()
    deployments_judge()
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    rows = {row["metric"]: row["label"] for row in verdict.evidence["evidence"]}
    differ = {
        one["what"] for one in verdict.evidence["not_compared"] if one["why"] == "agents_differ"
    }
    assert verdict.kind != "roll_back" and rows.get("eager") != "REGRESSED"
    assert differ == OTHERS | {"calls of score_batch without a graph"}
    if nothing:
        assert "compiled nothing" in verdict.sentence
        assert verdict.sentence.endswith("; not comparable with 2026.11.2: agent versions differ.")
        (line,) = fact_lines(verdict.evidence)
        assert (
            line.where
            == "on 1\u00a0instance, not comparable with the baseline: agent versions differ"
        )

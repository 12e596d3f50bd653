"""A version that runs a region with another runtime or mode than its baseline is still compared
with the baseline."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import VERSION, Report, Request

from dashboard.common import clock
from dashboard.demo.sender import build_past_reports
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.fold_service import fold_all
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict

from .conftest import NOW_MINUTE

pytestmark = pytest.mark.django_db

Store = Callable[[Request], object]


def run_as(report: Report, **way: str) -> Report:
    """The report of an instance with this runtime and mode and without sampled guard lookups."""
    regions = [
        replace(region, compiled=0, eager_by={}, sampled=0, **way) for region in report.regions
    ]  # type: ignore[arg-type]
    return replace(report, regions=regions, compiles=[], facts=[])


def send(
    store_reports: Store,
    fleet: Iterable[SimulatedInstance],
    way: Callable[[str, Report], dict[str, str]],
) -> Verdict:
    """Stores the windows of every instance with its runtime and mode, evaluates, and returns the
    verdict on the newest version."""
    for instance in fleet:
        reports = [
            run_as(report, **way(instance.identity.version, report))
            for report in build_past_reports(instance, start_minute=NOW_MINUTE)
        ]
        store_reports(Request(VERSION, clock.unix(), instance.identity, reports))
    fold_all()
    deployments_judge()
    return Verdict.objects.get(current=True, deployment__version__name="2026.11.3")


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (
            {"runtime": "eager", "mode": ""},
            "`score_batch` changed its execution mode from torch.compile reduce-overhead to eager",
        ),
        (
            {"mode": "default"},
            "`score_batch` changed its execution mode from torch.compile reduce-overhead to torch.compile default",
        ),
    ],
)
def test_another_runtime_or_mode_is_compared_and_named_as_the_cause(
    side_by_side: list[SimulatedInstance], store_reports: Store, way: dict[str, str], said: str
) -> None:
    verdict = send(
        store_reports, side_by_side, lambda version, _: way if version == "2026.11.3" else {}
    )
    assert verdict.kind == "roll_back"
    assert verdict.cause == said
    assert said in verdict.sentence
    assert verdict.evidence["not_compared"] == []


def test_a_mode_that_both_versions_use_is_compared_separately(
    side_by_side: list[SimulatedInstance], store_reports: Store
) -> None:
    def way(version: str, report: Report) -> dict[str, str]:
        return {"mode": "default"} if version == "2026.11.3" and report.seq[0] % 2 else {}

    verdict = send(store_reports, side_by_side, way)
    assert verdict.cause == ""
    missing = verdict.evidence["not_compared"]
    assert {entry["why"] for entry in missing} == {"no_baseline_in_stratum"}


def test_the_first_calls_of_a_start_are_not_treated_as_a_mode(
    side_by_side: list[SimulatedInstance], store_reports: Store
) -> None:
    def way(version: str, report: Report) -> dict[str, str]:
        return (
            {"runtime": "eager", "mode": ""} if version == "2026.11.3" or report.seq[0] == 1 else {}
        )

    verdict = send(store_reports, side_by_side, way)
    assert verdict.kind == "roll_back"
    assert (
        verdict.cause
        == "`score_batch` changed its execution mode from torch.compile reduce-overhead to eager"
    )

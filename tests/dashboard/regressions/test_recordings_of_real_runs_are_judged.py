"""Recorded reports of real processes on a CPU and an H200: two runs of one version give no finding,
and a fault is found with its cause."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compilewatch.wire.codec import decode
from compilewatch.wire.messages import Request
from compilewatch.wire.sketch import Sketch

from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment, ProcessMinute
from dashboard.regressions.comparison_cache import clear_comparisons, replay_comparison
from dashboard.regressions.judge import PRODUCTION, Outcome, evaluate_comparison
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict

pytestmark = pytest.mark.django_db

RECORDINGS = Path(__file__).parents[2] / "data/recordings"
WAIT = f"Wait {PRODUCTION.warm_up_minutes + PRODUCTION.instance_minutes}"
SHORT_HOLDS = {"warm_up_minutes": 1, "instance_minutes": 2, "matched_minutes": 3, "lone_minutes": 3}
"""Settings with which minutes of recordings are compared."""
Labels = dict[str, tuple[float, float] | None]
"""The regressed metrics, with a span that contains the change; None for a share."""


@pytest.fixture
def replayed(time_is: Any, store_reports: Callable[..., Any]) -> Callable[..., None]:
    """`replayed("cpu-1-none", ...)` folds the recordings whose names begin with these words, at the
    minute after their end."""

    def replay(*names: str, instances: int = 2) -> None:
        clear_comparisons()
        requests: dict[str, Request] = {}
        for path in sorted(path for name in names for path in RECORDINGS.glob(f"{name}*.jsonl.gz")):
            with gzip.open(path, "rt") as lines:
                for line in lines:
                    request = decode(Request, json.loads(line))
                    known = requests.setdefault(request.instance.id, replace(request, reports=[]))
                    known.reports.extend(request.reports)
        assert len(requests) == instances * len(names)
        time_is.minute = (
            int(max(request.reports[-1].window[1] for request in requests.values()) // 60) + 1
        )
        store_reports(
            *(replace(request, sent=request.reports[-1].window[1]) for request in requests.values())
        )
        fold_all()

    return replay


def verdicts() -> list[Verdict]:
    """All verdicts on the newer version, in order."""
    deployments_judge()
    newer = Deployment.objects.order_by("version__name").last()
    assert newer is not None
    return list(Verdict.objects.filter(deployment=newer).order_by("pk"))


def evaluate_with(**changes: Any) -> Outcome:
    """The evaluation of the newer version with other settings."""
    older, newer = Deployment.objects.select_related("version", "project", "model").order_by(
        "version__name"
    )
    until = newer.last_minute + 1
    comparison = replay_comparison(
        deployment=newer, baseline=older, until=until, settings=replace(PRODUCTION, **changes)
    )
    return evaluate_comparison(comparison, now_minute=until)


def test_the_same_version_twice_is_not_rolled_back(replayed: Callable[..., None]) -> None:
    replayed("cpu-1-none", "cpu-2-none")
    assert ProcessMinute.objects.values("minute").distinct().count() >= 40
    (verdict,) = verdicts()
    assert verdict.kind in ("healthy", "not_enough_data")
    assert {kind for _, kind in verdict.evidence["transitions"]} <= {"healthy", "not_enough_data"}


def test_an_hour_of_the_same_version_is_neither_watched_nor_rolled_back(
    replayed: Callable[..., None],
) -> None:
    """Two instances of each version at the same time on two busy cores."""
    replayed("cpu-hour-same", instances=4)
    (verdict,) = verdicts()
    assert {kind for _, kind in verdict.evidence["transitions"]} <= {"healthy", "not_enough_data"}
    assert verdict.evidence["compared_minutes"] >= 45


@pytest.mark.parametrize(
    ("name", "kind", "metrics", "words"),
    [
        ("cpu-3-slow", "roll_back", {"p50"}, "p50 call time of `request` is"),
        ("cpu-4-graph-break", "roll_back", {"p50"}, "on both instances"),
        (
            "cpu-5-shapes",
            "roll_back",
            {"eager"},
            " on 1: `forward` reached its recompile limit (guard: tensor 'tokens' size mismatch",
        ),
        (
            "cpu-6-cold-cache",
            "watch",
            {"compile_time", "cold_start"},
            "not a reason to roll back on its own",
        ),
    ],
)
def test_each_fault_of_a_real_version_is_found(
    replayed: Callable[..., None], name: str, kind: str, metrics: set[str], words: str
) -> None:
    replayed("cpu-1-none", name)
    verdict = verdicts()[-1]
    driving = {row["metric"] for row in verdict.evidence["evidence"] if row["drives"]}
    assert (verdict.kind, words in verdict.sentence, metrics <= driving) == (kind, True, True), (
        verdict.sentence,
        driving,
    )


def test_an_eager_version_on_an_h200_is_reported_with_its_cause_and_effect(
    replayed: Callable[..., None],
) -> None:
    """Too short for a ROLL BACK with the production settings: the eager fallback is certain, and
    the other findings appear with shorter hold times."""
    replayed("h200-serve-v1", "h200-serve-v2")
    (verdict,) = verdicts()
    assert verdict.kind == "watch"
    assert (
        "`forward` runs eager until its process restarts: it reached its recompile limit"
        in verdict.sentence
    )
    outcome = evaluate_with(warm_up_minutes=1, instance_minutes=2, matched_minutes=3)
    rows = {row.metric: row for row in outcome.evidence}
    assert (rows["eager"].label, rows["eager"].affected_instances, list(rows["eager"].causes)) == (
        "REGRESSED",
        2,
        ["limit"],
    )
    assert 0.6 < (rows["eager"].candidate or 0.0) < 1.0
    gpu = rows["gpu_p50"]
    assert (gpu.label, gpu.judged, gpu.candidate_instances) == ("REGRESSED", True, 2)
    counted = gpu_median("h200-serve-v2") / gpu_median("h200-serve-v1") - 1.0
    assert gpu.change == pytest.approx(counted, abs=0.15)
    assert (gpu.low or 0.0) < counted < (gpu.high or 0.0)


@pytest.mark.parametrize(
    ("name", "kind", "words", "labels"),
    [
        ("same", "not_enough_data", WAIT, {}),
        ("slow", "not_enough_data", WAIT, {}),
        ("mode", "not_enough_data", WAIT, {}),
        ("cold-cache", "not_enough_data", WAIT, {"gpu_memory": (1.5, 1.8)}),
        (
            "graph-break",
            "watch",
            "`forward` runs eager until its process restarts: torch skips the frame of it",
            {"gpu_p50": (0.1, 1.4)},
        ),
        (
            "shapes",
            "watch",
            "it reached its recompile limit (guard: tensor 'tokens' size mismatch",
            {"eager": None, "gpu_memory": (1.5, 1.8)},
        ),
    ],
)
def test_pairs_that_shared_two_h200s_get_the_verdicts_of_their_certain_facts(
    replayed: Callable[..., None],
    name: str,
    kind: str,
    words: str,
    labels: Labels,
) -> None:
    """Seven minutes, twelve processes on each GPU: certain facts at once, other findings with
    shorter hold times, and no further regressions."""
    replayed(f"h200-pair-{name}", instances=4)
    (verdict,) = verdicts()
    assert (verdict.kind, words in verdict.sentence.replace("\u00a0", " ")) == (kind, True), (
        verdict.sentence
    )
    outcome = evaluate_with(**SHORT_HOLDS)
    check_labels(outcome, labels)
    # The call time of so few minutes is no reason for a rollback; most of the calls run eager.
    assert (outcome.verdict == "roll_back") == ("eager" in labels)


@pytest.mark.parametrize(
    ("name", "kind", "words", "labels", "short"),
    [
        ("same-a", "not_enough_data", WAIT, {}, "not_enough_data"),
        ("same-b", "not_enough_data", WAIT, {}, "not_enough_data"),
        ("slow", "not_enough_data", WAIT, {}, "not_enough_data"),
        ("mode", "not_enough_data", WAIT, {"gpu_p50": (0.3, 1.0)}, "not_enough_data"),
        ("cold-cache", "not_enough_data", WAIT, {"gpu_memory": (1.5, 1.8)}, "watch"),
        (
            "graph-break",
            "watch",
            "`forward` runs eager until its process restarts: torch skips the frame of it",
            {"gpu_p50": (0.6, 1.4)},
            "roll_back",
        ),
        (
            "shapes",
            "watch",
            "it reached its recompile limit (guard: tensor 'tokens' size mismatch",
            {
                "eager": None,
                "stalled_time": None,
                "gpu_p50": (0.3, 1.1),
                "gpu_memory": (1.5, 1.8),
            },
            "roll_back",
        ),
    ],
)
def test_a_second_recording_on_two_h200s_gets_the_verdicts_of_its_faults(
    replayed: Callable[..., None],
    name: str,
    kind: str,
    words: str,
    labels: Labels,
    short: str,
) -> None:
    """Equal versions are never WATCH or ROLL BACK. With shorter hold times, a graph break that
    doubles the GPU time is ROLL BACK after six minutes."""
    replayed(f"h200-second-{name}", instances=4)
    (verdict,) = verdicts()
    assert (verdict.kind, words in verdict.sentence.replace("\u00a0", " ")) == (kind, True), (
        verdict.sentence
    )
    assert not name.startswith("same") or {
        stage for _, stage in verdict.evidence["transitions"]
    } == {"not_enough_data"}
    outcome = evaluate_with(**SHORT_HOLDS)
    check_labels(outcome, labels)
    assert outcome.verdict == short


def check_labels(outcome: Outcome, labels: Labels) -> None:
    """Exactly these metrics of a region or of the processes are regressed, by these changes. p99
    follows the median."""
    found = {
        row.metric: row
        for row in outcome.evidence
        if row.label == "REGRESSED" and row.judged and row.metric != "gpu_p99"
        if row.region or row.metric not in ("p50", "gpu_p50")
    }
    assert found.keys() == labels.keys()
    for metric, span in labels.items():
        assert span is None or span[0] < (found[metric].change or 0.0) < span[1], metric


def gpu_median(name: str) -> float:
    """Median GPU time of a request, over all windows from the second minute."""
    merged = Sketch()
    for path in RECORDINGS.glob(f"{name}-*.jsonl.gz"):
        with gzip.open(path, "rt") as lines:
            reports = [
                report for line in lines for report in decode(Request, json.loads(line)).reports
            ]
        for report in reports:
            if report.window[0] >= reports[0].window[0] + 60.0:
                for region in report.regions:
                    if region.name == "request" and region.gpu is not None:
                        merged.merge(region.gpu)
    median = merged.quantile(0.5)
    assert median is not None
    return median

"""An OpenTelemetry sender without window numbers: each data point is one window of any length, and
an hour of a fleet folds."""

from __future__ import annotations

from typing import Any

import pytest
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Report

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all, poison_refold
from dashboard.fleet.models import Instance, ProcessMinute, VersionProcessHour
from dashboard.ingest.batch import batch_read
from dashboard.ingest.models import InboxRow, PoisonReport
from dashboard.ingest.numbering import count_windows, derive_numbers
from dashboard.ingest.otlp.convert import convert_metrics
from dashboard.ingest.services import reports_store
from dashboard.projects.models import Project

pytestmark = pytest.mark.django_db
WINDOW = 10
PROCESSES, POINTS = 7, 360
"""An hour of seven processes: the bug behind this test quarantined 366 of these 2,520 reports."""


def metrics(process: int, points: int, end: int) -> dict[str, Any]:
    """Metrics of an SDK: a histogram with a point every ten seconds, the last one ending at `end`,
    without window numbers."""
    found = []
    for number in range(points):
        stop = end - (points - 1 - number) * WINDOW
        times = {
            "startTimeUnixNano": str((stop - WINDOW) * 10**9),
            "timeUnixNano": str(stop * 10**9),
        }
        bins = {"offset": -60, "bucketCounts": ["5"]}
        point = {**times, "count": "5", "sum": 0.02, "scale": 3, "zeroCount": "0", "positive": bins}
        found.append(
            {
                **point,
                "attributes": [{"key": "compilewatch.region", "value": {"stringValue": "answer"}}],
            }
        )
    histogram = {"aggregationTemporality": 1, "dataPoints": found}
    service = {
        "service.name": "ranker",
        "service.version": "7",
        "service.instance.id": f"pod-{process}",
    }
    resource = {
        "attributes": [
            {"key": name, "value": {"stringValue": text}} for name, text in service.items()
        ]
    }
    metric = {"name": "compilewatch.duration", "unit": "s", "exponentialHistogram": histogram}
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": [metric]}]}]}


def send(project: Project, process: int, points: int, end: int) -> int:
    """Stores the points in the inbox as the endpoint does; returns the number of stored reports."""
    now, stored = clock.unix(), 0
    for request in convert_metrics(metrics(process, points, end), project.pk, now).requests:
        [answer] = reports_store(
            [batch_read(text=dumps(request), project_id=project.pk, received=now)]
        )
        assert not answer.rejected
        stored += len(answer.acked)
    return stored


def hour() -> int:
    """The end of the last whole hour but one, so that every window lies in the same hour."""
    return int(clock.unix() // 3600) * 3600 - 3600


def test_an_hour_of_seven_processes_folds_and_counts_each_point_once(project: Project) -> None:
    assert (
        sum(send(project, process, POINTS, hour()) for process in range(PROCESSES))
        == PROCESSES * POINTS
    )
    assert fold_all() == PROCESSES * POINTS
    assert (PoisonReport.objects.count(), InboxRow.objects.count()) == (0, 0)
    assert set(ProcessMinute.objects.values_list("windows", flat=True)) == {60 // WINDOW}
    [whole] = VersionProcessHour.objects.values_list("windows", "instances")
    assert whole == (PROCESSES * POINTS, PROCESSES)


def test_late_points_are_one_late_window_each(project: Project) -> None:
    send(project, 0, 12, hour())
    fold_all()
    assert Instance.objects.get().late_windows == 12


def test_reports_quarantined_by_the_bug_fold_after_the_upgrade(project: Project) -> None:
    send(project, 0, 12, hour())
    kept = (
        "project_id",
        "shard",
        "instance_id",
        "seq_first",
        "seq_last",
        "received_at",
        "clock_offset",
        "identity",
        "report",
    )
    rows = list(InboxRow.objects.values(*kept))
    PoisonReport.objects.bulk_create(
        [
            PoisonReport(**row, set_aside_at=clock.now(), error="DataError: integer out of range")
            for row in rows
        ]
    )
    InboxRow.objects.all().delete()
    assert poison_refold() == fold_all() == 12
    assert sum(ProcessMinute.objects.values_list("windows", flat=True)) == 12
    assert not PoisonReport.objects.exists()


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (1_795_000_000.0, 1_795_000_010.0),
        (1_795_000_000.123456, 1_795_000_000.123457),
        (1_795_000_001.9, 1_795_003_601.9),
    ],
)
def test_sequence_numbers_derived_from_time_are_recognised_by_their_window(
    start: float, end: float
) -> None:
    seq = derive_numbers(round(start * 1e9), round(end * 1e9))
    assert count_windows(Report(seq=seq, window=(start, end))) == 1


@pytest.mark.parametrize(
    ("seq", "count"), [((4, 7), 4), ((1, 1), 1), ((9, 8), 1), ((2, 1 << 53), 10**6)]
)
def test_sequence_numbers_of_an_agent_count_as_windows(seq: tuple[int, int], count: int) -> None:
    assert count_windows(Report(seq=seq, window=(1_795_000_000.0, 1_795_000_010.0))) == count

"""Input of the judge: minutes of both sides, changes since the last read, late data, and closed
minutes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import Request

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment, ModelVersion
from dashboard.fleet.selectors.judge_inputs.judge_minutes import (
    closed_minute,
    read_instance_minutes,
)
from dashboard.projects.models import Project
from tests.dashboard.requests import instance_id

MINUTE = 29_833_333
END = (MINUTE + 1) * 60.0

MakeRequest = Callable[..., Request]
Store = Callable[..., object]
Send = Callable[..., None]

pytestmark = pytest.mark.django_db


@pytest.fixture
def send(make_request: MakeRequest, store_reports: Store, monkeypatch: pytest.MonkeyPatch) -> Send:
    """Sends and folds; `late` is the delay in seconds after the end of the last window."""

    def send(*, late: float = 5.0, end: float = END, **fields: object) -> None:
        monkeypatch.setattr(clock, "unix", lambda: end + late)
        store_reports(replace(make_request(end=end, **fields), sent=end + late))
        fold_all()

    return send


def test_both_sides_are_read_with_their_strata_and_units(send: Send, project: Project) -> None:
    send(version="1", instance=1, minutes=10, p50=0.01)
    send(version="2", instance=2, minutes=4, p50=0.03, world_size=8, job="train-7")
    baseline, candidate = (Deployment.objects.get(version__name=name) for name in "12")
    rows = read_instance_minutes(
        deployment=candidate, baseline=baseline, from_minute=MINUTE - 5, to_minute=MINUTE
    )
    assert [(row.arm, row.minute - MINUTE) for row in rows if row.arm == "candidate"] == [
        ("candidate", n) for n in (-3, -2, -1)
    ]
    assert [row.minute - MINUTE for row in rows if row.arm == "baseline"] == [-5, -4, -3, -2, -1]
    one = next(row for row in rows if row.arm == "candidate")
    assert (one.instance, one.unit, one.region, one.bucket, one.calls) == (
        instance_id(2),
        "job train-7",
        "forward",
        "2^12",
        100,
    )
    assert one.stratum == ("NVIDIA H200", "default", "torch.compile", "world size 8")
    assert one.first_minute == MINUTE - 3
    assert one.p50 == pytest.approx(0.03, rel=0.1)


@pytest.mark.parametrize(
    ("now", "minute"),
    [(END + 29.9, MINUTE - 1), (END + 30.0, MINUTE), (END + 89.9, MINUTE), (END + 90, MINUTE + 1)],
)
def test_a_minute_is_closed_half_a_minute_after_its_end(now: float, minute: int) -> None:
    assert closed_minute(now) == minute


def test_only_data_for_closed_minutes_counts_as_late(send: Send) -> None:
    send(minutes=1, late=5.0)
    assert ModelVersion.objects.get().late_folds == 0
    send(minutes=1, first_seq=2, late=40.0)
    assert ModelVersion.objects.get().late_folds == 1


def test_a_process_that_follows_another_on_its_host_is_no_additional_instance(send: Send) -> None:
    send(version="1", instance=1, minutes=10, end=END - 600, host="a")
    send(version="1", instance=2, minutes=9, host="a")
    send(version="1", instance=3, minutes=9, host="a")
    send(version="1", instance=4, minutes=9, host="b")
    deployment = Deployment.objects.get()
    rows = read_instance_minutes(
        deployment=deployment, baseline=None, from_minute=MINUTE - 30, to_minute=MINUTE
    )
    units = {row.instance: (row.unit, row.host) for row in rows}
    first, beside, other = instance_id(1), units[instance_id(3)], units[instance_id(4)]
    assert (units[first], units[instance_id(2)]) == ((first, "a"), (first, "a"))
    assert (beside, other) == ((instance_id(3), "a"), (instance_id(4), "b"))

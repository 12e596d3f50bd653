"""Verdict rows: a row is added when the verdict changes and once an hour. Between changes the
newest row is updated; the row of a change is never updated."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import Deployment
from dashboard.regressions import judge_service
from dashboard.regressions.comparison_cache import get_comparison
from dashboard.regressions.judge import Comparison
from dashboard.regressions.judge_service import Judgement, deployments_judge, verdict_write
from dashboard.regressions.models import Verdict
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db


def current_verdict(kind: str, sentence: str = "…") -> Judgement:
    return Judgement(kind, sentence, "", {"evidence": []}, None)


def write(deployment: Deployment, kind: str, minute: int, sentence: str = "…") -> bool:
    return verdict_write(
        deployment=deployment,
        baseline=None,
        judgement=current_verdict(kind, sentence),
        minute=minute,
    )


def test_a_slower_version_gets_a_roll_back_verdict(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    assert deployments_judge() == 2
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    assert verdict.kind == "roll_back"
    assert verdict.baseline is not None
    assert verdict.baseline.version.name == "2026.11.2"
    assert verdict.sentence.startswith("Roll back 2026.11.3: p50 call time is ")
    assert re.search(r"\(2[78](\.\d)?%\) run eager", verdict.sentence)
    assert "score_batch" in verdict.cause
    assert {row["metric"] for row in verdict.evidence["evidence"] if row["drives"]} == {
        "p50",
        "eager",
    }
    first = Verdict.objects.get(current=True, deployment__version__name="2026.11.2")
    assert first.kind == "not_enough_data"
    assert "first version" in first.sentence


def test_nothing_is_evaluated_twice(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    deployments_judge()
    before = list(Verdict.objects.order_by("pk").values())
    assert deployments_judge() == 0
    assert list(Verdict.objects.order_by("pk").values()) == before


def test_data_of_an_open_minute_triggers_no_re_evaluation(
    side_by_side: list[SimulatedInstance],
    send: Callable[..., None],
    time_is: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reports are folded every two seconds: an evaluation each time would repeat the work of a
    minute thirty times."""
    open_minute = [NOW_MINUTE - instance.first_minute for instance in side_by_side]
    time_is.minute -= 1
    for instance, last in zip(side_by_side, open_minute, strict=True):
        send(instance, last=last - 1)
    deployments_judge()
    asked: list[str] = []
    monkeypatch.setattr(
        judge_service,
        "deployment_judge",
        lambda **told: asked.append(told["deployment"].version.name) or False,
    )
    for instance, last in zip(side_by_side, open_minute, strict=True):
        send(instance, first=last, last=last)
    deployments_judge()
    assert asked == []
    time_is.minute += 1
    deployments_judge()
    assert asked == ["2026.11.2", "2026.11.3"]


def test_the_row_of_a_change_keeps_its_evidence(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], time_is: Clock
) -> None:
    send(side_by_side[0], last=5)
    deployment = Deployment.objects.get()
    assert write(deployment, "watch", 1, "changed")
    assert write(deployment, "watch", 2, "same")
    assert not write(deployment, "watch", 3, "same, later")
    assert [(row.minute, row.sentence, row.current) for row in Verdict.objects.order_by("pk")] == [
        (1, "changed", False),
        (3, "same, later", True),
    ]
    assert write(deployment, "roll_back", 4)
    assert list(Verdict.objects.order_by("pk").values_list("previous_kind", flat=True)) == [
        "",
        "watch",
        "watch",
    ]


def test_an_hour_adds_a_row(
    side_by_side: list[SimulatedInstance], send: Callable[..., None], time_is: Clock
) -> None:
    send(side_by_side[0], last=5)
    deployment = Deployment.objects.get()
    for minute in range(3):
        write(deployment, "healthy", minute)
    time_is.minute = NOW_MINUTE + 61
    assert write(deployment, "healthy", 61)
    assert Verdict.objects.filter(current=True).count() == 1
    assert Verdict.objects.count() == 3


def test_a_deployment_that_cannot_be_evaluated_does_not_stop_the_others(
    side_by_side: list[SimulatedInstance],
    send: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    for instance in side_by_side:
        send(instance)

    def broken(**known: Any) -> Comparison:
        if known["baseline"] is not None:
            raise RuntimeError("no comparison today")
        return get_comparison(**known)

    monkeypatch.setattr("dashboard.regressions.judge_service.get_comparison", broken)
    assert deployments_judge() == 1
    assert Verdict.objects.get().deployment.version.name == "2026.11.2"
    assert "could not be evaluated" in caplog.text

"""An operator's command makes calls eager: while the command is in force on an instance, the
instance is in no comparison."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from dashboard.common import clock
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import CommandReceipt, Instance
from dashboard.fleet.selectors.judge_inputs.excluded_minutes import list_minutes_in_force
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Comparison, Verdict
from tests.dashboard.regressions.conftest import JUDGED_MINUTES, NOW_MINUTE

pytestmark = pytest.mark.django_db
BEGUN = NOW_MINUTE - JUDGED_MINUTES


def receipt(instance: str, state: str, minute: float, counter: int = 1) -> None:
    one = Instance.objects.get(instance_id=instance)
    at = clock.at_minute(BEGUN) + timedelta(minutes=minute)
    known = {
        "command": f"a1.{counter}",
        "verb": "eager",
        "counter": counter,
        "why": "",
        "detail": "",
        "callables": 1,
        "refused": 0,
    }
    CommandReceipt.objects.create(
        project_id=one.project_id, instance=one, at=at, state=state, **known
    )


def evaluate_again() -> str:
    clear_comparisons()
    Verdict.objects.all().delete()
    Comparison.objects.all().delete()
    deployments_judge()
    return Verdict.objects.get(current=True, deployment__version__name="2026.11.3").kind


def test_requested_eager_calls_are_no_regression(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    newer = [
        instance.identity.id
        for instance in side_by_side
        if instance.identity.version == "2026.11.3"
    ]
    assert evaluate_again() == "roll_back"
    for name in newer:
        receipt(name, "accepted", 0.0)
        receipt(name, "applied", 0.1)
        for renewed in range(1, 14):
            receipt(name, "accepted", 2.5 * renewed, 1 + renewed)
        receipt(name, "ended", 39.9, 14)
    assert evaluate_again() == "not_enough_data"
    CommandReceipt.objects.filter(instance__instance_id=newer[0]).delete()
    assert evaluate_again() == "roll_back"
    evidence = Verdict.objects.get(current=True, deployment__version__name="2026.11.3").evidence[
        "evidence"
    ]
    [eager] = [row for row in evidence if row["metric"] == "eager"]
    assert eager["affected_instances"] == 1


def test_calls_that_a_command_made_eager_are_still_traffic_of_the_version(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    assert evaluate_again() == "roll_back"
    before = Verdict.objects.get(current=True, deployment__version__name="2026.11.3").evidence
    for instance in side_by_side:
        if instance.identity.version == "2026.11.3":
            receipt(instance.identity.id, "applied", 0.1)
            receipt(instance.identity.id, "ended", 36.9)
    evaluate_again()
    evidence = Verdict.objects.get(current=True, deployment__version__name="2026.11.3").evidence
    assert evidence["adoption"] == pytest.approx(before["adoption"])
    assert not evidence["low_adoption"]


def test_minutes_under_the_switch_do_not_count_as_warm_up(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    evaluate_again()
    current = Verdict.objects.filter(current=True, deployment__version__name="2026.11.3")
    before = current.get().evidence["warm_up"]["candidate"]
    newer = [one for one in side_by_side if one.identity.version == "2026.11.3"]
    receipt(newer[0].identity.id, "applied", 20.1)
    receipt(newer[0].identity.id, "ended", 29.9)
    evaluate_again()
    after = current.get().evidence["warm_up"]["candidate"]
    assert after["excluded_minutes"] == before["excluded_minutes"] > 0
    assert after["excluded_calls"] == before["excluded_calls"]
    assert after["minutes"] == before["minutes"] - 10


@pytest.mark.parametrize(
    ("told", "minutes"),
    [
        ([("applied", 1.5), ("ended", 4.2)], {1, 2, 3, 4}),
        (
            [("accepted", 1.0), ("applied", 2.0), ("ended", 2.1), ("applied", 8.0), ("ended", 8.5)],
            {2, 8},
        ),
        ([("applied", 1.0)], set(range(1, 17))),
        ([("applied", 1.0), ("accepted", 10.0)], set(range(1, 20))),
        ([("applied", 1.0), ("accepted", 18.0), ("ended", 19.0)], set(range(1, 17))),
        ([("accepted", 1.0), ("ended", 3.0)], set()),
        ([("applied", -30.0), ("accepted", -20.0), ("accepted", -10.0), ("ended", 1.0)], {0, 1}),
    ],
)
def test_a_command_is_in_force_from_the_receipt_until_its_end_or_the_last_commands(
    told: list[tuple[str, float]], minutes: set[int]
) -> None:
    rows = [(state, clock.at_minute(BEGUN) + timedelta(minutes=minute)) for state, minute in told]
    assert {minute - BEGUN for minute in list_minutes_in_force(rows, BEGUN, BEGUN + 20)} == minutes

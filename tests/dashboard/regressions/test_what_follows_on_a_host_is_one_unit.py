"""Consecutive processes of a version on a host are one unit, for calls and for memory."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import Deployment, Instance
from dashboard.fleet.selectors.judge_inputs.judge_minutes import read_instance_minutes
from dashboard.fleet.selectors.judge_inputs.judge_processes import read_process_minutes
from tests.dashboard.regressions.conftest import NOW_MINUTE

pytestmark = pytest.mark.django_db


def test_a_restart_keeps_the_unit_and_has_its_own_life(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    candidate = Deployment.objects.select_related("version").latest("started_minute")
    first, second, third = Instance.objects.filter(version=candidate.version).order_by(
        "instance_id"
    )
    Instance.objects.filter(pk__in=[first.pk, second.pk]).update(host="node-1", gpu="H100")
    Instance.objects.filter(pk=first.pk).update(
        first_minute=NOW_MINUTE - 38, last_minute=NOW_MINUTE - 20
    )
    Instance.objects.filter(pk=second.pk).update(first_minute=NOW_MINUTE - 19)
    Instance.objects.filter(pk=third.pk).update(host="node-2", gpu="H100")
    span = {"from_minute": NOW_MINUTE - 18, "to_minute": NOW_MINUTE}
    states = read_process_minutes(deployment=candidate, baseline=None, starts={}, **span)
    found = {state.instance: (state.unit, state.life) for state in states}
    assert found[second.instance_id] == (first.instance_id, second.instance_id)
    assert found[third.instance_id] == (third.instance_id, None)
    calls = {
        row.instance: row.unit
        for row in read_instance_minutes(deployment=candidate, baseline=None, **span)
    }
    assert {name: unit for name, (unit, _) in found.items()}.items() <= calls.items()

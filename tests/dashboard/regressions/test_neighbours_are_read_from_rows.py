"""Processes of other models on the nodes of a deployment are read with one query, and only if they
ran before it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from dashboard.fleet.models import Deployment, Instance
from dashboard.fleet.selectors.judge_inputs.neighbour_minutes import (
    list_neighbours,
    read_neighbour_minutes,
)
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db

BEFORE, AFTER = 60, 20
CHANGE = NOW_MINUTE - AFTER
Sent = Callable[..., None]


def shared_node(send: Sent, since: int = CHANGE - BEFORE) -> tuple[Deployment, SimulatedInstance]:
    """The old and then the new version of one model on a node, and a process of another model on
    the same node since a minute."""
    fleet = build_fleet(judged_minutes=AFTER)[:2]
    pods = build_instances(fleet, start_minute=NOW_MINUTE)
    model = pods[0].identity.model
    old, new = (
        next(pod for pod in pods if (pod.identity.model, pod.identity.version) == (model, version))
        for version in sorted({pod.identity.version for pod in pods if pod.identity.model == model})
    )
    other = next(pod for pod in pods if pod.identity.model != model)
    for pod, first in ((old, CHANGE - BEFORE), (new, CHANGE), (other, since)):
        pod.first_minute = first
        pod.identity = replace(pod.identity, node="node-0")
    send(old, last=BEFORE)
    for pod in (new, other):
        send(pod)
    found = Deployment.objects.get(version__name=new.identity.version, version__model__name=model)
    return found, other


def test_a_neighbour_has_its_minutes(time_is: Clock, send: Sent) -> None:
    deployment, other = shared_node(send)
    known = list_neighbours(deployment=deployment, nodes=["node-0", ""])
    assert known == {Instance.objects.get(instance_id=other.identity.id).pk: "node-0"}
    rows = read_neighbour_minutes(
        project_id=deployment.project_id,
        neighbours=known,
        from_minute=CHANGE - 10,
        to_minute=CHANGE,
    )
    assert {row.minute for row in rows} <= set(range(CHANGE - 10, CHANGE)) and rows
    assert all(row.node == "node-0" and row.p50 > 0.0 and row.calls > 0 for row in rows)


def test_another_node_has_no_neighbour_here(time_is: Clock, send: Sent) -> None:
    deployment, _ = shared_node(send)
    assert list_neighbours(deployment=deployment, nodes=["node-1"]) == {}


def test_a_process_that_started_with_the_deployment_is_no_control(
    time_is: Clock, send: Sent
) -> None:
    deployment, _ = shared_node(send, since=CHANGE + 5)
    assert list_neighbours(deployment=deployment, nodes=["node-0"]) == {}

"""A blue/green deployment creates pods with new names on the same nodes: with the node, the version
is compared with the past of the nodes; without the node, with the past of all hosts together."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from dashboard.demo.rollouts import Fault
from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.independent_units import read_processes
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Verdict
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db

BEFORE, AFTER = 200, 50
CHANGE = NOW_MINUTE - AFTER
NODES = ("node-0", "node-0", "node-1")
"""Two of three pods share a node."""
SLOWER = {"blue": 1.0, "green": 1.5}
Sent = Callable[..., None]
Pods = tuple[list[SimulatedInstance], list[SimulatedInstance]]


@pytest.fixture
def blue_and_green(time_is: Clock) -> Iterator[Pods]:
    """Three pods of the old version until the change, then three pods of the new, slower version;
    every pod has a name of its own. Not sent yet."""
    clear_comparisons()
    versions: dict[str, list[SimulatedInstance]] = {}
    for pod in build_instances(build_fleet(judged_minutes=AFTER)[:1], start_minute=NOW_MINUTE):
        versions.setdefault(pod.identity.version, []).append(pod)
    old, new = (versions[name][:3] for name in sorted(versions))
    for color, pods, since in (("blue", old, CHANGE - BEFORE), ("green", new, CHANGE)):
        for number, pod in enumerate(pods):
            pod.first_minute = since
            pod.identity = replace(pod.identity, host=f"ranker-{color}-{number}")
            # Slower alone: eager calls are a finding without a past as well.
            pod.rollout = replace(pod.rollout, fault=Fault(slower=SLOWER[color]))
    yield old, new
    clear_comparisons()


def place(pods: list[SimulatedInstance], nodes: tuple[str, ...] = NODES) -> None:
    for pod, node in zip(pods, nodes, strict=True):
        pod.identity = replace(pod.identity, node=node)


def judge(pods: Pods, send: Sent) -> Verdict:
    old, new = pods
    for pod in old:
        send(pod, last=BEFORE)
    for pod in new:
        send(pod)
    deployments_judge()
    return Verdict.objects.get(current=True, deployment__version__name="2026.11.3")


def units(version: str) -> dict[str, tuple[str, str]]:
    """Unit and judged host of each process of a version, by agent id."""
    deployment = Deployment.objects.get(version__name=version)
    return {
        process.instance: (process.unit, process.host)
        for process in read_processes(deployment).values()
    }


def test_a_slower_version_is_rolled_back_on_its_nodes(blue_and_green: Pods, send: Sent) -> None:
    for pods in blue_and_green:
        place(pods)
    verdict = judge(blue_and_green, send)
    p50 = next(row for row in verdict.evidence["evidence"] if row["metric"] == "p50")
    assert (verdict.kind, p50["layouts"]) == ("roll_back", ["past_by_load"])
    assert {dot["instance"] for dot in p50["dots"]} == {"node-0", "node-1"}


@pytest.mark.parametrize("reporting", [0, 1], ids=["neither version", "only the new version"])
def test_without_the_nodes_of_both_versions_all_hosts_together_are_the_reference(
    blue_and_green: Pods, send: Sent, reporting: int
) -> None:
    if reporting:
        place(blue_and_green[1])
    verdict = judge(blue_and_green, send)
    p50 = next(row for row in verdict.evidence["evidence"] if row["metric"] == "p50")
    assert (verdict.kind, p50["layouts"]) == ("roll_back", ["pool_by_load"])
    assert "than 2026.11.2 on all its hosts together earlier, adjusted for load" in verdict.sentence


def test_pods_at_once_on_a_node_are_separate_units(blue_and_green: Pods, send: Sent) -> None:
    old, _ = blue_and_green
    place(old)
    for pod in old:
        send(pod, last=10)
    ids = [pod.identity.id for pod in old]
    assert units("2026.11.2") == {id: (id, node) for id, node in zip(ids, NODES, strict=True)}


def test_a_pod_that_follows_another_on_its_node_joins_its_unit(
    blue_and_green: Pods, send: Sent
) -> None:
    first, second, third = blue_and_green[0]
    place([first, second, third], ("node-0", "node-0", "node-1"))
    second.first_minute = third.first_minute = first.first_minute + 20
    for pod in (first, second, third):
        send(pod, last=10)
    assert units("2026.11.2") == {
        first.identity.id: (first.identity.id, "node-0"),
        second.identity.id: (first.identity.id, "node-0"),
        third.identity.id: (third.identity.id, "node-1"),
    }

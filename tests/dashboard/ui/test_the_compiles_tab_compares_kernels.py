"""Kernel choices on the Compiles tab: not reported, equal, or different on some processes; another
GPU is not a difference."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.models import Instance
from dashboard.fleet.selectors.instances.instance_traits import read_instance_traits
from dashboard.projects.models import Project
from dashboard.regressions.judge.environment_diff import diff_environments
from tests.dashboard.ui.version_story import Story, part, shown, tab_of, url_of

pytestmark = pytest.mark.django_db
MM, ADDMM = "kernel mm 1a2b3c", "kernel addmm 9f8e7d"


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


def start(story: Story, *kernels: dict[str, str], **told: Any) -> None:
    for one in kernels:
        story.start("2", components={"torch": "2.13", **one}, **told)
    story.fold()


def card(client: Client, project: Project) -> str:
    return part(shown(client, project, "2"), "kernels")


def test_without_reported_choices_there_is_no_card(
    story: Story, signed_in: Client, project: Project
) -> None:
    start(story, {}, {})
    assert "Autotune divergence" not in shown(signed_in, project, "2")
    assert signed_in.get(url_of(project, "2", ".json")).json()["kernels"] is None


def test_equal_choices_on_all_processes_are_stated(
    story: Story, signed_in: Client, project: Project
) -> None:
    start(
        story, {MM: "triton_mm aa", ADDMM: "addmm bb"}, {MM: "triton_mm aa", ADDMM: "addmm bb"}, {}
    )
    text = card(signed_in, project)
    assert (
        "no divergence for 2 operators" in text
        and "1 of 3 processes reported no autotuning" in text
    )


def test_replicas_that_chose_another_kernel_are_named(
    story: Story, signed_in: Client, project: Project
) -> None:
    start(
        story,
        {MM: "triton_mm aa", ADDMM: "addmm bb"},
        {MM: "triton_mm aa"},
        {MM: "<b>cublas</b> cc"},
    )
    text = card(signed_in, project)
    assert (
        "different kernels for 1 of 1 operator" in text
        and '<code class="wrap">mm 1a2b3c</code>' in text
    )
    assert "<code>triton_mm aa</code> on 2" in text and "on 1: <bdi>gpu-03 / rank 0</bdi>" in text
    raw = signed_in.get(tab_of(project, "2", "compiles")).content.decode()
    assert "<b>cublas" not in raw
    (apart,) = signed_in.get(url_of(project, "2", ".json")).json()["kernels"]["apart"]
    assert [(one["kernel"], one["processes"]) for one in apart["choices"]] == [
        ("triton_mm aa", 2),
        ("<b>cublas</b> cc", 1),
    ]


def test_another_gpu_is_not_a_difference_between_replicas(
    story: Story, signed_in: Client, project: Project
) -> None:
    start(story, {MM: "triton_mm aa"})
    start(story, {MM: "triton_mm cc"}, identity={"gpu": "NVIDIA H100"})
    assert "no operator was autotuned by two processes on one GPU type" in card(signed_in, project)


def test_only_a_kernel_that_all_instances_have_is_a_trait(story: Story, project: Project) -> None:
    start(story, {MM: "triton_mm aa", ADDMM: "addmm bb"}, {MM: "cublas cc"})
    ids = list(Instance.objects.order_by("pk").values_list("pk", flat=True))
    since, newest = clock.now() - timedelta(days=1), clock.minute_of(clock.unix())
    traits = read_instance_traits(
        project_id=project.pk, instance_ids=ids, since=since, newest=newest
    )
    assert [traits[id].get(MM) for id in ids] == ["triton_mm aa", "cublas cc"]
    assert not any(ADDMM in one for one in traits.values())


def test_versions_are_compared_by_kernels_that_both_chose() -> None:
    both = diff_environments([{MM: "a", ADDMM: "b"}, {}], [{MM: "c"}])
    assert [(one.key, one.baseline, one.candidate) for one in both] == [
        (MM, (("a", 1),), (("c", 1),))
    ]
    assert diff_environments([{MM: "a"}, {}], [{MM: "a"}]) == ()

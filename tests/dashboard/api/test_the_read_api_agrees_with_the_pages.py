"""The read API returns the numbers of the pages, in base units, as its OpenAPI document describes
them."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.alerts.models import Alert
from dashboard.fleet.models import Instance
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.api.reading import ROOT, read
from tests.dashboard.ui import stories
from tests.dashboard.ui.charts_factory import HEALTHY, WORSE, Made
from tests.dashboard.ui.charts_story import rolled_back

pytestmark = pytest.mark.django_db


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


def of_chart(client: Client, made: Made, key: str, name: str) -> tuple[list[float | None], str]:
    """The values and the unit that the Model page draws for a version."""
    drawn: dict[str, Any] = client.get(f"{made.url()[:-1]}.json?range=6h").json()
    chart = next(one for one in drawn["charts"] if one["key"] == key)
    return next(line["values"] for line in chart["lines"] if line["name"] == name), chart["unit"]


def test_a_series_matches_the_chart_of_the_model_page(signed_in: Client, made: Made) -> None:
    version = made.versions[WORSE.name]
    drawn = {
        "p50_seconds": ("p50", 1e3),
        "p99_seconds": ("p99", 1e3),
        "eager_share": ("eager", 100),
    }
    drawn["gpu_memory_bytes"] = ("gpu_memory", 1 / (1 << 30))
    answer = read(
        signed_in,
        f"{ROOT}/models/{made.model.pk}/series",
        metric=list(drawn),
        version=version.pk,
        minutes=360,
        step=3,
    )
    assert answer["step_seconds"] == 180 and [
        series["metric"] for series in answer["series"]
    ] == list(drawn)
    for series in answer["series"]:
        chart, factor = drawn[series["metric"]]
        shown, unit = of_chart(signed_in, made, chart, WORSE.name)
        assert len(series["values"]) == len(answer["times"]) == len(shown) == 120 and any(
            value is not None for value in shown
        )
        for page, api in zip(shown, series["values"], strict=True):
            assert (page is None) == (api is None)
            assert page is None or page == pytest.approx(api * factor, rel=2e-3), (chart, unit)


def test_a_comparison_of_two_versions_has_the_evidence_of_the_judge(
    signed_in: Client, made: Made
) -> None:
    a, b = made.versions[HEALTHY.name], made.versions[WORSE.name]
    answer = read(signed_in, f"{ROOT}/models/{made.model.pk}/comparisons", a=a.pk, b=b.pk)
    verdict = Verdict.objects.get()
    assert answer["verdict"]["id"] == verdict.pk and answer["verdict"]["baseline_version"] == a.name
    assert answer["side_by_side"] and answer["a"]["span"] == answer["b"]["span"]
    assert answer["b"]["figures"]["p50_seconds"] > 1.2 * answer["a"]["figures"]["p50_seconds"]
    driving = [line for line in answer["evidence"] if line["drives"]]
    assert {line["metric"] for line in driving} & {"p50", "gpu_p50", "eager"} and driving[0]["text"]
    turned = read(signed_in, f"{ROOT}/models/{made.model.pk}/comparisons", a=b.pk, b=a.pk)
    assert (
        turned["verdict"] is None
        and turned["judged_the_other_way_round"]
        and turned["evidence"] == []
    )


def test_versions_come_with_deployments_verdict_and_metrics(signed_in: Client, made: Made) -> None:
    answer = read(signed_in, f"{ROOT}/models/{made.model.pk}/versions", minutes=120)
    assert [item["name"] for item in answer["items"]][:2] == [WORSE.name, HEALTHY.name]
    worse = answer["items"][0]
    assert (
        worse["verdict"]["kind"] == Verdict.objects.get().kind
        and worse["deployments"][0]["ended_at"] is None
    )
    assert worse["figures"]["calls"] > 0 and 0 < worse["figures"]["eager_share"] < 1
    assert (
        read(signed_in, f"{ROOT}/models/{made.model.pk}/versions", environment="staging")["items"]
        == []
    )


def test_findings_list_the_versions_that_showed_them(signed_in: Client, made: Made) -> None:
    path = f"{ROOT}/models/{made.model.pk}/findings"
    answer = read(signed_in, path)
    assert len(answer["items"]) > 1 and all(item["versions"] for item in answer["items"])
    worse = made.versions[WORSE.name].pk
    of_one = read(signed_in, path, version=worse)["items"]
    assert 0 < len(of_one) <= len(answer["items"]) and all(
        worse in {seen["version_id"] for seen in item["versions"]} for item in of_one
    )
    assert read(signed_in, path, kind="no_such_kind")["items"] == []


def test_instances_have_the_state_that_the_pages_show(signed_in: Client, made: Made) -> None:
    answer = read(signed_in, f"{ROOT}/instances", version=made.versions[WORSE.name].pk)
    assert (
        len(answer["items"])
        == Instance.objects.filter(version=made.versions[WORSE.name]).count()
        > 0
    )
    assert {item["state"] for item in answer["items"]} <= {
        "warming",
        "healthy",
        "degraded",
        "eager",
        "compiling",
        "silent",
        "blind",
    }


def test_alerts_and_verdicts_can_be_filtered_by_their_object(
    signed_in: Client, project: Project
) -> None:
    alert = stories.fleet(project, every=60)
    [listed] = read(signed_in, f"{ROOT}/alerts", state="unresolved")["items"]
    assert listed["number"] == alert.number and listed["link"].endswith(
        f"/p/ranking/alerts/{alert.number}/"
    )
    assert read(signed_in, f"{ROOT}/alerts", state="resolved")["items"] == []
    one = read(signed_in, f"{ROOT}/alerts/{alert.number}")
    assert one["title"] == Alert.objects.get().title and one["events"]
    kinds = {item["kind"] for item in read(signed_in, f"{ROOT}/verdicts")["items"]}
    assert kinds == {"roll_back", "watch", "healthy"}
    [watch] = read(signed_in, f"{ROOT}/verdicts", kind="watch")["items"]
    assert read(signed_in, f"{ROOT}/verdicts/{watch['id']}")["evidence"][0]["metric"] == "p50"


def test_a_page_of_models_costs_a_fixed_number_of_queries(
    signed_in: Client, project: Project
) -> None:
    counts = []
    for number in range(2):
        stories.fleet(project, every=400) if not number else None
        with CaptureQueriesContext(connection) as caught:
            read(signed_in, f"{ROOT}/models")
        counts.append(len(caught))
    assert counts[0] == counts[1] <= 5

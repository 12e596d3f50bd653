"""Data of the latency panels and of the overlay: bounded queries, groups, regions, bad input, and one
version only."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.fleet.models import Deployment, Series, VersionMinute
from dashboard.projects.models import Project
from tests.dashboard.bulk_insert import insert_rows
from tests.dashboard.ui.charts_factory import HEALTHY, WORSE, Made, Plan, charted

MOST_QUERIES = 7 + 8
WEEK = 7 * 1440


@pytest.fixture
def made(project: Project) -> Made:
    return charted(project, HEALTHY, WORSE)


def read(client: Client, made: Made, path: str) -> Any:
    base = f"/p/{made.project.slug}/models/{made.model.pk}"
    with CaptureQueriesContext(connection) as caught:
        answer = client.get(f"{base}{path}")
    assert answer.status_code == 200
    assert len(caught) <= MOST_QUERIES, [query["sql"] for query in caught]
    return answer.json()


def test_the_map_has_the_calls_of_both_versions(signed_in: Client, made: Made) -> None:
    found = read(signed_in, made, "/latency.json?range=6h")
    old, new = found["map"]["versions"]
    assert (old["name"], new["name"]) == (HEALTHY.name, WORSE.name)
    assert found["region"] == "score_batch" and found["window"]["count"] <= 168
    for version in (old, new):
        assert version["calls"] == sum(sum(one["counts"]) for one in version["columns"]) > 0


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("gpu", {"NVIDIA H100", "NVIDIA H200"}),
        ("mode", {"reduce-overhead"}),
        ("region", {"score_batch"}),
        ("host", {"gpu-h100-00", "gpu-h100-01", "gpu-h200-00", "gpu-h200-01"}),
    ],
)
def test_calls_are_grouped(signed_in: Client, made: Made, by: str, names: set[str]) -> None:
    found = read(signed_in, made, f"/breakdown.json?range=6h&by={by}")
    assert {group["name"] for group in found["groups"]} == names
    for group in found["groups"]:
        assert [chart["key"] for chart in group["charts"]] == ["p50", "p99", "compiled"]
        compiled = group["charts"][2]["lines"][1]["values"]
        assert min(value for value in compiled if value is not None) == pytest.approx(71, abs=1)


def test_unknown_parameters_show_the_defaults(signed_in: Client, made: Made) -> None:
    odd = "by=sun&region=%3Cb%3E&from=never&a=x&b=99999999999999999999&clock=sun&env=nowhere"
    assert read(signed_in, made, f"/breakdown.json?{odd}")["by"] == "gpu"
    assert read(signed_in, made, f"/latency.json?{odd}")["region"] == "score_batch"


def test_one_version_is_shown_alone(signed_in: Client, project: Project) -> None:
    alone = charted(project, Plan("1", start=60))
    found = read(signed_in, alone, "/latency.json")
    assert [version["name"] for version in found["map"]["versions"]] == ["1"]
    assert read(signed_in, alone, "/breakdown.json")["groups"]


def test_a_range_without_calls_is_empty(signed_in: Client, made: Made) -> None:
    query = "?from=2020-01-01T00:00&to=2020-01-02T00:00"
    assert read(signed_in, made, f"/breakdown.json{query}")["groups"] is not None
    old = "?from=1590000000&to=1590001000"
    assert read(signed_in, made, f"/latency.json{old}")["map"]["versions"] is not None


def test_last_week_is_one_line_of_all_versions(signed_in: Client, made: Made) -> None:
    assert read_week(signed_in, made)["charts"] == []
    rows = VersionMinute.objects.filter(
        series_id__in=Series.objects.filter(version__name=HEALTHY.name)
    )
    columns = [one.attname for one in VersionMinute._meta.concrete_fields if one.name != "pk"]
    moved = [
        row | {"day": row["day"] - 7, "minute": row["minute"] - WEEK}
        for row in rows.values(*columns)
    ]
    insert_rows(VersionMinute, moved)
    Deployment.objects.filter(version__name=HEALTHY.name).update(
        started_minute=made.deployments[HEALTHY.name].started_minute - WEEK
    )
    found = read_week(signed_in, made)
    (p50,) = [chart for chart in found["charts"] if chart["key"] == "p50"]
    assert len(p50["lines"]) == 1 and p50["factor"] == 1000.0
    known = [value for value in p50["lines"][0]["values"] if value is not None]
    assert known and all(10 < value < 30 for value in known)


def read_week(client: Client, made: Made) -> Any:
    address = f"/p/{made.project.slug}/models/{made.model.pk}.json?range=6h&week=1"
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.json()

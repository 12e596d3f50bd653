"""A quantile in the first bucket of an engine's histogram is shown as a bound with the exact mean,
on all pages and in all files, and never as a value."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Instance, ModelVersion, VersionHour
from dashboard.fleet.selectors.versions.daily_calls import read_series_days
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange
from dashboard.fleet.selectors.versions.fleet_page import read_fleet
from dashboard.ingest.models import BucketLayout, EngineTarget
from dashboard.ingest.scrapers.services import engine_add, engine_read
from dashboard.projects.models import Project
from dashboard.vocabulary import numbers
from tests.dashboard.api.reading import ROOT
from tests.dashboard.api.reading import read as api_read
from tests.dashboard.ingest.recorded import FRONT, OWN, answer, truth

pytestmark = pytest.mark.django_db
ADDRESS = "https://llm.example.com/metrics"
BOUND = numbers.bound(0.3)
MEANS = {name: numbers.duration(truth(name, OWN).mean) for name in ("compile", "changed")}


def run(
    project: Project,
    version: str,
    recorded: str,
    ago: float,
    monkeypatch: pytest.MonkeyPatch,
    front: bool = False,
    slow: bool = False,
) -> None:
    """Five minutes of an engine; each minute adds the recorded counts once more. `slow`: no count
    is in the first bucket."""
    now = clock.unix()
    engine_add(
        project=project,
        url=ADDRESS,
        engine="vllm",
        model="chat",
        version=version,
        gpu="NVIDIA H200",
    )
    for place in range(6):
        with monkeypatch.context() as then:
            then.setattr(clock, "unix", lambda at=now - ago + 60 * place: at)
            text = answer(recorded, times=place, front=front, started=now - ago - 60, slow=slow)
            assert engine_read(target=EngineTarget.objects.get(), get=lambda _, text=text: text)
            fold_all()


@pytest.fixture
def models(project: Project, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a model with two versions, both with a p50 in the first bucket."""
    run(project, "v1", "compile", 420.0, monkeypatch)
    run(project, "v2", "changed", 420.0, monkeypatch)
    return f"/p/ranking/models/{ModelVersion.objects.get(name='v2').model_id}"


def rows(client: Client, address: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(client.get(address).content.decode())))


def test_the_bound_is_that_of_the_engine_and_the_mean_is_exact(models: str) -> None:
    assert (
        MEANS == {"compile": "122\u00a0ms", "changed": "84.1\u00a0ms"}
        and BOUND == "<\u00a0300\u00a0ms"
    )
    assert all(
        layout.bounds[0] > 0 and layout.bounds[-1] is None for layout in BucketLayout.objects.all()
    )


def test_the_fleet_and_the_table_of_versions_show_the_bound(signed_in: Client, models: str) -> None:
    fleet, model = (
        signed_in.get(address).content.decode() for address in ("/p/ranking/", f"{models}/")
    )
    assert (
        BOUND in fleet.replace("&lt;", "<")
        and "no calls in" not in fleet
        and "first bucket" in fleet
    )
    assert f"mean {MEANS['compile']}" in fleet or f"mean {MEANS['changed']}" in fleet
    table = model.replace("&lt;", "<")
    assert table.count(BOUND) > 2 and all(f"mean {mean}" in table for mean in MEANS.values())


def test_charts_have_no_point_and_state_the_reason(signed_in: Client, models: str) -> None:
    charts = {one["key"]: one for one in signed_in.get(f"{models}.json").json()["charts"]}
    p50 = charts["p50"]
    assert [value for line in p50["lines"] for value in line["values"] if value is not None] == []
    bounds = [value for line in p50["lines"] for value in line["below"] if value is not None]
    means = {value for line in p50["lines"] for value in line["mean"] if value is not None}
    assert bounds and set(bounds) == {300.0} and p50["unit"].startswith("ms")
    assert sorted(means) == [
        pytest.approx(1e3 * truth(name, OWN).mean, rel=1e-3) for name in ("changed", "compile")
    ]
    assert f"v1 {BOUND} in" in p50["note"] and "first bucket" in p50["note"]
    assert not charts["p99"]["note"] and any(
        value for line in charts["p99"]["lines"] for value in line["values"] if value
    )
    page = signed_in.get(f"{models}/").content.decode().replace("&lt;", "<").replace("&#x27;", "'")
    assert p50["note"] in page
    numbers = signed_in.get(f"{models}/numbers/").content.decode().replace("&lt;", "<")
    assert "<\u00a0300, mean 84.1" in numbers


def test_the_files_have_the_bound_and_the_mean_in_columns(signed_in: Client, models: str) -> None:
    found = [
        row
        for row in rows(signed_in, f"{models}.csv")
        if row["version"] == "v2" and row["p50 below (ms, wall time)"]
    ]
    assert found and {row["p50 (ms, wall time)"] for row in found} == {""}
    assert {float(row["p50 below (ms, wall time)"]) for row in found} == {300.0}
    mean = next(float(row["mean (ms, wall time)"]) for row in found)
    assert mean == pytest.approx(1e3 * truth("changed", OWN).mean, rel=1e-4)


def test_the_instance_page_and_its_file_show_the_bound(signed_in: Client, models: str) -> None:
    one = Instance.objects.get(version__name="v2")
    page = (
        signed_in.get(f"{models}/instances/{one.instance_id}/")
        .content.decode()
        .replace("&lt;", "<")
    )
    assert BOUND in page and f"mean {MEANS['changed']}" in page
    [row] = rows(signed_in, f"{models}/instances/{one.instance_id}.csv")
    assert row["p50 (s)"] == "" and float(row["p50 below (s)"]) == 0.3
    assert float(row["mean where only a bound is known (s)"]) == pytest.approx(
        truth("changed", OWN).mean
    )
    lower, upper = truth("changed", OWN).bucket(0.99)
    assert row["p99 below (s)"] == "" and lower * 0.98 <= float(row["p99 (s)"]) <= upper * 1.02


def test_comparing_two_versions_shows_bounds_without_a_change(
    signed_in: Client, models: str
) -> None:
    ids = dict(ModelVersion.objects.values_list("name", "pk"))
    page = (
        signed_in.get(f"{models}/compare?a={ids['v1']}&b={ids['v2']}")
        .content.decode()
        .replace("&lt;", "<")
    )
    assert all(f"{BOUND}, mean {mean}" in page for mean in MEANS.values())


def test_programs_read_null_with_a_bound_and_a_mean(signed_in: Client, models: str) -> None:
    model, real = models.rsplit("/", 1)[1], truth("changed", OWN)
    figures = {
        one["name"]: one["figures"]
        for one in api_read(signed_in, f"{ROOT}/models/{model}/versions")["items"]
    }["v2"]
    assert (figures["p50_seconds"], figures["p50_below_seconds"], figures["p99_below_seconds"]) == (
        None,
        0.3,
        None,
    )
    assert figures["mean_seconds"] == pytest.approx(real.mean)
    lower, upper = real.bucket(0.99)
    assert lower * 0.98 <= figures["p99_seconds"] <= upper * 1.02
    series = api_read(
        signed_in,
        f"{ROOT}/models/{model}/series",
        metric=["p50_seconds", "p99_seconds"],
        minutes=30,
    )["series"]
    by_name = {
        name: [one for one in series if one["metric"] == name]
        for name in ("p50_seconds", "p99_seconds")
    }
    assert all(
        set(one["below_seconds"]) == {None, 0.3} and set(one["values"]) == {None}
        for one in by_name["p50_seconds"]
    )
    assert all(
        one["below_seconds"] is None and one["mean_seconds"] is None
        for one in by_name["p99_seconds"]
    )


def test_prometheus_gets_the_bound_as_a_separate_metric(signed_in: Client, models: str) -> None:
    said = [
        line
        for line in signed_in.get("/metrics").content.decode().splitlines()
        if line.startswith("compilewatch_version_latency")
    ]
    of_v2 = {
        line.split("{")[0].removeprefix("compilewatch_version_"): line
        for line in said
        if 'version="v2"' in line
    }
    assert {
        'quantile="0.5"' in line
        for line in said
        if line.startswith("compilewatch_version_latency_seconds")
    } == {False}
    assert (
        of_v2["latency_below_seconds"].endswith(" 0.3")
        and 'quantile="0.5"' in of_v2["latency_below_seconds"]
    )
    assert float(of_v2["latency_mean_seconds"].rsplit(" ", 1)[1]) == pytest.approx(
        truth("changed", OWN).mean
    )


def test_sparklines_and_the_28_day_trend_do_not_draw_only_the_slow_minutes(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(project, "v1", "compile", 420.0, monkeypatch)
    version = ModelVersion.objects.get()
    now = clock.minute_of(clock.unix())
    assert (
        not read_fleet(project=project, window=BinnedRange(now - 60, now, 5))
        .versions[version.pk]
        .points
    )
    today = VersionHour.objects.values_list("day", flat=True).first() or now // 1440
    days: dict[str, Any] = {
        "project_id": project.pk,
        "model_id": version.model_id,
        "environment": "production",
    }
    assert {
        (day.timed, day.p50, day.p99)
        for day in read_series_days(**days, first_day=today - 1, last_day=today + 2)
    } == {(0, 0, 0)}


def test_pages_show_a_value_from_the_histogram_of_the_http_server(
    signed_in: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(project, "v1", "default", 420.0, monkeypatch, front=True)
    version, real = ModelVersion.objects.get(), truth("default", FRONT)
    [one] = api_read(signed_in, f"{ROOT}/models/{version.model_id}/versions")["items"]
    lower, upper = real.bucket(0.5)
    assert (
        one["region"] == "HTTP request"
        and lower * 0.98 <= one["figures"]["p50_seconds"] <= upper * 1.02
    )
    assert one["figures"]["calls"] == 5 * real.count and one["figures"]["mean_seconds"] is None

"""Page weight, and pages with too much, too little or malformed data."""

import gzip
import re
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from dashboard.common import clock
from dashboard.fleet.models import Deployment, Finding, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import HEALTHY, OLDER, WORSE, Plan, charted
from tests.dashboard.ui.factory import now_minute
from tests.dashboard.ui.test_pages_ask_a_fixed_number_of_questions import FRAME, queries

LIMIT = 150_000


def compressed_size(content: bytes) -> int:
    return len(gzip.compress(content, 6))


def files_of(html: str) -> set[str]:
    """All files that the page loads, including the imports of its modules."""
    wanted = set(re.findall(r'(?:src|href)="/static/([^"]+\.(?:js|css|svg))"', html))
    found: set[str] = set()
    while wanted - found:
        name = (wanted - found).pop()
        found.add(name)
        path = finders.find(name)
        assert isinstance(path, str), name
        if "/charts/" in name:
            wanted |= {
                str(Path(name).parent / one)
                for one in re.findall(r'from "\./([a-z-]+\.js)"', Path(path).read_text())
            }
    return found


def test_a_trend_page_transfers_less_than_150_kb(signed_in: Client, project: Project) -> None:
    made = charted(project, HEALTHY, WORSE, OLDER)
    html = signed_in.get(made.url("?range=24h")).sent  # type: ignore[attr-defined]
    files = files_of(html.decode())
    assert {"ui/charts/trends.js", "ui/charts/trend-drawing.js", "ui/charts/theme.js"} <= files
    weight = compressed_size(html) + sum(
        compressed_size(Path(str(finders.find(name))).read_bytes()) for name in files
    )
    assert weight < LIMIT, weight


def test_compare_loads_no_chart_library_with_the_page(signed_in: Client, project: Project) -> None:
    made = charted(project, HEALTHY, WORSE)
    html = signed_in.get(made.url("compare")).sent  # type: ignore[attr-defined]
    files = files_of(html.decode())
    assert "ui/charts/library.js" in files
    assert not any("vendor/" in name for name in files)
    assert b"vendor/" not in html


def test_pages_and_files_are_sent_compressed_and_their_etags_match(
    signed_in: Client, project: Project
) -> None:
    ask = {"Accept-Encoding": "gzip"}
    assert signed_in.get("/p/ranking/", headers=ask)["Content-Encoding"] == "gzip"
    script = signed_in.get("/static/vendor/chart.js", headers=ask)
    assert script["Content-Encoding"] == "gzip"
    assert len(script.content) < 80_000
    assert "Content-Encoding" not in signed_in.get("/p/ranking/")
    assert "Content-Encoding" not in signed_in.get("/healthz", headers=ask)
    part = signed_in.get("/p/ranking/", headers=ask | {"HX-Request": "true"})
    again = signed_in.get(
        "/p/ranking/", headers=ask | {"HX-Request": "true", "If-None-Match": part["ETag"]}
    )
    assert again.status_code == 304


@pytest.fixture
def many_versions(project: Project) -> WatchedModel:
    """A model with two reporting versions and five hundred old versions."""
    made, now, minute = charted(project, HEALTHY, WORSE), clock.now(), now_minute()
    names = [f"{'v' * 190}{number:04d}" for number in range(500)]
    ModelVersion.objects.bulk_create(
        ModelVersion(
            project=project,
            model=made.model,
            name=name,
            first_seen_at=now,
            last_seen_at=now,
            last_minute=minute - 9000,
            revision=1,
        )
        for name in names
    )
    Deployment.objects.bulk_create(
        Deployment(
            project=project,
            model=made.model,
            version=version,
            environment="production",
            started_minute=minute - 9999,
            last_minute=minute - 9000,
            ended_minute=minute - 9000,
        )
        for version in ModelVersion.objects.filter(name__in=names)
    )
    return made.model


def test_five_hundred_versions_do_not_make_a_page_slow_or_heavy(
    signed_in: Client, many_versions: WatchedModel
) -> None:
    address = f"/p/ranking/models/{many_versions.pk}/"
    asked = queries(signed_in, address)
    assert len(asked) <= FRAME + 26, len(asked)
    html = signed_in.get(address).content
    assert WORSE.name in html.decode()
    assert compressed_size(html) < 60_000


def test_models_with_one_point_and_without_points_have_pages(
    signed_in: Client, project: Project
) -> None:
    one = charted(project, Plan("1.0", start=1), name="m" * 200)
    page = signed_in.get(one.url()).content.decode()
    assert "m" * 200 in page and 'data-chart="p50"' in page
    now = clock.now()
    none = WatchedModel.objects.create(
        project=project, name="quiet", first_seen_at=now, last_seen_at=now
    )
    assert "has reported yet" in signed_in.get(f"/p/ranking/models/{none.pk}/").content.decode()


def test_data_with_future_times_breaks_no_page(signed_in: Client, project: Project) -> None:
    made = charted(project, HEALTHY, WORSE)
    Deployment.objects.update(started_minute=now_minute() + 500, last_minute=now_minute() + 900)
    WatchedModel.objects.update(last_seen_at=clock.now() + timedelta(days=400))
    for address in (
        "/p/ranking/",
        made.url(),
        made.url("?range=deployment"),
        made.pair(HEALTHY.name, WORSE.name),
    ):
        assert signed_in.get(address).status_code == 200, address


def test_the_search_of_ten_thousand_findings_needs_one_query_for_each_kind(
    signed_in: Client, project: Project
) -> None:
    made, now = charted(project, Plan("1.0", start=2)), clock.now()
    version = made.versions["1.0"]
    Finding.objects.bulk_create(
        [
            Finding(
                project=project,
                model=made.model,
                kind="guard",
                fingerprint=f"{number:032d}",
                text=f"size({number}) == 7",
                first_version=version,
                last_version=version,
                first_seen_at=now,
                last_seen_at=now,
            )
            for number in range(10_000)
        ],
        batch_size=1000,
    )
    assert len(queries(signed_in, "/p/ranking/search/?q=size")) <= FRAME + 5
    assert len(signed_in.get("/p/ranking/search/?q=size").sent) < 120_000  # type: ignore[attr-defined]

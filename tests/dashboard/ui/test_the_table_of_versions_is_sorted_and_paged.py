"""The Versions tab of a model: every version that ever ran is on one of its pages, in
the order of the address."""

from __future__ import annotations

import re
from datetime import timedelta

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import ENVIRONMENT, Made, Plan, charted, now_minute

MANY = 500


def listed(client: Client, made: Made, query: str = "") -> list[str]:
    """The names in the table, in order."""
    rows = client.get(made.url(f"versions/{query}")).context["versions"]
    return [row.version.name for row in rows]


def old_versions(made: Made, count: int) -> None:
    """Versions that ran long ago, each for one hour."""
    now, minute = clock.now(), now_minute()
    common = {"project": made.project, "model": made.model}
    rows = [
        ModelVersion(
            **common,
            name=f"v{n:03d}",
            first_seen_at=now - timedelta(hours=2 * n),
            last_seen_at=now,
            last_minute=0,
            revision=1,
        )
        for n in range(1, count + 1)
    ]
    begun = [minute - 120 * n for n in range(1, count + 1)]
    Deployment.objects.bulk_create(
        Deployment(
            **common,
            version=version,
            environment=ENVIRONMENT,
            started_minute=at,
            last_minute=at + 60,
            ended_minute=at + 60,
        )
        for version, at in zip(ModelVersion.objects.bulk_create(rows), begun, strict=True)
    )


def test_a_few_versions_can_be_sorted_by_any_column(signed_in: Client, project: Project) -> None:
    made = charted(
        project,
        Plan("1", p50=0.03, start=90),
        Plan("2", p50=0.01, start=60),
        Plan("3", p50=0.02, start=30),
    )
    assert listed(signed_in, made) == ["3", "2", "1"], (
        "by default: the evaluated version, its baseline, then the others"
    )
    assert listed(signed_in, made, "?vsort=name") == ["1", "2", "3"]
    assert listed(signed_in, made, "?vsort=-p50") == ["1", "3", "2"]
    assert listed(signed_in, made, "?vsort=first") == ["1", "2", "3"]
    text = signed_in.get(made.url("versions/?vsort=-p50&range=1h")).content.decode()
    assert 'aria-sort="descending"' in text and re.search(
        r'href="\?vsort=p50&amp;range=1h"|href="\?range=1h&amp;vsort=p50"', text
    )


def test_each_of_five_hundred_versions_is_on_a_page(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=90), Plan("2", start=60))
    few = len(_queries(signed_in, made.url("versions/")))
    old_versions(made, MANY)
    assert listed(signed_in, made)[:3] == ["2", "1", "v001"]
    seen = [name for page in (1, 2, 20, 42) for name in listed(signed_in, made, f"?vpage={page}")]
    assert len(seen) == len(set(seen)) == 36 + 10 and "v500" in seen
    assert listed(signed_in, made, "?vsort=first&vpage=1")[0] == "v500"
    assert listed(signed_in, made, "?vsort=-name&vpage=99")[-1] == "1"
    text = signed_in.get(made.url("versions/?vpage=20")).content.decode()
    assert "of 502 versions" in text and "vsort=-p50" not in text, (
        "metrics exist only for the versions on this page"
    )
    assert len(_queries(signed_in, made.url("versions/?vpage=20"))) <= few + 3, (
        "older versions need three more queries, regardless of their number"
    )


def _queries(client: Client, address: str) -> list[dict[str, str]]:
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    return list(caught.captured_queries)

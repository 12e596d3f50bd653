"""Several queries in one statement return the rows that each query returns alone."""

from django.db import connection
from django.db.models import Max, Sum
from django.test.utils import CaptureQueriesContext

from dashboard.common.raw_queries import fetch_rows, fetch_rows_together
from dashboard.fleet.models import Deployment, VersionMinute, VersionProcessMinute, WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_story import rolled_back


def test_each_query_keeps_its_own_columns_and_types(project: Project) -> None:
    rolled_back(project)
    queries = (
        VersionMinute.objects.values_list("series_id", "calls", "latency", "p50"),
        VersionProcessMinute.objects.values("version_id")
        .order_by()
        .values_list("version_id", Sum("hit_seconds"), Max("gpu_peak")),
        Deployment.objects.values_list("environment", "ended_minute"),
        WatchedModel.objects.values_list("first_seen_at", "last_seen_at", "simulated"),
    )
    with CaptureQueriesContext(connection) as asked:
        together = fetch_rows_together(*queries)
    assert len(asked) == 1
    assert [sorted(rows, key=repr) for rows in together] == [
        sorted(map(tuple, rows), key=repr) for rows in queries
    ]
    assert all(together)
    assert [fetch_rows(rows.order_by("pk")) for rows in queries[2:]] == [
        list(rows.order_by("pk")) for rows in queries[2:]
    ]


def test_an_absent_or_empty_query_has_no_rows(project: Project) -> None:
    names = WatchedModel.objects.filter(project=project).values_list("name")
    WatchedModel.objects.create(
        project=project,
        name="ranker",
        first_seen_at=project.created_at,
        last_seen_at=project.created_at,
    )
    nothing, never = names.filter(name="another"), names.filter(pk__in=[])
    assert fetch_rows_together(None, names, nothing, never) == [[], [("ranker",)], [], []]
    assert fetch_rows_together(None, never) == [[], []]

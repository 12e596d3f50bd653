"""Findings over time: new, gone and returned findings of each day, and the versions that ran with
and without a finding."""

from __future__ import annotations

import csv
import io
from datetime import timedelta

from django.test import Client

from dashboard.common import clock
from dashboard.fleet.models import Finding, FindingLife
from dashboard.projects.models import Project
from dashboard.ui.charts.finding_timeline import (
    MAX_ROWS,
    WIDTH,
    VersionSpan,
    build_finding_timeline,
)
from tests.dashboard.ui.charts_factory import ENVIRONMENT, HEALTHY, WORSE, charted, now_minute
from tests.dashboard.ui.charts_story import finding

DAY = 1440


def rows_of(client: Client, query: str = "") -> list[list[str]]:
    text = client.get(f"/p/ranking/findings.csv?chart=days{query}").content.decode()
    return list(csv.reader(io.StringIO(text)))


def test_a_day_counts_new_gone_and_returned_findings(signed_in: Client, project: Project) -> None:
    made = charted(project, HEALTHY, WORSE)
    shown = [
        finding(made, "guard", f"x.size(0) == {number}", "a.py:1", {HEALTHY.name: 1})
        for number in range(4)
    ]
    Finding.objects.filter(pk__in=[one.pk for one in shown[:2]]).update(
        first_seen_at=clock.now() - timedelta(days=3)
    )
    Finding.objects.filter(pk=shown[2].pk).update(first_seen_at=clock.now() - timedelta(days=90))
    Finding.objects.filter(pk=shown[3].pk).update(
        first_seen_at=clock.now()
    )  # some minutes ago may be yesterday
    for one, state, ago in ((shown[0], "gone", 1), (shown[1], "back", 2), (shown[2], "gone", 60)):
        common = {
            "environment": ENVIRONMENT,
            "first_version": one.first_version,
            "last_version": one.last_version,
        }
        FindingLife.objects.create(
            finding=one, state=state, since_minute=now_minute() - ago * DAY, **common
        )
    rows = rows_of(signed_in)
    assert len(rows) == 31 and [row[1:] for row in rows[-4:]] == [
        ["2", "0", "0"],
        ["0", "0", "1"],
        ["0", "1", "0"],
        ["1", "0", "0"],
    ]
    text = signed_in.get("/p/ranking/findings/").content.decode()
    assert "3 new, 1 gone, 1 back" in text
    assert 'href="/p/ranking/findings.csv?chart=days"' in text
    assert sum(int(row[1]) for row in rows_of(signed_in, "&kind=graph_break")[1:]) == 0, (
        "the filters of the list hold"
    )


def test_the_timeline_shows_versions_with_and_without_the_finding() -> None:
    ran = [
        VersionSpan(1, "a", "production", 100, 200),
        VersionSpan(1, "a", "production", 400, 500),
        VersionSpan(2, "b", "production", 600, 1100),
    ]
    line = build_finding_timeline(
        ran=ran, shown=[VersionSpan(1, "a", "production", 150, 151, 7)], now=1100
    )
    newest, oldest = line.rows
    assert (newest.version, newest.shown, newest.times) == ("b", None, 0)
    assert [bar.x for bar in oldest.ran] == [0.0, 300.0] and oldest.times == 7
    assert oldest.shown is not None and oldest.shown.x == 50.0 and oldest.shown.width >= 4.0
    assert newest.ran[0].x + newest.ran[0].width == WIDTH
    assert line.conclusion == "1 of 2 versions since the first sighting had the finding."


def test_the_timeline_shows_only_the_newest_of_many_versions() -> None:
    line = build_finding_timeline(
        ran=[VersionSpan(n, str(n), "production", n, n + 1) for n in range(500)], shown=[], now=1000
    )
    assert (
        len(line.rows) == MAX_ROWS
        and line.left_out == 500 - MAX_ROWS
        and line.rows[0].version == "499"
    )
    assert build_finding_timeline(ran=[], shown=[], now=5).rows == []


def test_the_page_of_a_finding_draws_the_timeline(signed_in: Client, project: Project) -> None:
    made = charted(project, HEALTHY, WORSE)
    one = finding(made, "guard", "x.size(0) == 1", "a.py:1", {HEALTHY.name: 3}, ago=200)
    text = signed_in.get(f"/p/ranking/findings/{one.pk}/").content.decode()
    assert (
        "Over time" in text and "1 of 2 versions since the first sighting had the finding." in text
    )
    assert "3 times" in text and "never" in text

"""The Model page: the verdict with its evidence, trends by version, versions, findings and
compilations; also as JSON and CSV."""

from __future__ import annotations

import csv
import io
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.fleet.models import Instance, Series
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import HEALTHY, WORSE, Made, Plan, charted, now_minute
from tests.dashboard.ui.charts_story import finding, judged, rolled_back

SHORT = Plan("1", start=30)


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return unescape(answer.content.decode()).replace("\u00a0", " ")


def data_of(client: Client, made: Made, query: str = "") -> dict[str, Any]:
    answer: dict[str, Any] = client.get(made.url()[:-1] + f".json{query}").json()
    return answer


def chart(data: dict[str, Any], key: str, slot: int) -> list[float | None]:
    lines = next(one["lines"] for one in data["charts"] if one["key"] == key)
    return next(line["values"] for line in lines if line["slot"] == slot)


def test_the_page_shows_the_verdict_with_evidence_trends_and_findings(
    signed_in: Client, project: Project
) -> None:
    made = rolled_back(project)
    verdict = Verdict.objects.get()
    alert = Alert.objects.create(
        project=project,
        deployment=verdict.deployment,
        number=418,
        severity="roll_back",
        worst="roll_back",
        title="x",
        opened_at=clock.now(),
    )
    with CaptureQueriesContext(connection) as caught:
        text = text_of(signed_in, made.url())
    assert len(caught) <= 2 + 8, [query["sql"] for query in caught]
    assert verdict.sentence in text and "ROLL BACK" in text and "simulated" in text
    assert (
        f"{made.url()}compare?a={made.versions[HEALTHY.name].pk}&b={made.versions[WORSE.name].pk}"
        in text
    )
    assert (
        f"/p/ranking/alerts/{alert.number}/" in text
        and "Acknowledge" in text
        and "ROLL BACK, A-418" in text
    )


def test_the_verdict_has_its_start_impact_confidence_and_cause(
    signed_in: Client, project: Project
) -> None:
    made = rolled_back(project)
    facts = signed_in.get(made.url()).context["page"].answer
    assert [fact.label for fact in facts] == ["Since", "Impact", "Confidence", "Likely cause"]
    since, impact, confidence, cause = facts
    assert since.at and "after deployment of 2026.11.3" in since.detail
    assert "4 of 8\u00a0instances" in impact.text and "calls/s" in impact.detail
    assert confidence.text == "High"
    assert cause.text


def test_the_findings_of_both_versions_are_on_their_tab(
    signed_in: Client, project: Project
) -> None:
    text = text_of(signed_in, rolled_back(project).url("findings/"))
    assert "Eager fallback until restart" in text
    assert "candidates.size(0): expected 64, actual 72" in text
    assert "53 times on 4 instances" in text
    assert "Calling .item() breaks the graph" in text


def test_an_older_version_shows_its_last_active_day(signed_in: Client, project: Project) -> None:
    assert "last active day" in text_of(signed_in, rolled_back(project).url("versions/"))


def test_an_open_alert_is_shown_if_many_later_alerts_were_resolved(
    signed_in: Client, project: Project
) -> None:
    made = rolled_back(project)
    told: dict[str, Any] = {
        "project": project,
        "deployment": Verdict.objects.get().deployment,
        "severity": "roll_back",
        "worst": "roll_back",
    }
    Alert.objects.create(**told, number=418, title="x", opened_at=clock.now() - timedelta(days=3))
    for number in range(1, 26):
        Alert.objects.create(
            **told,
            number=number,
            title="y",
            opened_at=clock.now() - timedelta(days=2),
            state=AlertState.RESOLVED,
        )
    text = text_of(signed_in, made.url())
    assert "/p/ranking/alerts/418/" in text and "Acknowledge" in text


def test_a_gap_is_null_and_never_zero(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=130))
    values = chart(data_of(signed_in, made, "?range=6h"), "p50", 2)
    known = [value for value in values if value is not None]
    assert values[0] is None and None in values[-40:], (
        "before the deployment and in the ten minutes without a report"
    )
    assert known and min(known) > 10


def test_the_csv_has_the_same_numbers_with_empty_cells_for_gaps(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("=cmd()", start=30))
    answer = signed_in.get(made.url()[:-1] + ".csv?range=1h")
    rows = list(csv.DictReader(io.StringIO(answer.content.decode())))
    assert answer["Content-Type"].startswith("text/csv") and len(rows) == 60
    assert {row["version"] for row in rows} == {"'=cmd()"}
    assert rows[0]["p50 (ms, wall time)"] == "" and float(rows[-2]["p50 (ms, wall time)"]) > 10


@pytest.mark.parametrize(
    ("query", "count", "step"),
    [("?range=1h", 60, 1), ("?range=6h", 120, 3), ("?range=24h", 144, 10), ("?range=7d", 168, 60)],
)
def test_the_range_is_in_the_address(
    signed_in: Client, project: Project, query: str, count: int, step: int
) -> None:
    data = data_of(signed_in, charted(project, SHORT), query)
    assert (data["window"]["count"], data["window"]["step_seconds"]) == (count, step * 60)
    assert any(value is not None for value in chart(data, "p50", 2)), "minutes and hours both draw"


@pytest.mark.parametrize(
    "query",
    [
        "?range=100y",
        "?until=99999999999999",
        "?until=-4",
        "?version=x&env=nowhere&region=nowhere&clock=sun",
        "?a=1&until=1e9",
    ],
)
def test_invalid_parameters_are_ignored(signed_in: Client, project: Project, query: str) -> None:
    assert "trend-charts" in text_of(signed_in, charted(project, SHORT).url() + query)


def test_a_silent_model_links_to_its_last_report(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=900, end=850))
    text = text_of(signed_in, made.url())
    assert "No report in the last 6 h" in text and "trend-charts" not in text
    assert "trend-charts" in text_of(signed_in, f"{made.url()}?until={now_minute() - 850}")


def test_a_single_version_has_no_comparison(signed_in: Client, project: Project) -> None:
    text = text_of(signed_in, charted(project, SHORT).url())
    assert (
        "<bdi>1</bdi> has no earlier version to compare with." in text and "compare?a=" not in text
    )


def test_a_model_without_a_report_shows_the_next_step(signed_in: Client, project: Project) -> None:
    assert "Go to Setup" in text_of(signed_in, charted(project).url())


def test_a_new_model_is_shown_with_a_range_of_one_hour(signed_in: Client, project: Project) -> None:
    made = charted(project, SHORT)
    assert signed_in.get(made.url()).context["range_words"] == "6\u00a0h"
    made.model.first_seen_at = clock.now() - timedelta(minutes=10)
    made.model.save()
    assert signed_in.get(made.url()).context["range_words"] == "1\u00a0h"
    assert signed_in.get(made.url("?range=6h")).context["range_words"] == "6\u00a0h"


def test_environments_are_separate(signed_in: Client, project: Project) -> None:
    made = charted(project, SHORT)
    other = charted(project, Plan("2", start=30), name="other")
    made.deployments["1"].environment = "staging"
    made.deployments["1"].save()
    Series.objects.filter(version=made.versions["1"]).update(environment="staging")
    text = text_of(signed_in, made.url())
    assert "staging" in text and "production" not in text
    assert "staging" not in text_of(signed_in, other.url())


def test_inner_regions_do_not_count_twice_and_the_region_can_be_selected(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=30))
    before = without_gaps(chart(data_of(signed_in, made), "errors", 2))
    bucket = Series.objects.filter(bucket="2^8")
    bucket.update(region="embed")
    text = text_of(signed_in, made.url())
    assert "?region=embed" in text and "?region=score_batch" in text
    bucket.update(region="inner", outermost=False)
    assert "?region=" not in text_of(signed_in, made.url())
    assert without_gaps(chart(data_of(signed_in, made), "errors", 2)) == before


def without_gaps(values: list[float | None]) -> list[float]:
    """The values without gaps: the range ends now, and a minute may pass during the test."""
    return [value for value in values if value is not None]


def test_the_address_selects_the_evaluated_version(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=60), Plan("2", start=30))
    data = data_of(signed_in, made, f"?version={made.versions['1'].pk}")
    assert next(one["name"] for one in data["versions"] if one["slot"] == 2) == "1"


def test_a_finding_of_both_versions_is_not_new(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=60), Plan("2", start=30))
    finding(
        made, "graph_break", "first line\nsecond\nthird\nfourth line", "a.py:1", {"1": 2, "2": 3}
    )
    columns = signed_in.get(made.url("findings/")).context["columns"]
    assert [(column.key, column.total) for column in columns] == [
        ("new", 0),
        ("same", 1),
        ("gone", 0),
    ]
    (line,) = columns[1].lines
    assert (line.text, line.more) == ("first line\nsecond\nthird", "fourth line")


def test_a_healthy_version_has_no_cause(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=100), Plan("2", start=60))
    judged(made, "1", "2")
    Verdict.objects.update(kind="healthy")
    cause = signed_in.get(made.url()).context["page"].answer[-1]
    assert (cause.label, cause.text) == ("Likely cause", "None")


def test_frames_in_eager_fallback_count_instances(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=60), Plan("2", start=30))
    one = Instance.objects.filter(version__name="2").order_by("pk")[0]
    one.latched_eager = [
        {"frame": "f", "cause": "limit", "at": 0},
        {"frame": "f", "cause": "limit", "at": 9},
        "odd",
    ]
    one.save()
    (latched,) = signed_in.get(made.url("findings/")).context["latched"]
    assert (latched.frame, latched.instances, latched.known) == ("f", 1, 4)


def test_a_model_of_another_project_is_not_found(
    signed_in: Client, other_project: Project, project: Project
) -> None:
    made = charted(other_project, SHORT)
    for rest in (
        "/",
        ".json",
        ".csv",
        "/compare",
        "/compare.json",
        "/compare.csv",
        "/versions/",
        "/findings/",
    ):
        assert signed_in.get(f"/p/ranking/models/{made.model.pk}{rest}").status_code == 404

"""The Compare page: the evidence of the judge if the pair has a verdict; otherwise observed numbers
without a claim."""

from __future__ import annotations

import csv
import io
from html import unescape

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import HEALTHY, OLDER, WORSE, Plan, charted, now_minute
from tests.dashboard.ui.charts_story import finding, judged, rolled_back

OLD, NEW = Plan("1", start=60), Plan("2", p50=0.02, start=40)


def at(minute: int) -> str:
    return clock.at_minute(minute).strftime("%Y-%m-%dT%H:%M")


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return unescape(answer.content.decode()).replace("\u00a0", " ")


def test_the_page_opens_with_the_evaluated_pair(signed_in: Client, project: Project) -> None:
    made = rolled_back(project)
    with CaptureQueriesContext(connection) as caught:
        text = text_of(signed_in, made.url("compare"))
    assert len(caught) <= 7 + 8, [query["sql"] for query in caught]
    page = signed_in.get(made.url("compare")).context["page"]
    assert [version.name for version in page.facts.pair] == [HEALTHY.name, WORSE.name]
    assert Verdict.objects.get().sentence not in text, "the sentence is on Overview only"
    assert "ROLL BACK" in text and "1 primary metric regressed" in text and "REGRESSED" in text
    assert [group.title for group in page.groups] == ["User-facing", "Cause", "Cost"]
    judged_rows = [row for row in page.rows if row.judged]
    assert {row.key for row in judged_rows} == {"p50", "p99", "errors", "eager"}
    assert {row.key for row in judged_rows if row.red} == {"p50", "eager"}
    assert {row.key for row in page.rows if not row.judged} >= {
        "p95",
        "recompiles",
        "gpu_memory",
        "cold_start",
    }
    assert "not evaluated: raw differences" in text and text.count("not evaluated") > 6
    assert len(page.strip.rows) == 4 and all(
        len(row.baseline) == len(row.candidate) == 2 for row in page.strip.rows
    )
    assert len(page.panels) == 4 and all(len(panel.curves) == 2 for panel in page.panels)
    assert [
        (one.key, one.baseline, one.candidate, one.explains) for one in page.configured.differences
    ] == [
        ("inductor_config", "4f1c9a2", "b07e35d", True),
        ("mode", "reduce-overhead", "default", True),
    ]
    assert [(column.key, column.total) for column in page.columns] == [
        ("new", 1),
        ("same", 1),
        ("gone", 1),
    ]


def test_more_findings_than_shown_link_to_all_findings_of_the_version(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, OLD, NEW)
    for number in range(8):
        finding(made, "guard", f"size {number}", f"ranker/score.py:{number}", {"2": 1})
    text = text_of(signed_in, made.pair("1", "2"))
    link = f"{made.url('findings/')}?version={made.versions['2'].pk}&env=production"
    assert "Showing 4 of 8" in text and f'<a href="{link}">' in text


def test_a_pair_without_a_verdict_makes_no_claim(signed_in: Client, project: Project) -> None:
    made = charted(project, OLD, NEW)
    text = text_of(signed_in, made.pair("1", "2"))
    assert "No verdict for" in text and "Raw differences have no confidence intervals" in text
    for word in ("REGRESSED", "IMPROVED", "NO CHANGE", 'id="intervals"', "ROLL BACK"):
        assert word not in text
    page = signed_in.get(made.pair("1", "2")).context["page"]
    p50 = next(row for row in page.rows if row.key == "p50")
    assert not p50.judged and p50.interval is None and p50.change.startswith(("+3", "+4"))
    assert sum(len(row.candidate) for row in page.strip.rows) == 8, (
        "observed: 4 instances in two buckets"
    )


def test_the_reverse_pair_makes_no_claim_and_links_to_the_evaluated_pair(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, OLD, NEW)
    judged(made, "1", "2")
    text = text_of(signed_in, made.pair("2", "1"))
    assert "Sides are swapped" in text and "REGRESSED" not in text


def test_versions_that_never_ran_together_are_marked_as_such(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, OLDER, OLD)
    text = text_of(signed_in, made.pair(OLDER.name, "1"))
    assert (
        "ran at the same time for less than 10 min" in text
        and "Instances are shown where both versions ran" in text
    )


def test_the_same_version_twice_asks_for_another(signed_in: Client, project: Project) -> None:
    made = charted(project, OLD, NEW)
    assert "Choose two different versions" in text_of(signed_in, made.pair("1", "1"))
    assert (
        signed_in.get(made.pair("1", "1").replace("compare?", "compare.json?")).status_code == 404
    )


def test_one_version_has_nothing_to_compare(signed_in: Client, project: Project) -> None:
    assert "Nothing to compare yet" in text_of(signed_in, charted(project, OLD).url("compare"))


def test_a_version_of_another_model_is_not_found(signed_in: Client, project: Project) -> None:
    made, other = charted(project, OLD, NEW), charted(project, Plan("9", start=30), name="other")
    address = made.url(f"compare?a={other.versions['9'].pk}&b={made.versions['2'].pk}")
    assert "Choose two different versions" in text_of(signed_in, address)


def test_a_verdict_with_evidence_in_another_format_opens(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, OLD, NEW)
    verdict = judged(made, "1", "2")
    for evidence in (
        {},
        {"evidence": [{"metric": "p50"}], "not_compared": [3, {"why": "odd"}], "mix_shift": [{}]},
        {"evidence": None},
    ):
        verdict.evidence = evidence
        verdict.save()
        assert "Not compared" in text_of(signed_in, made.pair("1", "2"))


def test_rows_as_json_and_csv(signed_in: Client, project: Project) -> None:
    made = charted(project, OLD, Plan("=2", p50=0.02, start=40))
    address = made.pair("1", "=2")
    data = signed_in.get(address.replace("compare?", "compare.json?")).json()
    rows = list(
        csv.DictReader(
            io.StringIO(signed_in.get(address.replace("compare?", "compare.csv?")).content.decode())
        )
    )
    assert [row["metric"] for row in data["rows"]] == [row["metric"] for row in rows]
    assert {row["candidate_version"] for row in rows} == {"'=2"}, "a spreadsheet must not run it"
    assert data["panels"][0]["curves"][0]["count"] > 0


def test_the_range_limits_the_observed_values(signed_in: Client, project: Project) -> None:
    made = charted(project, Plan("1", start=300), Plan("2", start=200))
    spans = [
        signed_in.get(made.pair("1", "2") + query).context["span_b"] for query in ("", "&range=1h")
    ]
    assert [span.last - span.first for span in spans] == [200, 60]


def test_an_absolute_range_limits_the_observed_values(signed_in: Client, project: Project) -> None:
    made, now = charted(project, Plan("1", start=300), Plan("2", start=200)), now_minute()

    def asked(first: int, last: int, path: str = "compare?") -> str:
        return (
            made.pair("1", "2").replace("compare?", path)
            + f"&region=score_batch&from={at(now - first)}&to={at(now - last)}"
        )

    page = signed_in.get(asked(80, 20))
    assert (page.context["span_a"], page.context["span_b"]) == (Span(now - 80, now - 20),) * 2
    text = unescape(page.content.decode())
    assert f'name="from" required value="{at(now - 80)}"' in text, (
        "the form of the picker holds the range"
    )
    assert f"from={at(now - 80)}".replace(":", "%3A") in text, "a link keeps the range"
    rows = signed_in.get(asked(80, 20, "compare.json?")).json()["rows"]
    assert rows != signed_in.get(asked(200, 100, "compare.json?")).json()["rows"]

    before = text_of(signed_in, asked(290, 220))
    assert (
        "2 did not run in this range" in before.replace("<bdi>", "").replace("</bdi>", "")
        and "not at all" in before
    )
    neither = text_of(signed_in, asked(900, 800))
    assert "1 and 2 did not run in this range" in neither.replace("<bdi>", "").replace("</bdi>", "")
    wrong = text_of(signed_in, made.pair("1", "2") + "&from=yesterday")
    assert (
        "from: not a time. Enter a UTC time such as" in wrong
        and "Showing the default range: since deployment." in wrong
    )


def test_an_earlier_verdict_has_its_sentence_and_cause(signed_in: Client, project: Project) -> None:
    made = charted(project, OLD, NEW)
    verdict = judged(made, "1", "2")
    Verdict.objects.update(current=False, cause="another cause")
    text = text_of(signed_in, made.pair("1", "2"))
    assert "Earlier verdict." in text and verdict.sentence in text and "another cause" in text


def test_differences_are_ranked_by_how_well_they_separate_the_sides(
    signed_in: Client, project: Project
) -> None:
    made = rolled_back(project)
    text = text_of(signed_in, made.url("compare"))
    assert (
        "Differences" in text
        and f"4 instances of {WORSE.name} vs 4 instances of {HEALTHY.name}" in text
    )
    changed = signed_in.get(made.url("compare.json")).json()["changed"]
    named = {one["key"] for one in changed} | {
        part.split(" ")[0] for one in changed for part in one["also"].split(", ")
    }
    assert (
        {"inductor_config", "mode"} <= named
        and changed[0]["bad_share"] == 100.0
        and changed[0]["good_share"] == 0.0
    )
    assert f"all 4 instances of {WORSE.name} and none of 4 instances of {HEALTHY.name}" in text

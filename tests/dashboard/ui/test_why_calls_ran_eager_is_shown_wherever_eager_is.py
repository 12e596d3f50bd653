"""Causes of eager calls: one breakdown with counts by cause on the pages, in files and the API, in
evidence and in alert text."""

from __future__ import annotations

from collections.abc import Callable
from html import unescape
from typing import Any

import pytest
from compilewatch.wire.messages import EAGER_CAUSES, Finding, Region
from django.test import Client

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.fleet.fold.counters import COUNTED_EAGER_CAUSES
from dashboard.fleet.metrics.eager_causes import CAUSES, EagerBreakdown, format_causes
from dashboard.fleet.models import Instance, ModelVersion
from dashboard.projects.models import Project
from dashboard.ui.charts.evidence_table import build_evidence_rows as compare_rows
from dashboard.ui.layout.change_rows import build_change_rows as alert_rows
from tests.dashboard.api.reading import read
from tests.dashboard.requests import region_make
from tests.dashboard.ui.version_story import Story, part, shown, url_of

pytestmark = pytest.mark.django_db
BY = {"stance": 500, "no_graph": 40, "limit": 30, "error": 7, "skip": 5, "disabled": 3}
COUNTS = {"compiled": 300, "partial": 15, "unknown": 100, "eager_by": BY}


def mixed() -> Region:
    return region_make(
        name="mixed", calls=1000, compiled=300, partial=15, unknown=100, eager_by=dict(BY)
    )


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    """Version 1 ran compiled; version 2 ran eager for every cause."""
    found = Story(store_reports)
    found.start("1", calls=0, ago=20, beside=[region_make(name="mixed", calls=1000)])
    found.start("2", calls=0, ago=5, beside=[mixed()])
    found.fold()
    return found


def model_url(project: Project, rest: str = "") -> str:
    return f"/p/{project.slug}/models/{ModelVersion.objects.get(name='2').model_id}/{rest}"


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, (address, answer.status_code)
    return " ".join(unescape(answer.content.decode()).replace("\u00a0", " ").split())


def assert_breakdown(text: str) -> None:
    """Each cause has its count; partly compiled and unsampled calls are separate."""
    breakdown = text.split('class="why-eager"')[1].split("</ul>")[0]
    for cause, count in BY.items():
        assert f'{CAUSES[cause].name}</span><span class="num">{count} (' in breakdown, cause
    assert 'Eager stance</span><span class="num">500 (55.6%)' in breakdown, (
        "relative to 900 sampled calls"
    )
    assert 'class="dim"><span>Partly compiled</span><span class="num">15 (' in breakdown
    assert 'class="dim"><span>Not known</span><span class="num">100</span>' in breakdown, (
        "not part of any share"
    )


def test_every_cause_of_the_wire_format_has_a_text() -> None:
    assert set(CAUSES) == set(COUNTED_EAGER_CAUSES) == set(EAGER_CAUSES)


def test_the_version_page_and_its_file_show_the_causes(
    story: Story, signed_in: Client, project: Project
) -> None:
    card = part(shown(signed_in, project, "2"), "served")
    assert_breakdown(card)
    assert "585 of 900 calls with known mode ran eager" in card
    assert signed_in.get(url_of(project, "2", ".json")).json()["why_eager"] == COUNTS
    assert "Causes of eager calls" not in shown(signed_in, project, "1"), (
        "all of its calls ran compiled"
    )


def test_calls_without_a_graph_are_not_compiled_calls(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start(
        "3", calls=0, ago=3, beside=[region_make(calls=400, compiled=0, eager_by={"no_graph": 400})]
    )
    story.fold()
    head = shown(signed_in, project, "3").split("<dt>Served compiled")[1].split("<dt>")[0]
    assert (
        head.startswith("</dt><dd>0%")
        and "of 400 calls with known mode" in head
        and "not known" not in head
    )
    assert "No graph to run</span>" in part(shown(signed_in, project, "3"), "served")


def test_the_model_compare_and_instance_pages_show_the_causes(
    story: Story, signed_in: Client, project: Project
) -> None:
    assert_breakdown(part(text_of(signed_in, model_url(project, "versions/")), "versions"))
    ids = {version.name: version.pk for version in ModelVersion.objects.all()}
    pair = f"?a={ids['1']}&b={ids['2']}"
    assert_breakdown(part(text_of(signed_in, model_url(project, f"compare{pair}")), "why-eager"))
    data = signed_in.get(model_url(project, f"compare.json{pair}")).json()["why_eager"]
    assert data["2"] == COUNTS and data["1"]["compiled"] == 1000
    instance = Instance.objects.get(version__name="2").instance_id
    assert_breakdown(text_of(signed_in, model_url(project, f"instances/{instance}/")))


def test_the_api_returns_the_causes_with_the_metrics(
    story: Story, signed_in: Client, project: Project
) -> None:
    items = read(
        signed_in,
        f"/api/v1/projects/{project.slug}/models/{ModelVersion.objects.get(name='2').model_id}/versions",
    )["items"]
    figures = {item["name"]: item["figures"] for item in items}
    assert figures["2"]["why_eager"] == COUNTS
    assert figures["2"]["eager_share"] == pytest.approx(585 / 900), (
        "calls without a graph are eager"
    )


def test_evidence_and_alert_text_name_the_causes_with_their_counts(project: Project) -> None:
    row = {
        "metric": "eager",
        "region": "mixed",
        "unit": "share",
        "label": "REGRESSED",
        "drives": True,
        "judged": True,
        "causes": BY,
    }
    evidence: dict[str, Any] = {
        "evidence": [
            row
            | {
                "baseline": 0.0,
                "candidate": 0.65,
                "candidate_instances": 2,
                "affected_instances": 2,
            }
        ]
    }
    words = (
        "eager stance 500, no graph to run 40, recompile limit reached 30, compilation failed "
        "7, frame skipped by torch 5"
    )
    (line,) = select_strongest_evidence(evidence)
    assert words in line["text"] and line["causes"] == BY
    assert alert_rows(evidence)[0].causes.startswith(words) and compare_rows(evidence)[
        0
    ].causes.startswith(words)
    old: dict[str, Any] = {
        "evidence": [
            {name: value for name, value in evidence["evidence"][0].items() if name != "causes"}
        ]
    }
    assert select_strongest_evidence(old)[0]["text"].startswith("65% of calls"), (
        "a verdict of an earlier release names no cause"
    )


def test_a_cause_from_a_newer_agent_is_shown_with_its_own_name() -> None:
    assert format_causes({"another_reason": 3, "limit": 0}) == "another reason 3"
    assert EagerBreakdown(unknown=5).lines[0].share is None and EagerBreakdown().lines == []


def test_a_version_that_compiled_nothing_has_a_compiled_share_of_zero(
    story: Story, signed_in: Client, project: Project
) -> None:
    text = "forward: torch.compile was called, and no call met compiled code"
    nothing = {"findings": [Finding("compiled_nothing", text)]}
    for version, data in (("3", nothing), ("4", {})):
        story.start(
            version,
            calls=0,
            ago=3,
            beside=[region_make(name="late", calls=400, compiled=0, unknown=400)],
            **data,
        )
    story.fold()
    served = {
        version: shown(signed_in, project, version).split("<dt>Served compiled")[1].split("<dt>")[0]
        for version in "34"
    }
    assert (
        ">0%" in served["3"]
        and "of 400 calls; compilation was requested, nothing was compiled" in served["3"]
    )
    assert "not known" in served["4"], (
        "no agent looked, and none reported that nothing was compiled"
    )
    assert "Compiled nothing" in shown(signed_in, project, "3", tabs=["findings"])

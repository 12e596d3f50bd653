"""Overview of a model without a bad verdict, with diverged ranks, and with a range of the past."""

from __future__ import annotations

from typing import Any

from django.test import Client

from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import Made, Plan, charted
from tests.dashboard.ui.charts_story import judged, rolled_back


def facts_of(client: Client, made: Made, query: str = "") -> dict[str, Any]:
    page = client.get(made.url(query)).context["page"]
    return {fact.label: fact for fact in page.answer}


def pair(project: Project) -> Made:
    made = charted(project, Plan("1", start=100), Plan("2", start=60))
    judged(made, "1", "2")
    return made


def test_a_version_without_enough_data_has_the_advised_step(
    signed_in: Client, project: Project
) -> None:
    made = pair(project)
    step = {"kind": "add_traffic", "arm": "candidate", "count": 40, "minutes": 1}
    Verdict.objects.update(
        kind="not_enough_data", sentence="Too few calls.", evidence={"next_step": step}
    )
    facts = facts_of(signed_in, made)
    assert facts["Confidence"].text == "None yet"
    assert facts["Next step"].text == "Send each instance at least 40 calls per minute."


def test_a_step_that_the_sentence_states_is_not_repeated(
    signed_in: Client, project: Project
) -> None:
    made = pair(project)
    Verdict.objects.update(
        kind="not_enough_data",
        sentence="Too few calls. Wait 20\u00a0min.",
        evidence={"next_step": {"kind": "wait", "arm": "candidate", "minutes": 20}},
    )
    assert "Next step" not in facts_of(signed_in, made)


def test_diverged_ranks_are_the_cause_with_the_number_of_instances(
    signed_in: Client, project: Project
) -> None:
    made = pair(project)
    fact = {
        "kind": "ranks_diverged",
        "severity": "watch",
        "about": "block",
        "why": "rank 2 compiled it once more",
        "instances": ["a"],
    }
    Verdict.objects.update(kind="watch", cause="", evidence={"facts": [fact]})
    facts = facts_of(signed_in, made)
    assert facts["Confidence"].text == "Confirmed"
    assert "`block`" in facts["Likely cause"].text
    assert facts["Likely cause"].text == "`block` was compiled differently"
    assert facts["Likely cause"].detail == "Confirmed."


def test_a_range_of_the_past_says_nothing_about_present_traffic(
    signed_in: Client, project: Project
) -> None:
    made = rolled_back(project)
    until = clock.minute_of(clock.unix()) - 10
    assert "calls/s" in facts_of(signed_in, made)["Impact"].detail
    assert facts_of(signed_in, made, f"?range=1h&until={until}")["Impact"].detail == ""


def test_deployments_have_a_row_per_version_with_their_verdicts(
    signed_in: Client, project: Project
) -> None:
    lane = signed_in.get(rolled_back(project).url()).context["page"].lane
    states = {row.name: [span.css for span in row.spans] for row in lane.rows}
    assert states["2026.11.2"] == ["base"]
    assert states["2026.11.3"][-1] == "rollback"


def test_sections_of_other_tabs_are_not_on_the_overview(
    signed_in: Client, project: Project
) -> None:
    text = signed_in.get(rolled_back(project).url()).content.decode()
    for heading in ("Versions", "Findings", "Instances", "Cold starts", "Caches", "Memory"):
        assert f">{heading}</h2>" not in text

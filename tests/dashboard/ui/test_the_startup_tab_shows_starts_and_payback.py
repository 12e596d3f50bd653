"""The Startup tab: starts on one scale with the budget, phases compared with those of the baseline,
forecasts, payback and budgets."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.fleet.models import Instance, WatchedModel
from dashboard.projects.models import Project, Role
from tests.dashboard.requests import region_make
from tests.dashboard.ui.version_story import (
    BEFORE,
    HIT,
    MISS,
    Story,
    part,
    regress,
    shown,
    url_of,
)

pytestmark = pytest.mark.django_db
MOST_QUERIES = 8


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


@pytest.fixture
def regressed(story: Story) -> Story:
    return regress(story)


def test_the_median_start_is_shown_stage_by_stage_and_the_worst_is_named(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    WatchedModel.objects.update(cold_start_budget=52.5)
    text = shown(signed_in, project, "2", tabs=["startup"])
    card = part(text, "start")
    assert "Time since process start of <bdi>gpu-05 / rank 0" in card, "the median of three"
    for words in (
        "Import of torch",
        "weights loaded",
        "Dynamo",
        "Inductor",
        "Triton and C++",
        "Compilations, in no phase",
        "Unaccounted",
    ):
        assert words in card, words
    assert "budget 52.5 s" in card and "<b>24.6 s</b>" in card, "Inductor took six tenths of 41 s"
    assert ">52 s<" in card and "budget 52.5 s, 1 of 3 over" in card
    assert "Slowest start: 53 s, <bdi>gpu-06 / rank 0</bdi>" in card
    starts = card.split('id="all-starts"')[1]
    assert (
        starts.index("gpu-06") < starts.index("gpu-05") < starts.index("gpu-04")
        and starts.count(">over<") == 1
    )
    assert "Compilation is 41 s of 52 s (78.8%)" in card
    chosen = Instance.objects.get(host="gpu-04").pk
    assert "Time since process start of <bdi>gpu-04 / rank 0" in shown(
        signed_in, project, "2", f"?instance={chosen}"
    )


def test_phases_are_compared_with_those_of_the_previous_version(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    rows = part(shown(signed_in, project, "2"), "start").split('class="wrow" role="row"')
    inductor = next(row for row in rows if "Inductor" in row)
    assert "6.6 s → 24.6 s" in inductor and "<b>+18 s</b>" in inductor
    assert "all 3 starts slower than all 3 of the baseline" in inductor
    torch = next(row for row in rows if "Import of torch" in row)
    assert "no change" in torch and "slower" not in torch


def test_without_stages_from_the_agent_the_page_states_this_and_compares_none(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", stages=False)
    story.fold()
    card = part(shown(signed_in, project, "1"), "start")
    assert "The agent reports no stages" in card and "→" not in card


def test_a_forecast_needs_three_starts_and_grows_with_the_replicas(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    one, many = (
        part(shown(signed_in, project, "2", f"?replicas={count}"), "forecast") for count in (1, 64)
    )
    assert (
        "estimate" in one and "52 s (80% interval" in one and "until the last of 1 is warm" in one
    )
    assert "until the last of 64 is warm" in many and "52 s, 8 in 10" not in many
    groups = part(shown(signed_in, project, "2", "?replicas=9&at_once=3"), "forecast")
    assert (
        "until the last of 9 is warm, 3 at a time" in groups
        and 'name="at_once" type="number" min="1" max="10000" value="3"' in groups
    )
    story_of_two = shown(signed_in, project, "2", "?replicas=99999999999")
    assert "until the last of 10000 is warm" in story_of_two


def test_the_saving_of_a_warm_cache_is_the_difference_of_observed_starts(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", compiling=60.0, cache=MISS, miss="graph", ago=90)
    story.fold()
    head = shown(signed_in, project, "1")
    assert (
        "A warm cache would save at most 1 min of a start, the time of uncached compilations. No "
        "warm start was observed yet." in head
    )
    story.start("1", compiling=10.0, cache=HIT, ago=80)
    story.fold()
    head = shown(signed_in, project, "1")
    assert (
        "A warm cache saves about 50 s of a cold start (medians of 1 cold start and 1 warm one)."
        in head
    )
    told = signed_in.get(url_of(project, "1", ".json")).json()["warm_cache_saves"]
    assert told["saved"] == pytest.approx(50.0) and told["estimate"]
    story.start("2", cache=HIT)
    story.fold()
    assert "warm cache saves" not in shown(signed_in, project, "2")


def test_the_payback_is_unknown_until_an_eager_run_is_reported(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", calls=1000, p50=0.01, ago=30, saved=44.0)
    story.fold()
    card = part(shown(signed_in, project, "1"), "pay")
    assert (
        "no eager run of the same region, shape and GPU was reported" in card
        and "not known" in card
    )
    assert "−30<" in card and "+44<" in card and "torch’s estimate" in card
    story.start(
        "eager", calls=500, p50=0.05, ago=20, runtime="eager", identity={"environment": "bench"}
    )
    story.fold()
    card = part(shown(signed_in, project, "1"), "pay")
    assert "Saved, 40" in card and "on 1,000 calls" in card and "Pays back after" not in card
    pay = signed_in.get(url_of(project, "1", ".json")).json()["payback"]
    assert (
        pay["spent"] == pytest.approx(30.0)
        and pay["saved"] == pytest.approx(40.2, rel=0.05)
        and pay["estimate"] is True
    )
    assert pay["break_even_calls"] == pytest.approx(
        30.0 / 0.0402, rel=0.05
    ) and f"{pay['net']:.0f}" in ("9", "10", "11")


def test_an_eager_baseline_measured_by_the_job_is_a_reference_and_not_traffic(
    story: Story, signed_in: Client, project: Project
) -> None:
    measured = region_make(calls=50, p50=0.05, runtime="eager", compiled=0, outermost=False)
    story.start("1", calls=1000, p50=0.01, ago=30, beside=[measured])
    story.fold()
    told = signed_in.get(url_of(project, "1", ".json")).json()
    assert told["payback"]["saved"] == pytest.approx(40.2, rel=0.05)
    assert told["served"]["share"] == 1.0
    assert "of 1,000 calls with known mode, 1,000 in all" in shown(signed_in, project, "1")


def test_operators_set_budgets_for_a_model_or_for_all(
    story: Story, signed_in: Client, project: Project, as_role: Callable[[Role], Client]
) -> None:
    story.start("1", compiling=100.0 - BEFORE, ago=2)
    story.fold()
    operator, address = as_role(Role.OPERATOR), url_of(project, "1", "/budgets/")
    answer = operator.post(
        address, {"cold_start": "120", "served": "99,5", "for": "project"}, follow=True
    )
    assert "Saved." in answer.content.decode()
    text = shown(signed_in, project, "1")
    assert "budget 2 min, 0 of 1 over" in text and "budget 99.5%" in text
    assert "of 2 min" in shown_fleet(signed_in)
    operator.post(address, {"cold_start": "60", "served": "", "for": "model"})
    assert "budget 1 min, 1 of 1 over" in shown(signed_in, project, "1"), (
        "the budget of the model overrides that of the project"
    )
    answer = operator.post(address, {"cold_start": "soon", "served": ""}, follow=True)
    assert "Cold start is 'soon'. Enter a number" in answer.content.decode().replace("&#x27;", "'")
    answer = operator.post(address, {"cold_start": "", "served": "12"}, follow=True)
    assert "expected a percentage from 50 to 99.999" in answer.content.decode()
    entries = AuditEntry.objects.filter(action="budgets.set")
    assert entries.count() == 2 and entries.first().actor_name == "operator-person"  # type: ignore[union-attr]


def shown_fleet(client: Client) -> str:
    return " ".join(client.get("/p/ranking/").content.decode().replace("\u00a0", " ").split())

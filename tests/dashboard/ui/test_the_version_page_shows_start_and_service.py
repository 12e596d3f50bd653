"""The Version page: starts on one scale with the budget, phases compared with those of the
baseline, the share of compiled calls, and the payback."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN, OTHER_GRAPH
from compilewatch.wire.sketch import Sketch
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.accounts.models import AuditEntry
from dashboard.fleet.models import Deployment, Instance, WatchedModel
from dashboard.projects.models import Project, Role
from tests.dashboard.requests import region_make
from tests.dashboard.ui.test_pages_ask_a_fixed_number_of_questions import FRAME
from tests.dashboard.ui.version_story import (
    BEFORE,
    CONFIGURED,
    HIT,
    MISS,
    Story,
    compiled,
    part,
    shown,
    url_of,
)

pytestmark = pytest.mark.django_db
MOST_QUERIES = 8
NEW_OPTION = {**CONFIGURED, "inductor_config max_autotune": "77aa11bb"}


@pytest.fixture
def story(store_reports: Callable[..., object]) -> Story:
    return Story(store_reports)


@pytest.fixture
def regressed(story: Story) -> Story:
    """Three warm starts of version 1, then three cold starts of version 2, which introduced an
    option."""
    for number in range(3):
        story.start("1", compiling=10.0 + number, ago=120 - number, key="ak1")
    for number in range(3):
        story.start(
            "2",
            compiling=40.0 + number,
            ago=60 - number,
            cache=MISS,
            miss=NO_EARLIER_RUN,
            key="ak2",
            components=NEW_OPTION,
        )
    story.fold()
    return story


def test_the_median_start_is_shown_stage_by_stage_and_the_worst_is_named(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    WatchedModel.objects.update(cold_start_budget=52.5)
    text = shown(signed_in, project, "2")
    drawing = part(text, "start")
    assert "gpu-05 / rank 0" in drawing, "the median of three"
    for words in (
        "Import of torch",
        "weights loaded",
        "Dynamo",
        "Inductor",
        "Triton and C++",
        "Compilations, in no phase",
        "Unaccounted",
    ):
        assert words in drawing, words
    assert "budget 52.5 s" in drawing and ">24.6 s<" in drawing, "Inductor took six tenths of 41 s"
    head = text.split('class="stats version"')[1].split("</dl>")[0]
    assert (
        "52 s" in head
        and "budget 52.5 s, 1 of 3 over" in head
        and "53 s" in head
        and "gpu-06 / rank 0" in head
    )
    starts = part(text, "all-starts")
    assert (
        starts.index("gpu-06") < starts.index("gpu-05") < starts.index("gpu-04")
        and starts.count(">over<") == 1
    )
    chosen = Instance.objects.get(host="gpu-04").pk
    assert "Cold start, <bdi>gpu-04 / rank 0" in shown(
        signed_in, project, "2", f"?instance={chosen}"
    )


def test_phases_are_compared_with_those_of_the_previous_version(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    rows = part(shown(signed_in, project, "2"), "phases").split("<tr>")
    inductor = next(row for row in rows if "Inductor" in row)
    assert "24.6 s" in inductor and "6.6 s" in inductor and "+18 s" in inductor
    assert "all 3 starts slower than all 3 of the baseline" in inductor
    torch = next(row for row in rows if "Import of torch" in row)
    assert "no change" in torch and "slower" not in torch


def test_without_stages_from_the_agent_the_page_states_this_and_compares_none(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", stages=False)
    story.fold()
    text = shown(signed_in, project, "1")
    assert (
        "the agent reports no stages" in part(text, "start")
        and 'aria-labelledby="phases"' not in text
    )


def test_a_forecast_needs_three_starts_and_grows_with_the_replicas(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    one, many = (
        shown(signed_in, project, "2", f"?replicas={count}").split("Warm-up forecast")[1][:900]
        for count in (1, 64)
    )
    assert (
        "estimate" in one and "52 s (80% interval" in one and "until the last of 1 is warm" in one
    )
    assert "until the last of 64 is warm" in many and "52 s, 8 in 10" not in many
    groups = shown(signed_in, project, "2", "?replicas=9&at_once=3").split("Warm-up forecast")[1][
        :1200
    ]
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


def test_the_cause_of_cold_starts_is_the_option_introduced_by_the_version(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    card = part(shown(signed_in, project, "2"), "misses")
    assert "3 of 3 starts with misses were expected to hit" in card
    assert '<code class="wrap">inductor_config: max_autotune</code>' in card
    assert (
        "introduced by <bdi>2 on gpu-04</bdi>" in card
        and "compared with <bdi>gpu-03 / rank 0</bdi>" in card
    )
    assert "2 min 03 s" in card and ">123<" in card, "123 s on one GPU each"
    assert "100% of the missed seconds" in card and "no earlier start was warm" not in card


def test_the_cause_from_the_agent_takes_precedence_over_a_comparison(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", ago=90)
    story.start("2", ago=30, cache=MISS, miss=OTHER_GRAPH, identity={"gpu_count": 4})
    story.fold()
    card = part(shown(signed_in, project, "2"), "misses")
    assert (
        f">{OTHER_GRAPH}<" in card
        and "introduced by <bdi>2, after 1</bdi>" in card
        and ">120<" in card
    ), "30 s on four GPUs"


def test_a_first_start_is_not_expected_to_be_warm(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", cache=MISS, miss=NO_EARLIER_RUN)
    story.fold()
    card = part(shown(signed_in, project, "1"), "misses")
    assert (
        "0 of 1 start with misses were expected to hit" in card
        and "no earlier start to compare with" in card
    )


def test_the_compiled_share_is_relative_to_sampled_calls_and_burns_its_budget(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start("1", calls=1000, eager=20, ago=5)
    story.fold()
    head = shown(signed_in, project, "1")
    assert (
        "98%" in head
        and "no budget set" in head
        and "of 1,000 calls with known mode, 1,000 in all" in head
    )
    WatchedModel.objects.update(served_budget=0.995)
    head = shown(signed_in, project, "1")
    assert (
        "budget 99.5%, error budget used 4 times over; burn rate 4 times the allowed rate in the last hour"
        in head
    )
    WatchedModel.objects.update(served_budget=0.9)
    assert "budget 90%, 20% of the error budget used" in shown(signed_in, project, "1")
    told = signed_in.get(url_of(project, "1", ".json")).json()["served"]
    assert told["share"] == pytest.approx(0.98) and told["used"] == pytest.approx(0.2)


def test_the_compiled_share_is_also_shown_by_time(
    story: Story, signed_in: Client, project: Project
) -> None:
    eager = {"name": "rare", "calls": 100, "p50": 0.09, "compiled": 0, "eager_by": {"limit": 100}}
    story.start("1", calls=900, p50=0.01, beside=[region_make(**eager)])
    story.fold()
    head = shown(signed_in, project, "1").split("Cold start, median")[0]
    assert (
        "90%" in head
        and "of call time, assuming equal durations of eager and compiled calls" in head
        and "GPU time" not in head
    )
    assert signed_in.get(url_of(project, "1", ".json")).json()["served"][
        "time_share"
    ] == pytest.approx(0.5, abs=0.02)
    quick, slow = Sketch.of([0.04] * 50), Sketch.of([0.12] * 50)
    story.start(
        "2", calls=0, beside=[region_make(calls=900, gpu=quick), region_make(**eager, gpu=slow)]
    )
    story.fold()
    assert "of GPU time" in shown(signed_in, project, "2")
    assert signed_in.get(url_of(project, "2", ".json")).json()["served"][
        "time_share"
    ] == pytest.approx(0.75, abs=0.02)


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


def test_recompilations_use_the_headroom_of_a_frame_and_are_on_the_timeline(
    story: Story, signed_in: Client, project: Project
) -> None:
    again = [
        compiled(1.0, 2.0, HIT, kind="recompile", reason="x.size(0) == 8", in_request=True)
        for _ in range(6)
    ]

    def timed(number: int) -> None:
        one = again[number]
        one.at, one.id, one.entries, one.limit = (
            time.time() - 1800 + number,
            f"0/{number}",
            number + 2,
            8,
        )

    for number in range(6):
        timed(number)
    story.start("1", ago=29, compiles=[compiled(again[0].at - 60, 5.0, HIT), *again])
    story.fold()
    text = shown(signed_in, project, "1")
    assert "<b>7 of 8 cache entries</b>, 1 left" in part(
        text, "room"
    ) and "x.<wbr>size(0) == 8" in part(text, "room")
    events = part(text, "events")
    assert (
        "1 first, 6 recompile" in events
        and "6 blocked a request" in events
        and events.count(", blocked a request") == 6
    )
    lines = signed_in.get(url_of(project, "1", ".csv")).content.decode().splitlines()
    assert len(lines) == 8 and lines[0].startswith("time,instance,seconds after start")


def test_the_page_needs_six_queries_regardless_of_the_amount_of_data(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    for address in (
        url_of(project, "2"),
        url_of(project, "1"),
        url_of(project, "2", ".json"),
        url_of(project, "2", ".csv"),
    ):
        with CaptureQueriesContext(connection) as caught:
            assert signed_in.get(address).status_code == 200
        asked = [query["sql"] for query in caught.captured_queries]
        assert len(asked) <= FRAME + MOST_QUERIES, asked


def test_blind_spots_of_agents_are_listed_with_the_reason(
    story: Story, signed_in: Client, project: Project
) -> None:
    story.start(
        "1",
        identity={
            "capabilities": {
                "compilations": ("yes", ""),
                "gpu_time": ("no", "no CUDA runtime <b>here"),
            }
        },
    )
    story.fold()
    text = signed_in.get(url_of(project, "1")).content.decode()
    assert (
        "no CUDA runtime &lt;b&gt;here" in text
        and "gpu time" in text
        and "1 of 1" in text
        and "<b>here" not in text
    )


def test_other_users_other_models_and_invalid_parameters_get_no_data(
    story: Story,
    signed_in: Client,
    project: Project,
    other_project: Project,
    as_role: Callable[[Role], Client],
) -> None:
    story.start("1")
    story.fold()
    address = url_of(project, "1")
    assert signed_in.get(address.replace("/ranking/", "/somebody-elses/")).status_code == 404
    assert signed_in.get(address.replace("/versions/", "/versions/9")).status_code == 404
    assert Client().get(address).status_code == 302
    viewer = as_role(Role.VIEWER)
    assert viewer.get(address + "?env=%3Cnone%3E&instance=x&replicas=-3").status_code == 200
    assert "Save budgets" not in viewer.get(address).content.decode()
    assert viewer.post(address + "budgets/", {"served": "99"}).status_code == 403


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


def test_a_version_that_ended_before_its_evaluation_promises_no_verdict(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    text = shown(signed_in, project, "2")
    assert "ended without a verdict" in text and "The first verdict needs" not in text
    Deployment.objects.filter(version__name="2").update(ended_minute=None)
    assert "The first verdict needs a few minutes of traffic alongside" in shown(
        signed_in, project, "2"
    )


def test_the_fleet_and_model_pages_link_to_the_version(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    regressed.start("2", ago=2)
    regressed.fold()
    address = url_of(project, "2")
    assert address in signed_in.get("/p/ranking/").content.decode()
    model = WatchedModel.objects.get()
    assert address in signed_in.get(f"/p/ranking/models/{model.pk}/?range=6h").content.decode()

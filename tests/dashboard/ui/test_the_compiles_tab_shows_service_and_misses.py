"""The Compiles tab: recompiles per frame, causes of misses, the share of compiled calls, and blind
spots."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from compilewatch.wire.cache_miss_causes import NO_EARLIER_RUN, OTHER_GRAPH
from compilewatch.wire.sketch import Sketch
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.fleet.models import ModelVersion, WatchedModel
from dashboard.projects.models import Project, Role
from tests.dashboard.requests import region_make
from tests.dashboard.ui.test_pages_ask_a_fixed_number_of_questions import FRAME
from tests.dashboard.ui.version_story import (
    HIT,
    MISS,
    Story,
    compiled,
    part,
    regress,
    shown,
    tab_of,
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
    head = part(shown(signed_in, project, "1"), "served")
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


def test_recompilations_use_the_headroom_of_a_frame_and_are_drawn_over_time(
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
    text = shown(signed_in, project, "1", tabs=["compiles"])
    frames = part(text, "frames")
    assert "<b>7 of 8 cache entries</b>, 1 left" in frames and "x.<wbr>size(0) == 8" in frames
    bars = part(text, "compilations")
    assert "1 first compile<" in bars and "6 recompiles<" in bars and "6 blocked a request" in bars
    assert part(text, "longest").count("<b>yes</b>") == 2, "two of the three longest"
    every = shown(signed_in, project, "1", "?compilations=all", tabs=["compiles"])
    assert part(every, "longest").count("<b>yes</b>") == 6
    lines = signed_in.get(url_of(project, "1", ".csv")).content.decode().splitlines()
    assert len(lines) == 8 and lines[0].startswith("time,instance,seconds after start")


def test_the_tabs_need_eight_queries_regardless_of_the_amount_of_data(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    for address in (
        tab_of(project, "2", "compiles"),
        tab_of(project, "1", "compiles"),
        tab_of(project, "2", "startup"),
        tab_of(project, "1", "startup"),
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
    text = signed_in.get(tab_of(project, "1", "compiles")).content.decode()
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
    viewer = as_role(Role.VIEWER)
    for tab in ("compiles", "startup"):
        address = tab_of(project, "1", tab)
        assert signed_in.get(address.replace("/ranking/", "/somebody-elses/")).status_code == 404
        assert signed_in.get(address.replace("/models/", "/models/9")).status_code == 404
        assert Client().get(address).status_code == 302
        wrong = "&env=%3Cnone%3E&instance=x&replicas=-3&csort=x&cpage=x&fpage=99&spage=-1&range=x"
        text = viewer.get(address + wrong)
        assert text.status_code == 200 and "Save budgets" not in text.content.decode()
    budgets = url_of(project, "1", "/budgets/")
    assert viewer.post(budgets, {"served": "99"}).status_code == 403


def test_the_old_address_leads_to_the_tab_that_has_the_facts(
    story: Story, signed_in: Client, project: Project, other_project: Project
) -> None:
    story.start("1")
    story.fold()
    address = url_of(project, "1")
    for query, tab in (("", "compiles"), ("?replicas=3", "startup"), ("?instance=1", "startup")):
        answer = signed_in.get(address + query)
        assert answer.status_code == 302
        target = answer.headers["Location"]
        assert target.startswith(tab_of(project, "1", tab).partition("?")[0] + "?")
        version = ModelVersion.objects.get(name="1")
        assert f"version={version.pk}" in target and "env=production" in target
        assert signed_in.get(target).status_code == 200
    assert signed_in.get(address.replace("/ranking/", "/somebody-elses/")).status_code == 404
    assert signed_in.get(address.replace("/versions/", "/versions/9")).status_code == 404
    assert Client().get(address).headers["Location"].startswith("/account")


def test_the_fleet_and_model_pages_link_to_the_version(
    regressed: Story, signed_in: Client, project: Project
) -> None:
    regressed.start("2", ago=2)
    regressed.fold()
    address = url_of(project, "2")
    assert address in signed_in.get("/p/ranking/").content.decode()
    model = WatchedModel.objects.get()
    versions = signed_in.get(f"/p/ranking/models/{model.pk}/versions/").content.decode()
    assert tab_of(project, "2", "compiles") in versions

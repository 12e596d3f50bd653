"""The rank board: a compilation of a single rank is reported, a late rank is distinguished from a
diverged rank, and declared stages may differ."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.common import clock
from dashboard.fleet.models import CompileEvent, Instance
from dashboard.projects.models import Project
from tests.dashboard.ui.charts_factory import ENVIRONMENT, Made, Plan, charted

BOARD = "ranks/"


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode()).replace("\xa0", " ")


def rank(
    made: Made, number: int, *, job: str = "train-7", size: int = 4, **columns: object
) -> Instance:
    now = clock.now()
    known = {"components": {}, "last_seen_at": now, "ready_at": now} | columns
    return Instance.objects.create(
        project=made.project, model=made.model, version=made.versions["1"], environment=ENVIRONMENT, host=f"node-{number // 2}", job=job,
        instance_id=f"{job.replace('-', '')}{number:04d}", rank=number, world_size=size, kind="training",
        first_minute=0, active_minute=0, last_minute=0,
        started_at=now - timedelta(minutes=20), **known,
    )  # fmt: skip


def compiled(
    of: Instance,
    entry: int,
    *,
    ago: int = 300,
    cache: str = "hit",
    kind: str = "first",
    key: str = "k",
) -> None:
    at = clock.now() - timedelta(seconds=ago)
    CompileEvent.objects.create(
        project_id=of.project_id, day=int(at.timestamp() // 86400), instance_id=of.pk, seq=entry + 1, number=0, version_id=of.version_id,
        environment=ENVIRONMENT, at=at, compile_id=f"0/{entry}", frame="step", file="train.py", line=8, kind=kind, outcome="ok", total=4.0,
        cache_fx=cache, cache_key=key,
    )  # fmt: skip


@pytest.fixture
def made(project: Project) -> Made:
    return charted(project, Plan("1", start=3, per_gpu=1))


def test_a_recompilation_of_a_single_rank_is_reported(signed_in: Client, made: Made) -> None:
    ranks = [rank(made, number) for number in range(4)]
    for one in ranks:
        compiled(one, 0)
    assert "No divergence detected." in shown(signed_in, made.url(BOARD))
    compiled(ranks[2], 1, ago=200, kind="recompile", cache="miss")
    text = shown(signed_in, made.url(BOARD))
    assert "The ranks of this job have diverged." in text
    assert "Rank 2 compiled <code>step (train.py:8)</code> 1 more time than the 3 others" in text
    told = signed_in.get(made.url("ranks.json?job=train-7")).json()
    assert [(row["rank"], row["again"], row["pattern"], row["apart"]) for row in told["rows"]] == [
        (0, 0, "H", False), (1, 0, "H", False), (2, 1, "HM", True), (3, 0, "H", False),
    ]  # fmt: skip
    assert len(signed_in.get(made.url("ranks.csv")).content.decode().splitlines()) == 5


def test_a_rank_with_a_different_graph_is_named_with_its_key_and_marked(
    signed_in: Client, made: Made
) -> None:
    for number in range(4):
        one = rank(made, number)
        compiled(one, 0, key="aother7890" if number == 3 else "ausual7890")
        if number == 0:
            compiled(one, 1, kind="backward", key="another of its own")
    text = shown(signed_in, made.url(BOARD))
    assert (
        "Rank 3 requested a different graph of <code>step (train.py:8)</code> (<code>aother789</code>) from the caches than the 3 others"
        in text
    )
    assert text.count("differs from most ranks") == 1 and "no rank reported cache keys" not in text
    hashes = [
        row["graphs"] for row in signed_in.get(made.url("ranks.json?job=train-7")).json()["rows"]
    ]
    assert hashes[0] == hashes[1] == hashes[2] != hashes[3] and all(len(one) == 8 for one in hashes)


def test_differing_ranks_come_first_and_the_other_ranks_are_paged(
    signed_in: Client, made: Made
) -> None:
    for number in range(70):
        one = rank(made, number, size=70)
        for entry in range(2 if number == 57 else 1):
            compiled(one, entry, kind="recompile" if entry else "first")
    first, second = shown(signed_in, made.url(BOARD)), shown(signed_in, made.url(BOARD + "?page=2"))
    order = [
        int(number) for number in re.findall(r'data-l="Rank"><a href="[^"]+">(\d+)</a>', first)
    ]
    assert order[:4] == [57, 0, 1, 2] and len(order) == 64
    assert first.count('<tr class="apart"') == 1 and first.count('<tr class="calm"') == 63
    assert (
        "diverged ranks first" in first
        and "page 1 of 2" in first
        and "65 to 70 of 70 ranks" in second
    )
    assert len(signed_in.get(made.url("ranks.csv")).content.decode().splitlines()) == 71, (
        "a file has all of them"
    )


def test_ranks_that_reported_no_graph_show_none(signed_in: Client, made: Made) -> None:
    for number in range(2):
        compiled(rank(made, number, size=2), 0, key="", cache="")
    text = shown(signed_in, made.url(BOARD))
    assert (
        text.count('<span class="dim">not reported</span>') == 2
        and "no rank reported cache keys" in text
    )


def test_an_extra_compilation_is_reported_for_one_hour(signed_in: Client, made: Made) -> None:
    ranks = [rank(made, number) for number in range(4)]
    for one in ranks:
        compiled(one, 0, ago=7200)
    compiled(ranks[2], 1, ago=3700, kind="recompile", cache="miss")
    text = shown(signed_in, made.url(BOARD))
    assert (
        "Ranks diverged more than an hour ago" in text
        and "have diverged" not in text
        and "banner watch" not in text
    )


def test_a_rank_that_is_still_compiling_is_behind(signed_in: Client, made: Made) -> None:
    for number in range(3):
        compiled(rank(made, number), 0)
    rank(made, 3, compiling_for=70.0, compiling_frame="step")
    text = shown(signed_in, made.url(BOARD))
    assert (
        "Rank 3 is behind with" in text
        and "at different speeds" in text
        and "step for 1 min 10 s" in text
    )


def test_declared_stages_may_differ_and_missing_ranks_are_counted(
    signed_in: Client, made: Made
) -> None:
    for number in range(4):
        one = rank(made, number, size=8, components={"pipeline stage": str(number // 2)})
        for entry in range(1 + number // 2):
            compiled(one, entry, kind="recompile" if entry else "first")
    text = shown(signed_in, made.url(BOARD))
    assert (
        "No divergence detected" in text
        and "2 declared stages" in text
        and "4 more have never reported" in text
    )


def test_a_restarted_rank_counts_once(signed_in: Client, made: Made) -> None:
    for number in range(2):
        compiled(rank(made, number, size=2), 0)
    old = Instance.objects.get(rank=1)
    Instance.objects.filter(pk=old.pk).update(
        instance_id="older", started_at=clock.now() - timedelta(hours=3)
    )
    compiled(rank(made, 1, size=2), 0)
    told = signed_in.get(made.url("ranks.json")).json()
    assert [row["rank"] for row in told["rows"]] == [0, 1] and told["lines"] == []


def test_a_model_without_jobs_states_how_one_appears(signed_in: Client, made: Made) -> None:
    assert "No job with several ranks" in shown(signed_in, made.url(BOARD))
    assert "No ranks of this job" in shown(signed_in, made.url("ranks/?job=<b>nobody</b>"))


def test_a_job_of_two_hundred_ranks_needs_as_many_queries_as_one_of_two(
    signed_in: Client, made: Made
) -> None:
    for number in range(2):
        rank(made, number, size=2)
    with CaptureQueriesContext(connection) as few:
        shown(signed_in, made.url(BOARD))
    for number in range(200):
        compiled(rank(made, number, job="train-8", size=200), 0)
    with CaptureQueriesContext(connection) as many:
        assert "200 ranks" in shown(signed_in, made.url("ranks/?job=train-8"))
    assert len(many) == len(few) <= 12
    assert f'href="{made.url("ranks/")}"' in shown(signed_in, made.url("instances/"))

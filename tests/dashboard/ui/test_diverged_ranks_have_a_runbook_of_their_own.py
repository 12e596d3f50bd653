"""The alert of diverged ranks shows the differing ranks, links to all ranks, and explains how to
handle a job that may hang."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.test import Client

from dashboard.alerts.alert_title import build_alert_title
from dashboard.alerts.models import Alert, AlertEvent
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Instance
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import ENVIRONMENT, Made, Plan, charted
from tests.dashboard.ui.test_ranks_of_a_job_are_shown_in_one_table import compiled, rank

SENTENCE = (
    "1: ranks of one job diverged: rank 2 compiled `step` 1\u00a0more time than the {}\u00a0others."
)


@pytest.fixture
def made(project: Project) -> Made:
    return charted(project, Plan("1", start=60, per_gpu=1))


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode()).replace("\xa0", " ")


def verdict(made: Made, kind: str, others: int, *, current: bool, instances: list[str]) -> Verdict:
    deployment = Deployment.objects.get(version=made.versions["1"], environment=ENVIRONMENT)
    fact: dict[str, Any] = {
        "kind": "ranks_diverged", "severity": "watch", "about": "step (train.py:8)", "why": "Rank 2 compiled `step`",
        "instances": instances, "count": 1, "since": 0,
    }  # fmt: skip
    return Verdict.objects.create(
        project=made.project, deployment=deployment, kind=kind, sentence=SENTENCE.format(others), current=current, created_at=clock.now(),
        evidence={"evidence": [], "facts": [fact] if kind == "watch" else []}, minute=clock.minute_of(clock.unix()),
    )  # fmt: skip


def diverged(made: Made, *, size: int = 10, odd: tuple[int, ...] = (2,)) -> Alert:
    """A job whose rank 2 compiled once more; its current verdict is NOT ENOUGH DATA."""
    ranks = [rank(made, number, size=size, pid=4000 + number) for number in range(size)]
    for one in ranks:
        compiled(one, 0)
        if one.rank in odd:
            compiled(one, 1, ago=200, kind="recompile", cache="miss")
    bad = verdict(
        made,
        "watch",
        size - 1,
        current=False,
        instances=[ranks[number].instance_id for number in odd],
    )
    alert = Alert.objects.create(
        project=made.project, deployment=bad.deployment, number=2, verdict=bad, severity="watch", worst="watch", opened_at=bad.created_at,
        title=build_alert_title(model=made.model.name, version="1", sentence=bad.sentence, evidence=bad.evidence),
    )  # fmt: skip
    AlertEvent.objects.create(
        alert=alert, at=bad.created_at, kind="opened", text=bad.sentence, verdict=bad
    )
    verdict(made, "not_enough_data", size - 1, current=True, instances=[])
    return alert


def test_the_alert_page_contains_the_evidence_and_the_runbook(
    signed_in: Client, made: Made
) -> None:
    diverged(made)
    text = shown(signed_in, "/p/ranking/alerts/2/")
    table = text.split('id="rk"')[1].split("</section>")[0]
    assert (
        table.count('<tr class="apart">') == 1 and "one of 9 others" in table and "node-1" in table
    )
    assert (
        f"/models/{made.model.pk}/ranks/?env={ENVIRONMENT}&amp;job=train-7" in table
        or f"ranks/?env={ENVIRONMENT}&job=train-7" in table
    )
    assert "last found diverged <time" in table
    runbook = text.split('id="rg"')[1].split("</section>")[0]
    assert "Rank divergence runbook" in runbook and "still makes progress" in runbook
    assert "py-spy dump --native --pid 4002" in runbook and "On <bdi>node-1</bdi>" in runbook
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1" in runbook
    assert "torch._dynamo.mark_dynamic(tokens, 1)" in runbook and "Restart the job" in runbook
    assert "No known cause yet" not in text and "no baseline version" not in text


def test_the_chart_shows_one_version_if_there_is_no_other(signed_in: Client, made: Made) -> None:
    diverged(made)
    text = shown(signed_in, "/p/ranking/alerts/2/")
    assert "p50 by version" not in text and "p50 of <bdi>1</bdi>" in text


def test_the_title_and_the_fleet_do_not_show_different_numbers_of_ranks(
    signed_in: Client, made: Made
) -> None:
    alert = diverged(made)
    assert alert.title.endswith("more time than the others.")
    Verdict.objects.filter(kind="watch").update(sentence=SENTENCE.format(6))
    text = shown(signed_in, "/p/ranking/")
    assert "the 6 others" in text and "the 9 others" not in text
    page = shown(signed_in, "/p/ranking/alerts/2/")
    assert "the 9 others" not in page.split("<h1")[1].split("</h1>")[0]


@pytest.mark.parametrize("odd", [(0,), (1, 3), tuple(range(20))])
def test_the_table_stays_short_if_many_ranks_differ(
    signed_in: Client, made: Made, odd: tuple[int, ...]
) -> None:
    diverged(made, size=64, odd=odd)
    table = shown(signed_in, "/p/ranking/alerts/2/").split('id="rk"')[1].split("</section>")[0]
    assert table.count('<tr class="apart">') == min(len(odd), 12)
    assert (f"{len(odd) - 12} more ranks differ" in table) == (len(odd) > 12)


def test_the_runbook_remains_if_the_job_is_deleted(signed_in: Client, made: Made) -> None:
    diverged(made)
    Instance.objects.filter(job="train-7").delete()
    text = shown(signed_in, "/p/ranking/alerts/2/")
    assert "No process of the job is retained." in text and "py-spy dump --native --pid PID" in text

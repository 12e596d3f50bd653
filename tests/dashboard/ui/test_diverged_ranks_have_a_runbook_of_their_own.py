"""The alert of diverged ranks shows the differing ranks, links to all ranks, and explains how to
handle a job that may hang."""

from __future__ import annotations

import re
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


def section(text: str, name: str) -> str:
    return text.split(f'id="{name}"')[1].split("</section>")[0]


def test_the_alert_page_contains_the_evidence_and_the_runbook(
    signed_in: Client, made: Made
) -> None:
    diverged(made)
    text = shown(signed_in, "/p/ranking/alerts/2/")
    evidence = section(text, "ev")
    assert evidence.count(">Rank 2</a>") == 1 and "9 others" in evidence and "node-1" in evidence
    assert evidence.count("DIVERGED") == 1 and "NO CHANGE" in evidence
    assert f"/models/{made.model.pk}/ranks/?env={ENVIRONMENT}&job=train-7" in evidence
    assert "last found diverged <time" in evidence
    runbook = section(text, "rg")
    assert "Runbook: rank divergence" in runbook and "still makes progress" in runbook
    assert "ssh node-1 py-spy dump --native --pid 4002" in runbook and "On node-1;" in runbook
    assert "TORCH_NCCL_TRACE_BUFFER_SIZE=2000 TORCH_NCCL_DUMP_ON_TIMEOUT=1" in runbook
    assert "torch._dynamo.mark_dynamic(tokens, 1)" in runbook and "Restart the job" in runbook
    assert "No known cause yet" not in text and "no baseline version" not in text
    answer = text.split('aria-label="Answer"')[1].split("</dl>")[0]
    assert "Job of 10 ranks" in answer and "Observed, not an estimate." in answer
    assert "was compiled differently" in answer and "Confirmed on rank 2." in answer


def test_the_matrix_shows_each_rank_over_time_and_frames_the_odd_one(
    signed_in: Client, made: Made
) -> None:
    diverged(made)
    matrix = section(shown(signed_in, "/p/ranking/alerts/2/"), "ch")
    assert "Compilations per rank" in matrix and "p50" not in matrix
    wide, narrow = matrix.split("</table>")[:2]
    assert wide.count("<tr") == narrow.count("<tr") == 11
    assert wide.count('class="odd">2</td>') == narrow.count('class="odd">2</td>') > 0
    assert "2 ▲ diverged" in wide and wide.count("no report") > 0


def test_the_matrix_of_a_large_job_has_few_rows(signed_in: Client, made: Made) -> None:
    diverged(made, size=64, odd=(5,))
    matrix = section(shown(signed_in, "/p/ranking/alerts/2/"), "ch").split("</table>")[0]
    assert matrix.count("<tr") == 1 + 4 and "61 others" in matrix


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
    evidence = section(shown(signed_in, "/p/ranking/alerts/2/"), "ev")
    columns = evidence.split("</thead>")[0]
    assert len(re.findall(r">Rank \d+</a>", columns)) == min(len(odd), 3)
    assert (f"{len(odd) - 3} more ranks differ" in evidence) == (len(odd) > 3)


def test_the_runbook_remains_if_the_job_is_deleted(signed_in: Client, made: Made) -> None:
    diverged(made)
    Instance.objects.filter(job="train-7").delete()
    text = shown(signed_in, "/p/ranking/alerts/2/")
    assert "py-spy dump --native --pid PID" in text and "Runbook: rank divergence" in text
    assert '<h2 id="ch">p50' in text, "without ranks, the page shows the calls"

"""The Compare and Startup tabs show the warm-up of a verdict: its length, its source, and the minutes
and calls of both versions that it excludes."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from django.test import Client

from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import HEALTHY, WORSE
from tests.dashboard.ui.charts_story import rolled_back

pytestmark = pytest.mark.django_db
BASELINE = {"excluded_minutes": 0, "excluded_calls": 0, "minutes": 400, "calls": 90000}
CANDIDATE = {"excluded_minutes": 84, "excluded_calls": 1240, "minutes": 700, "calls": 50000}
LEARNED = {
    "minutes": 12,
    "source": "learned",
    "processes": 34,
    "baseline": BASELINE,
    "candidate": CANDIDATE,
}


def read_pages(client: Client, project: Project, warm_up: dict[str, Any] | None) -> tuple[str, str]:
    """The text of both tabs."""
    made = rolled_back(project)
    verdict = Verdict.objects.get()
    evidence = verdict.evidence | {"warm_up": warm_up}
    if warm_up is None:
        del evidence["warm_up"]
    Verdict.objects.filter(pk=verdict.pk).update(evidence=evidence)
    version = made.versions[WORSE.name].pk
    pages = (made.url("compare"), made.url(f"startup/?version={version}"))
    answers = [client.get(address) for address in pages]
    assert [answer.status_code for answer in answers] == [200, 200]
    first, second = (
        " ".join(unescape(answer.content.decode()).replace("\u00a0", " ").split())
        for answer in answers
    )
    return first, second


def test_a_learned_warm_up_and_its_effect(signed_in: Client, project: Project) -> None:
    compare, version = read_pages(signed_in, project, LEARNED)
    assert "<b>First 12 min of each process</b>" in compare
    assert (
        "warm-up, learned from 34 processes; 84 instance-minutes and 1,240 calls of "
        f"{WORSE.name} (12% of its minutes); 0 instance-minutes and 0 calls of {HEALTHY.name}<"
    ) in compare
    assert (
        "first 12 min of each process (learned from 34 processes) not compared: 12% of its minutes"
    ) in version


def test_a_set_warm_up(signed_in: Client, project: Project) -> None:
    compare, version = read_pages(signed_in, project, LEARNED | {"source": "set"})
    assert "warm-up, set in the settings; 84 instance-minutes" in compare
    assert "first 12 min of each process (set in the settings) not compared" in version


def test_no_warm_up(signed_in: Client, project: Project) -> None:
    none = {"minutes": 0, "source": "set", "baseline": BASELINE, "candidate": BASELINE}
    compare, version = read_pages(signed_in, project, none)
    assert "none: the settings include the first minutes of processes" in compare
    assert "not compared:" not in version


def test_the_default_of_the_real_judge(signed_in: Client, project: Project) -> None:
    made = rolled_back(project)
    stored = Verdict.objects.get().evidence["warm_up"]
    assert (stored["minutes"], stored["source"]) == (5, "default")
    page = unescape(signed_in.get(made.url("compare")).content.decode()).replace("\u00a0", " ")
    excluded = stored["candidate"]["excluded_minutes"]
    assert f"warm-up; {excluded} instance-minutes and" in page


def test_a_verdict_of_an_earlier_release_states_the_minutes_of_that_time(
    signed_in: Client, project: Project
) -> None:
    compare, version = read_pages(signed_in, project, None)
    assert "<b>First 5 min of each process</b>" in compare
    assert "of its minutes" not in version

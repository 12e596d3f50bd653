"""The answer of one alert: the Alert page and the Overview of its model show the same facts."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.regressions.models import Verdict

FACTS = ["Since", "Impact", "Confidence", "Likely cause"]
DIVERGED = {
    "kind": "ranks_diverged",
    "severity": "watch",
    "about": "block",
    "why": "rank 2 compiled it once more",
}


def facts_of(client: Client, address: str) -> dict[str, str]:
    """The text of each fact without the links, which lead away from the page."""
    page = client.get(address).content.decode()
    found = re.findall(r"<dt>([^<]+)</dt>\s*<dd>(.*?)</dd>", page, flags=re.S)
    return {label: plain(text) for label, text in found if label in FACTS}


def plain(html: str) -> str:
    without_links = re.sub(r"<a .*?</a>", "", html, flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", "", without_links)).split())


def both(client: Client, alert: Alert) -> dict[str, str]:
    """The facts, after a check that both pages show them."""
    model = f"/p/ranking/models/{alert.deployment.model_id}/"
    shown = facts_of(client, f"/p/ranking/alerts/{alert.number}/")
    assert list(shown) == FACTS
    query = f"?env={alert.deployment.environment}&version={alert.deployment.version_id}"
    assert facts_of(client, model + query) == shown
    return shown


def test_a_regressed_metric_has_one_answer(signed_in: Client, alert: Alert) -> None:
    facts = both(signed_in, alert)
    assert "20 min after deployment of 2026.11.3" in facts["Since"]
    assert facts["Impact"].startswith("6 of 12 instances") and "calls/s" in facts["Impact"]
    assert "95% CI" in facts["Confidence"]


@pytest.mark.parametrize("kind", ["watch", "roll_back"])
def test_diverged_ranks_have_one_answer(signed_in: Client, alert: Alert, kind: str) -> None:
    fact = DIVERGED | {"severity": kind, "since": alert.deployment.started_minute + 3}
    Verdict.objects.update(cause="", evidence={"facts": [fact | {"instances": ["a"]}]})
    facts = both(signed_in, alert)
    assert facts["Confidence"] == "Confirmed Observed, not an estimate."
    assert facts["Likely cause"].startswith("block was compiled differently")


def test_an_unknown_cause_has_one_answer(signed_in: Client, alert: Alert) -> None:
    Verdict.objects.update(cause="")
    assert both(signed_in, alert)["Likely cause"].startswith("Unknown")


@pytest.mark.parametrize("name", ["score_batch", "forward", "`forward`"])
def test_a_name_of_the_code_keeps_its_spelling(signed_in: Client, alert: Alert, name: str) -> None:
    Verdict.objects.update(cause=f"{name} recompiles repeatedly (guard: x.size(0) == 96)")
    cause = both(signed_in, alert)["Likely cause"]
    assert cause.startswith(f"{name.strip('`')} recompiles repeatedly x.size(0) == 96")


def test_a_cause_without_a_name_is_a_sentence(signed_in: Client, alert: Alert) -> None:
    Verdict.objects.update(cause="a region fails to compile (error: out of memory)")
    assert both(signed_in, alert)["Likely cause"].startswith("A region fails to compile out of")

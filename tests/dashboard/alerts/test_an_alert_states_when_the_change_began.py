"""Onset in stored verdicts: messages, the gate, the read API and pages show its interval; a row of
an earlier release has none."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from django.test import Client

from dashboard.alerts.channels.base import Message
from dashboard.alerts.channels.message_text import message_notes
from dashboard.alerts.models import Alert
from dashboard.alerts.payloads import MessagePayload, build_alert_payload
from dashboard.alerts.services import alerts_sync
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.regressions.evidence_reader import read_changes, read_onset
from dashboard.regressions.models import Verdict
from tests.dashboard.alerts.fleet import Fleet, evidence_row

pytestmark = pytest.mark.django_db
BEGAN = clock.minute_of(datetime.fromisoformat("2026-11-18T11:02:00+00:00").timestamp())
ONSET = {
    "earliest": clock.at_minute(BEGAN).isoformat(),
    "latest": clock.at_minute(BEGAN + 4).isoformat(),
}


def stored(fleet: Fleet, new: Deployment, **fields: Any) -> Verdict:
    """A verdict as the database returns it."""
    row = evidence_row(since=BEGAN + 2, **fields)
    return fleet.say(new, "roll_back", rows=[row, evidence_row("p99", since=BEGAN + 9)])


def payload(verdict: Verdict) -> MessagePayload:
    alerts_sync()
    return build_alert_payload(alert=Alert.objects.get(), verdict=verdict)


def notes(facts: MessagePayload) -> list[str]:
    return message_notes(Message("1", "opened", clock.now(), facts))


def test_a_message_has_the_interval(fleet: Fleet, new: Deployment) -> None:
    facts = payload(stored(fleet, new, onset=[BEGAN, BEGAN + 4]))
    assert facts["onset"] == ONSET
    assert "began between 2026-11-18 11:02 UTC and 2026-11-18 11:06 UTC" in notes(facts)


def test_a_row_of_an_earlier_release_has_its_start_only(fleet: Fleet, new: Deployment) -> None:
    verdict = stored(fleet, new)
    facts = payload(verdict)
    assert facts["onset"] is None
    assert f"since {clock.format_minute(verdict.since_minute or 0)}" in notes(facts)


def test_a_message_queued_by_an_earlier_release_is_sent(fleet: Fleet, new: Deployment) -> None:
    facts = payload(stored(fleet, new, onset=[BEGAN, BEGAN + 4]))
    del facts["onset"]  # type: ignore[misc]
    assert any(note.startswith("since ") for note in notes(facts))


def test_the_gate_and_the_read_api_have_the_interval(
    fleet: Fleet, new: Deployment, client: Client, api_key: str
) -> None:
    verdict = stored(fleet, new, onset=[BEGAN, BEGAN + 4])
    headers = {"authorization": f"Bearer {api_key}"}
    query = {"model": "ranker", "version": "2026.11.3", "environment": "prod"}
    gate = client.get("/api/v1/gate", query, headers=headers).json()
    assert gate["onset"] == ONSET
    address = f"/api/v1/projects/{fleet.project.slug}/verdicts/{verdict.pk}"
    found = client.get(address, headers=headers).json()["onset"]
    assert {name: datetime.fromisoformat(at) for name, at in found.items()} == {
        name: datetime.fromisoformat(at) for name, at in ONSET.items()
    }


def test_the_earliest_change_is_the_onset_of_the_verdict(fleet: Fleet, new: Deployment) -> None:
    rows = [
        evidence_row("p99", since=BEGAN + 9, onset=[BEGAN + 8, BEGAN + 12]),
        evidence_row(since=BEGAN, onset=[BEGAN - 1, BEGAN + 1]),
        evidence_row("eager", since=BEGAN - 30, onset=[BEGAN - 30, BEGAN - 30], drives=False),
    ]
    verdict = fleet.say(new, "roll_back", rows=rows)
    assert read_onset(verdict.evidence) == (BEGAN - 1, BEGAN + 1)


def test_a_change_of_the_first_minute_is_read(fleet: Fleet, new: Deployment) -> None:
    verdict = stored(fleet, new, onset=None, from_start=True)
    assert read_changes(verdict.evidence)[0].from_start
    assert read_onset(verdict.evidence) is None


@pytest.mark.parametrize("onset", [None, 7, [1], [1, 2, 3], ["a", "b"], [9, 8], {"earliest": 1}])
def test_an_unreadable_interval_is_unknown(onset: Any) -> None:
    row = {"metric": "p50", "drives": True, "since": 8, "onset": onset}
    assert read_onset({"evidence": [row]}) is None

"""A list of alerts is quick to read, with version and change; messages contain the full
sentence."""

from __future__ import annotations

from typing import Any

import pytest

from dashboard.alerts.alert_title import build_alert_title
from dashboard.alerts.models import Alert, Channel
from dashboard.alerts.services import alerts_sync, deliveries_send
from dashboard.fleet.models import Deployment
from tests.dashboard.alerts.fleet import Fleet, Time, evidence_row
from tests.dashboard.alerts.slack_server import StandIn

ERRORS = evidence_row(
    "errors", unit="share", baseline=0.001, candidate=0.012, change=11.0, low=4.0, high=30.0
)
EAGER = evidence_row(
    "eager", unit="share", baseline=0.0, candidate=0.277, change=None, low=None, high=None
)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            [evidence_row(change=0.27), EAGER],
            "p50 27% slower, 27.7% of calls run eager",
        ),
        ([EAGER], "27.7% of calls run eager"),
        ([ERRORS], "1.2% of calls fail"),
        (
            [evidence_row(change=0.1), evidence_row("gpu_p50", change=0.4), EAGER],
            "p50, GPU time 40% slower, 27.7% of calls run eager",
        ),
        ([evidence_row("memory", change=0.2)], "Peak GPU memory +20%"),
        ([evidence_row(drives=False)], "Only 25% can be compared."),
        ([], "Only 25% can be compared."),
    ],
)
def test_it_names_the_version_and_what_drives_the_verdict(
    rows: list[dict[str, Any]], said: str
) -> None:
    made = build_alert_title(
        model="ranker",
        version="2026.11.3",
        sentence="Only 25% can be compared.",
        evidence={"evidence": rows},
    )
    assert made == f"ranker 2026.11.3: {said}"


@pytest.mark.django_db
def test_messages_have_the_full_sentence_even_after_the_verdict_changed(
    fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time
) -> None:
    fleet.say(new, "roll_back", "Roll back 2026.11.3: p50 is 31% slower on all 6 instances.")
    alerts_sync()
    deliveries_send()
    time.go(60)
    fleet.say(new, "not_enough_data", "2026.11.3 has been silent for a while.")
    alerts_sync()
    fleet.end(new)
    alerts_sync()
    time.go(60)
    deliveries_send()
    opened, over = (
        [
            block["text"]["text"]
            for block in message["blocks"]
            if block["type"] == "section" and "text" in block
        ]
        for message in slack.messages
    )
    assert opened[0] == "Roll back 2026.11.3: p50 is 31% slower on all 6 instances."
    assert over[1] == "Original alert: Roll back 2026.11.3: p50 is 31% slower on all 6 instances."
    assert Alert.objects.get().title == "ranker 2026.11.3: p50 31% slower"

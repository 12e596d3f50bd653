"""After a fix the message about the end says what is gone, since when and on what evidence; where that is not known, it says that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.report import Fact, Report

from dashboard.alerts.models import Alert, Channel
from dashboard.alerts.services import alerts_sweep, channel_create, deliveries_send, gone_follow
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.fleet.services import fold_all
from dashboard.projects.models import Project
from tests.dashboard.alerts.block_kit import message_check
from tests.dashboard.alerts.fleet import Fleet, Time, evidence_row
from tests.dashboard.alerts.slack_stand_in import StandIn

pytestmark = pytest.mark.django_db
STORM = "`score` runs eager until its process restarts: it reached its recompile limit (guard: size of x)"
Serve = Callable[..., None]


def storm(severity: str = "watch") -> dict[str, Any]:
    """As the judge stores it."""
    told = {"kind": "latched_eager", "severity": severity, "about": "score", "why": STORM.partition(": ")[2], "since": 0}
    return {**told, "instances": ["a", "b"], "count": 2, "on_baseline": 0, "places": [], "passed": 0, "passed_on_baseline": 0}


@pytest.fixture
def serve(make_request: Callable[..., Any], store_reports: Callable[..., object], time: Time) -> Serve:
    """`serve(minutes)` lets the newest version take 100 calls a minute for so long."""
    sent = {"seq": 1}

    def serve(minutes: int, version: str = "2026.11.4", change: Callable[[Report], None] | None = None, **identity: Any) -> None:
        time.go(60 * minutes)
        known = {"model": "ranker", "version": version, "environment": "prod", "instance": 7}
        request = make_request(minutes=minutes, end=clock.unix(), first_seq=sent["seq"], change=change, **known, **identity)
        sent["seq"] += minutes
        store_reports(request)
        fold_all()

    return serve


@pytest.fixture
def alert(fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time) -> Alert:
    """That of a recompile storm, which Slack was told of."""
    fleet.say(new, "roll_back", "Roll back 2026.11.3.", rows=[], facts=[storm()])
    line(time)
    assert STORM[:40] in str(slack.messages[0]["blocks"])
    return Alert.objects.get()


def line(time: Time) -> None:
    """What the workers do in a minute."""
    alerts_sweep()
    gone_follow()
    time.go(5)
    deliveries_send()


def said(slack: StandIn) -> list[str]:
    """The sentence of each message, which Slack would take."""
    for message in slack.messages:
        message_check(message)
    return [message["blocks"][1]["text"]["text"] for message in slack.messages]


def replaced(fleet: Fleet, new: Deployment, old: Deployment, serve: Serve, time: Time, **served: Any) -> None:
    """The fix is deployed: the next version takes over within minutes."""
    fleet.end(old)
    serve(5, **served)
    fleet.end(new)
    line(time)


def test_a_fix_in_the_next_version_is_told_once_an_hour_of_its_calls_shows_it(
    fleet: Fleet, old: Deployment, new: Deployment, alert: Alert, serve: Serve, slack: StandIn, time: Time
) -> None:
    last = f"{clock.at_minute(clock.minute_of(clock.unix())):%Y-%m-%d %H:%M} UTC"
    replaced(fleet, new, old, serve, time)
    early = (
        f"Whether it is gone with 2026.11.4 is too early to tell: 500 calls on 1 instance in 5 min of reports without it so far ({STORM})."
    )
    assert said(slack)[1:] == [f"2026.11.4 replaced 2026.11.3. {early}"]
    serve(40)
    line(time)
    assert len(slack.messages) == 2, "45 minutes are no proof"
    serve(20)
    for _ in range(3):
        line(time)
    assert len(slack.messages) == 3
    started = f"{clock.at_minute(Deployment.objects.get(version__name='2026.11.4').started_minute):%H:%M} UTC"
    evidence = f"2026.11.4 has 6,500 calls on 1 instance in 65 min of reports without it since {started}."
    assert said(slack)[2] == f"Gone, last seen {last}: {STORM}. The evidence: {evidence}"
    assert slack.titles[2] == "A-1 over: ranker 2026.11.3"
    assert alert.events.filter(kind="evidence", text__startswith="Gone, last seen").count() == 1


def test_a_next_version_that_shows_the_same_is_told_so(
    fleet: Fleet, old: Deployment, new: Deployment, alert: Alert, serve: Serve, slack: StandIn, time: Time
) -> None:
    def latched(report: Report) -> None:
        if report.seq[0] == 1:
            report.facts.append(Fact("latched_eager", report.window[0] + 1, {"frame": "score", "cause": "limit", "reason": "size of x"}))

    replaced(fleet, new, old, serve, time, change=latched)
    assert said(slack)[1] == f"2026.11.4 replaced 2026.11.3. 2026.11.4 shows the same: {STORM}."
    serve(70)
    line(time)
    assert len(slack.messages) == 2


def test_what_an_agent_that_is_blind_does_not_tell_is_not_called_gone(
    fleet: Fleet, old: Deployment, new: Deployment, alert: Alert, serve: Serve, slack: StandIn, time: Time
) -> None:
    blind = dict.fromkeys(("compiled_calls", "compilations"), ("no", "read from outside"))
    replaced(fleet, new, old, serve, time, capabilities=blind)
    unseen = f"Whether 2026.11.4 is free of it cannot be seen: none of its instances tells what compiles ({STORM})."
    assert said(slack)[1] == f"2026.11.4 replaced 2026.11.3. {unseen}"


def test_a_version_that_recovers_says_what_of_it_is_gone(
    fleet: Fleet, new: Deployment, alert: Alert, serve: Serve, slack: StandIn, time: Time
) -> None:
    last = f"{clock.at_minute(clock.minute_of(clock.unix())):%Y-%m-%d %H:%M} UTC"
    serve(90, version="2026.11.3")
    fleet.say(new, "healthy", "Nothing worse than 6 %.", rows=[])
    line(time)
    assert said(slack)[1].startswith(f"Nothing worse than 6 %. Gone, last seen {last}: {STORM}. The evidence: 2026.11.3 has ")
    assert "calls on 1 instance in 9" in said(slack)[1]


def test_a_wrong_result_is_gone_only_where_the_same_batch_came_out_right(
    fleet: Fleet, old: Deployment, new: Deployment, channel: Channel, serve: Serve, slack: StandIn, time: Time
) -> None:
    wrong = {**storm("roll_back"), "kind": "parity", "about": "batch", "why": "output is off by 1.2"}
    fleet.say(new, "roll_back", "Roll back 2026.11.3.", rows=[], facts=[wrong])
    line(time)
    replaced(fleet, new, old, serve, time)
    serve(70)
    line(time)
    assert len(slack.messages) == 2 and "too early to tell" in said(slack)[1], "calls prove nothing about a batch that nobody ran"
    right = {"name": "batch", "state": "passed", "tried": 1}
    serve(1, change=lambda report: report.facts.append(Fact("parity", report.window[1] - 1, right)))
    line(time)
    assert said(slack)[2].startswith("Gone, last seen") and "`batch` gives another result compiled than eager" in said(slack)[2]


def test_levels_alone_are_for_the_verdict_to_speak_of(fleet: Fleet, new: Deployment, channel: Channel, slack: StandIn, time: Time) -> None:
    fleet.say(new, "roll_back", "p50 is 31 % slower.", rows=[evidence_row()])
    line(time)
    fleet.say(new, "healthy", "Nothing worse than 6 %.", rows=[])
    line(time)
    assert said(slack) == ["p50 is 31 % slower.", "Nothing worse than 6 %."]


def test_a_webhook_carries_the_same_sentence(
    project: Project, fleet: Fleet, old: Deployment, new: Deployment, serve: Serve, slack: StandIn, time: Time
) -> None:
    channel_create(project=project, kind="webhook", name="deploys", address=slack.url, actor_name="tests")
    fleet.say(new, "roll_back", "Roll back 2026.11.3.", rows=[], facts=[storm()])
    line(time)
    replaced(fleet, new, old, serve, time)
    serve(65)
    line(time)
    told = [message["data"]["news"] for message in slack.messages if message["type"] == "alert.resolved"]
    assert len(told) == 2 and "too early to tell" in told[0] and told[1].startswith("Gone, last seen")

"""The page of notification settings: rules in words, maintenance in the project's time zone, and
failed notifications with a button to resend them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import time, timedelta

import pytest
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Alert, Channel, Delivery, MaintenanceWindow, Rule
from dashboard.common import clock
from dashboard.projects.models import Project, Role
from tests.dashboard.ui import stories

PAGE = "/p/ranking/settings/messages/"


@pytest.fixture
def channels(alert: Alert) -> list[Channel]:
    return list(Channel.objects.filter(project=alert.project).order_by("pk"))


def html(client: Client, address: str = PAGE) -> str:
    return client.get(address).content.decode()


def rule(channels: list[Channel], **other: object) -> dict[str, object]:
    given = {
        "channel": channels[0].pk,
        "severities": ["watch"],
        "environments": "production, canary",
        "quiet_from": "22:00",
        "quiet_until": "07:00",
        "repeat_minutes": "60",
        "escalate_minutes": "30",
        "escalate_to": channels[1].pk,
    }
    return {**given, **other}


def test_a_rule_is_described_in_words_and_recorded(
    signed_in: Client, channels: list[Channel]
) -> None:
    page = signed_in.post(f"{PAGE}rules/add/", rule(channels), follow=True).content.decode()
    made = Rule.objects.get()
    assert (made.environments, made.models_named, made.severities) == (
        ["production", "canary"],
        [],
        ["watch"],
    )
    assert (made.quiet_from, made.quiet_until, made.roll_back_passes) == (time(22), time(7), False)
    for said in (
        "22:00 to 07:00",
        "including ROLL BACK",
        "repeats every 60",
        "production, canary",
        "of every model",
    ):
        assert said in page
    assert AuditEntry.objects.get(action="rule.add").actor_name == "ada"
    page = signed_in.post(f"{PAGE}rules/{made.pk}/remove/", follow=True).content.decode()
    assert " removed." in page
    assert not Rule.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"channel": "999999"}, "Choose a channel of this project."),
        ({"escalate_to": "x"}, "Choose a channel of this project."),
        ({"severities": ["healthy"]}, "Choose WATCH, ROLL BACK or both."),
        ({"quiet_until": ""}, "Enter both the start and the end of quiet hours, or neither."),
        ({"quiet_from": "25:99"}, "is not a time such as 22:00."),
        ({"quiet_from": "22:00+05:00"}, "is not a time such as 22:00."),
        ({"repeat_minutes": "1"}, "Expected a number of minutes from 5 to 10,080."),
        ({"repeat_minutes": "-5"}, "is not a number of minutes."),
        ({"escalate_minutes": ""}, "Enter both the minutes and the channel, or neither."),
    ],
)
def test_an_invalid_rule_is_refused_with_a_reason_and_not_saved(
    wrong: dict[str, object], said: str, signed_in: Client, channels: list[Channel]
) -> None:
    answer = signed_in.post(f"{PAGE}rules/add/", rule(channels, **wrong))
    assert answer.status_code == 400
    assert said in answer.content.decode()
    assert 'value="production, canary"' in answer.content.decode()
    assert not Rule.objects.exists()


def test_a_rule_cannot_escalate_to_its_own_channel(
    signed_in: Client, channels: list[Channel]
) -> None:
    answer = signed_in.post(f"{PAGE}rules/add/", rule(channels, escalate_to=channels[0].pk))
    assert (answer.status_code, Rule.objects.exists()) == (400, False)


def test_maintenance_is_scheduled_in_the_time_zone_of_the_project_and_ended(
    signed_in: Client, channels: list[Channel], project: Project
) -> None:
    signed_in.post(f"{PAGE}zone/", {"time_zone": "Asia/Tokyo"})
    project.refresh_from_db()
    assert project.time_zone == "Asia/Tokyo"
    until = (clock.now() + timedelta(hours=9 + 3)).replace(tzinfo=None)
    given = {
        "ends_at": f"{until:%Y-%m-%dT%H:%M}",
        "environment": "production",
        "note": "<b>new racks</b>",
    }
    page = signed_in.post(f"{PAGE}maintenance/add/", given, follow=True).content.decode()
    window = MaintenanceWindow.objects.get()
    assert timedelta(hours=2, minutes=58) < window.ends_at - clock.now() <= timedelta(hours=3)
    assert "&lt;b&gt;new racks&lt;/b&gt;" in page
    signed_in.post(f"{PAGE}maintenance/{window.pk}/end/")
    assert "End now" not in html(signed_in)
    assert list(
        AuditEntry.objects.filter(action__startswith="maintenance")
        .values_list("action", flat=True)
        .order_by("pk")
    ) == [
        "maintenance.add",
        "maintenance.end",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"ends_at": "soon"},
        {"ends_at": "2001-01-01T10:00"},
        {"ends_at": "2999-01-01T10:00"},
        {"ends_at": f"{clock.now() + timedelta(hours=12):%Y-%m-%dT%H:%M}+05:00"},
        {"starts_at": "9999-12-30T00:00", "ends_at": "9999-12-31T23:59"},
    ],
)
def test_a_window_without_a_valid_end_is_refused(
    given: dict[str, str], signed_in: Client, channels: list[Channel], project: Project
) -> None:
    Project.objects.filter(pk=project.pk).update(time_zone="America/Los_Angeles")
    assert signed_in.post(f"{PAGE}maintenance/add/", given).status_code == 400
    assert not MaintenanceWindow.objects.exists()


def test_an_unknown_time_zone_is_refused(signed_in: Client, project: Project) -> None:
    assert signed_in.post(f"{PAGE}zone/", {"time_zone": "../etc/passwd"}).status_code == 400
    project.refresh_from_db()
    assert project.time_zone == "UTC"


def test_a_failed_notification_is_listed_and_can_be_resent(
    signed_in: Client, channels: list[Channel], alert: Alert
) -> None:
    delivery = Delivery.objects.filter(channel=channels[0]).order_by("pk").first()
    assert delivery
    Delivery.objects.filter(pk=delivery.pk).update(
        state="dead", last_status=410, last_answer="no_service"
    )
    Channel.objects.filter(pk=channels[0].pk).update(
        enabled=False, disabled_reason="Slack answered 410 no_service."
    )
    page = html(signed_in)
    assert "410 no_service" in page
    assert "Slack answered 410 no_service." in page
    assert "Slack answered 410 no_service." in html(signed_in, "/p/ranking/health/")
    refused = signed_in.post(f"{PAGE}{delivery.pk}/replay/", follow=True).content.decode()
    assert "is disabled" in refused
    Channel.objects.filter(pk=channels[0].pk).update(enabled=True)
    assert (
        "Redelivery scheduled with the same message ID."
        in signed_in.post(f"{PAGE}{delivery.pk}/replay/", follow=True).content.decode()
    )
    delivery.refresh_from_db()
    assert (delivery.state, delivery.attempts) == ("waiting", 0)


def test_all_failed_notifications_of_a_channel_are_resent_except_those_of_resolved_alerts(
    signed_in: Client, as_role: Callable[[Role], Client], channels: list[Channel], alert: Alert
) -> None:
    Delivery.objects.all().delete()
    for minutes in range(27):
        stories.delivery(alert, channels[0], "dead", 503, "Service Unavailable", minutes)
    stories.delivery(alert, channels[1], "dead", 503, "Service Unavailable", 30)
    ended = Alert.objects.create(
        project=alert.project, deployment=alert.deployment, number=1, severity="watch", worst="watch", title="x",
        opened_at=clock.now(), state="resolved", resolved_at=clock.now(),
    )  # fmt: skip
    stories.delivery(ended, channels[0], "dead", 503, "Service Unavailable", 40)
    test = stories.delivery(alert, channels[0], "dead", 503, "Service Unavailable", 50)
    Delivery.objects.filter(pk=test.pk).update(alert=None, kind="test")
    page = html(signed_in)
    assert re.findall(r"Resend all (\d+) of <bdi>(.*?)</bdi>", page) == [("28", channels[0].name)]
    assert page.count("alert resolved") == 1 and page.count(">Resend <") == 29
    address = f"{PAGE}channels/{channels[0].pk}/replay/"
    assert as_role(Role.VIEWER).post(address).status_code == 403
    Channel.objects.filter(pk=channels[0].pk).update(
        enabled=False, disabled_reason="Slack answered 410."
    )
    assert (
        "is disabled: Slack answered 410." in signed_in.post(address, follow=True).content.decode()
    )
    assert "Resend all" not in html(signed_in)
    Channel.objects.filter(pk=channels[0].pk).update(enabled=True)
    assert (
        f"Redelivery of 28 to {channels[0].name} scheduled"
        in signed_in.post(address, follow=True).content.decode()
    )
    assert Delivery.objects.filter(state="waiting", attempts=0).count() == 28
    assert list(Delivery.objects.filter(state="dead").values_list("alert__number", "channel")) == [
        (418, channels[1].pk),
        (1, channels[0].pk),
    ]
    assert AuditEntry.objects.get(action="delivery.replay").subject == "28 messages"


def test_a_viewer_sees_rules_without_buttons(
    as_role: Callable[[Role], Client], channels: list[Channel]
) -> None:
    page = html(as_role(Role.VIEWER))
    assert "Ask an admin to edit rules." in page
    assert "Scheduling maintenance requires the Operator role." in page
    assert "Add rule" not in page

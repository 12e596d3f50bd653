"""Channels of Settings > Notifications: added, tested and disabled; a signing secret is shown
once."""

from __future__ import annotations

from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Channel, Delivery
from dashboard.projects.models import Project

NOTIFICATIONS = "/p/ranking/settings/messages/"
CHANNELS = NOTIFICATIONS + "channels/"


def test_an_invalid_channel_address_is_reported_at_its_field(
    signed_in: Client, project: Project
) -> None:
    answer = signed_in.post(
        CHANNELS + "add/", {"kind": "slack", "name": "#ml-ops", "address": "ftp://nowhere"}
    )
    html = answer.content.decode()
    assert answer.status_code == 400
    assert 'id="eaddr"' in html
    assert 'value="#ml-ops"' in html
    assert not Channel.objects.exists()


def test_a_channel_is_added_tested_and_disabled(signed_in: Client, project: Project) -> None:
    address = "https://hooks.slack.com/services/T000/B000/verysecret"
    html = signed_in.post(
        CHANNELS + "add/",
        {"kind": "slack", "name": "#ml-ops", "address": address},
        follow=True,
    ).content.decode()
    assert "#ml-ops added." in html
    assert "verysecret" not in html
    channel = Channel.objects.get(project=project)
    signed_in.post(f"{CHANNELS}{channel.pk}/test/")
    assert Delivery.objects.get(channel=channel).kind == "test"
    assert "sending" in signed_in.get(CHANNELS).content.decode()
    signed_in.post(f"{CHANNELS}{channel.pk}/disable/")
    assert "Switched off by hand." in signed_in.get(NOTIFICATIONS).content.decode()
    signed_in.post(f"{CHANNELS}{channel.pk}/enable/")
    channel.refresh_from_db()
    assert channel.enabled
    done = (
        AuditEntry.objects.filter(action__startswith="channel.")
        .order_by("pk")
        .values_list("action", flat=True)
    )
    assert list(done) == ["channel.create", "channel.test", "channel.disable", "channel.enable"]


def test_a_project_without_channels_states_that_there_is_none(
    signed_in: Client, project: Project
) -> None:
    assert "No channels" in signed_in.get(NOTIFICATIONS).content.decode()


def test_the_signing_secret_of_a_webhook_is_shown_once(signed_in: Client, project: Project) -> None:
    given = {"kind": "webhook", "name": "ci", "address": "https://ci.example.com/hook"}
    made = signed_in.post(CHANNELS + "add/", given)
    assert (made.status_code, made["Cache-Control"]) == (200, "no-store")
    assert (
        f'<code id="secret">{Channel.objects.get(project=project).secret}</code>'
        in made.content.decode()
    )
    assert "whsec_" not in signed_in.get(NOTIFICATIONS).content.decode()
    assert (
        "whsec_"
        not in signed_in.post(
            CHANNELS + "add/", {"kind": "slack", "name": "x", "address": ""}
        ).content.decode()
    )


def test_a_rotated_signing_secret_is_shown_once_and_the_previous_one_remains_valid(
    signed_in: Client, project: Project
) -> None:
    signed_in.post(
        CHANNELS + "add/",
        {"kind": "webhook", "name": "ci", "address": "https://ci.example.com/hook"},
    )
    channel = Channel.objects.get(project=project)
    page = signed_in.post(f"{CHANNELS}{channel.pk}/rotate/")
    before, channel = channel.secret, Channel.objects.get(pk=channel.pk)
    assert (
        page["Cache-Control"] == "no-store"
        and f'<code id="secret">{channel.secret}</code>' in page.content.decode()
    )
    assert channel.secret != before == channel.secret_previous
    assert (
        "New secret" in signed_in.get(NOTIFICATIONS).content.decode()
        and channel.secret not in signed_in.get(NOTIFICATIONS).content.decode()
    )

"""Timestamps in sentences: complete and in UTC in text, a time element on a page."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from django.test import Client

from dashboard.alerts.channels import CHANNELS, Message
from dashboard.alerts.payloads import build_alert_payload
from dashboard.common import clock
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from dashboard.ui.templatetags.format_filters import prose
from tests.dashboard.ui import stories

SENTENCE = (
    "Roll back `v2`: p50 is 31% slower since 2026-11-24 23:35 UTC; 28% of calls run eager "
    "since 2026-11-24 23:26 UTC."
)


def test_a_page_has_a_time_element_for_each_timestamp() -> None:
    said = prose(SENTENCE)
    assert (
        said.count("<time ") == 2
        and 'datetime="2026-11-24T23:35:00+00:00"' in said
        and "<code>v2</code>" in said
    )
    assert " UTC;" not in said and " UTC." not in said


@pytest.mark.parametrize(
    "text",
    ["2026-13-40 23:35 UTC", "at 23:35 UTC", "12026-11-24 23:35 UTC", "2026-11-24 23:35 UTCX"],
)
def test_text_that_resembles_a_timestamp_stays_text(text: str) -> None:
    assert prose(text) == text


def test_code_and_markup_around_a_timestamp_are_unchanged() -> None:
    said = prose("`2026-11-24 23:35 UTC` <b>2026-11-24 23:36 UTC</b>")
    assert (
        said.startswith("<code>2026-11-24 23:35 UTC</code> &lt;b&gt;<time ")
        and said.count("<time ") == 1
    )


@pytest.mark.parametrize(
    "zone", [UTC, timezone(timedelta(hours=-5)), timezone(timedelta(hours=5, minutes=45))]
)
def test_a_written_timestamp_can_be_parsed(zone: timezone) -> None:
    at = datetime(2026, 11, 24, 23, 35, tzinfo=UTC)
    written = clock.format_timestamp(at.astimezone(zone))
    assert written == "2026-11-24 23:35 UTC" == clock.format_minute(int(at.timestamp()) // 60)
    [found] = clock.TIMESTAMP_PATTERN.findall(written)
    assert clock.parse_timestamp(found) == at


@pytest.mark.django_db
def test_every_channel_keeps_utc_and_every_page_converts_it(
    signed_in: Client, project: Project
) -> None:
    alert = stories.fleet(project, every=400)
    Verdict.objects.filter(deployment=alert.deployment).update(sentence=SENTENCE)
    verdict = Verdict.objects.filter(deployment=alert.deployment).latest("pk")
    facts = build_alert_payload(alert=alert, verdict=verdict)
    for channel in CHANNELS.values():
        body = channel.build(
            Message(id="m-1", kind="opened", at=clock.now(), facts=facts)
        ).body.decode()
        assert "since 2026-11-24 23:35 UTC" in body and "<time" not in body
    root = f"/p/{project.slug}/"
    model = f"{root}models/{alert.deployment.model_id}/"
    for page in (root, model):
        html = signed_in.get(page).content.decode()
        assert 'datetime="2026-11-24T23:35:00+00:00"' in html and "23:35 UTC" not in html, page

"""The title of an alert keeps the numbers of one verdict, and the page names that verdict."""

from __future__ import annotations

import re
from datetime import timedelta

from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.regressions.models import Verdict, VerdictKind

MARK = re.compile(
    r'numbers of the title: verdict of <time[^>]* datetime="([^"]+)"|numbers of the title: '
    r"verdict of (.*?)</span>"
)


def title_time(client: Client, alert: Alert) -> str:
    page = client.get(f"/p/ranking/alerts/{alert.number}/").content.decode()
    found = MARK.search(page)
    return "" if found is None else found[1] or found[2]


def later(verdict: Verdict, kind: VerdictKind, minutes: int) -> Verdict:
    """A copy of the verdict, this number of minutes later."""
    Verdict.objects.filter(deployment=verdict.deployment).update(current=False)
    verdict.pk, verdict.previous_kind, verdict.kind, verdict.current = (
        None,
        verdict.kind,
        kind,
        True,
    )
    verdict.created_at += timedelta(minutes=minutes)
    verdict.save()
    return verdict


def test_the_page_names_the_verdict_whose_numbers_are_in_the_title(
    signed_in: Client, alert: Alert
) -> None:
    opened = alert.verdict
    assert opened is not None
    first = title_time(signed_in, alert)
    assert opened.created_at.strftime("%H:%M") in first
    alert.verdict = later(Verdict.objects.get(pk=opened.pk), VerdictKind.ROLL_BACK, minutes=61)
    alert.save()
    assert title_time(signed_in, alert) != first, (
        "the title was written again from the newer verdict"
    )


def test_a_verdict_without_enough_data_does_not_change_the_time_of_the_title(
    signed_in: Client, alert: Alert
) -> None:
    opened = alert.verdict
    assert opened is not None
    before = title_time(signed_in, alert)
    alert.verdict = later(
        Verdict.objects.get(pk=opened.pk), VerdictKind.NOT_ENOUGH_DATA, minutes=61
    )
    alert.save()
    assert title_time(signed_in, alert) == before != ""

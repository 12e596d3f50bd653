"""The list of alerts is in the order that its address names; without a sort key, open alerts are
first."""

import re
from datetime import timedelta

from django.test import Client

from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.projects.models import Project


def order(client: Client, query: str = "") -> list[int]:
    address = f"/p/ranking/alerts/{query or '?'}&state=all&by=none"
    html = client.get(address).content.decode()
    return [
        int(number) for number in re.findall(r'<a class="t" href="/p/ranking/alerts/(\d+)/"', html)
    ]


def test_column_heads_sort_on_the_server_and_keep_the_other_parameters(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    first = alert.number
    ended = Alert.objects.get(pk=alert.pk)
    ended.pk, ended.number, ended.state = None, first + 1, AlertState.RESOLVED
    ended.resolved_at, ended.opened_at, ended.cause, ended.worst = (
        clock.now(),
        clock.now(),
        "other",
        "watch",
    )
    ended.save(force_insert=True)
    assert order(signed_in) == [first, first + 1]
    assert order(signed_in, "?sort=-number") == [first + 1, first]
    assert order(signed_in, "?sort=worst") == [first, first + 1]
    assert order(signed_in, "?sort=-worst") == [first + 1, first]
    # An open alert has no end, so it comes last in both directions.
    assert order(signed_in, "?sort=ended") == order(signed_in, "?sort=-ended") == [first + 1, first]
    assert order(signed_in, "?sort=nonsense") == order(signed_in)
    html = signed_in.get("/p/ranking/alerts/?verdict=roll_back&sort=-number").content.decode()
    assert "verdict=roll_back&amp;sort=number" in html
    assert 'aria-sort="descending"' in html


def test_an_open_roll_back_comes_before_a_newer_watch_and_a_resolved_one_does_not(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    first = Alert.objects.get(pk=alert.pk)
    for place, (state, worst) in enumerate(
        [
            (AlertState.OPEN, "watch"),
            (AlertState.RESOLVED, "roll_back"),
            (AlertState.RESOLVED, "watch"),
        ],
        1,
    ):
        one = Alert.objects.get(pk=alert.pk)
        one.pk, one.number, one.state, one.worst, one.cause = (
            None,
            first.number + place,
            state,
            worst,
            f"cause {place}",
        )
        one.opened_at = first.opened_at + timedelta(minutes=place)
        one.save(force_insert=True)
    assert order(signed_in) == [first.number, first.number + 1, first.number + 3, first.number + 2]


def test_unassigned_alerts_come_before_acknowledged_alerts(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    taken = Alert.objects.get(pk=alert.pk)
    taken.pk, taken.number, taken.state, taken.cause = (
        None,
        alert.number + 1,
        AlertState.ACKNOWLEDGED,
        "other",
    )
    taken.opened_at = alert.opened_at + timedelta(minutes=5)
    taken.save(force_insert=True)
    assert order(signed_in) == [alert.number, alert.number + 1]
    Alert.objects.filter(pk=alert.pk).update(worst="watch")
    assert order(signed_in) == [alert.number + 1, alert.number], (
        "an acknowledged ROLL BACK is still more urgent than an open WATCH"
    )


def test_a_long_list_is_paged_and_keeps_the_other_parameters(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    first = Alert.objects.get(pk=alert.pk)
    for number in range(first.number + 1, first.number + 120):
        first.pk, first.number, first.state, first.resolved_at = (
            None,
            number,
            AlertState.RESOLVED,
            clock.now(),
        )
        first.save(force_insert=True)
    pages = [order(signed_in, f"?sort=number&page={page}") for page in (1, 2, 3)]
    assert [len(page) for page in pages] == [50, 50, 20]
    assert [number for page in pages for number in page] == list(
        range(alert.number, alert.number + 120)
    )
    html = signed_in.get("/p/ranking/alerts/?state=all&sort=number").content.decode()
    assert (
        "1 to 50 of 120 alerts" in html and 'href="?state=all&amp;sort=number&amp;page=2"' in html
    )

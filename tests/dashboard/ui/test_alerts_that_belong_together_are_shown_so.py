"""The Alerts list and the Alert page show the related alerts of an alert and link to them."""

from __future__ import annotations

import json
import re

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from dashboard.alerts.models import Alert, AlertGroup
from dashboard.alerts.services import alerts_correlate, alerts_sync
from dashboard.projects.models import Project
from tests.dashboard.alerts.fleet import fleet_make

HOSTILE = "<b>gpu</b>"


@pytest.fixture
def together(project: Project) -> list[Alert]:
    """Three models on one host, the first of them also in staging."""
    for name in "abc":
        fleet = fleet_make(project, f"model-{name}")
        deployment = fleet.deploy("2")
        fleet.run(deployment, HOSTILE)
        fleet.say(deployment, "roll_back")
        if name == "a":
            elsewhere = fleet.deploy("2", "staging")
            fleet.run(elsewhere, "another", gpu="T4", torch="2.9")
            fleet.say(elsewhere, "watch")
    alerts_sync()
    alerts_correlate()
    return list(Alert.objects.order_by("number"))


def html(client: Client, address: str) -> str:
    answer = client.get(f"/p/ranking/alerts/{address}")
    assert answer.status_code == 200
    return answer.content.decode()


def rows(page: str) -> int:
    return page.count('<th scope="row"')


def test_alerts_of_one_cause_share_a_group_row_with_one_action(
    signed_in: Client, together: list[Alert]
) -> None:
    group = AlertGroup.objects.get()
    page = html(signed_in, "")
    assert page.count('<th scope="rowgroup"') == 1 and f'href="?group={group.pk}"' in page
    assert (
        "Possible common cause: 3 alerts share machine &lt;b&gt;gpu&lt;/b&gt;" in page
        and HOSTILE not in page
    )
    named = re.search(r'value="acknowledge ([\d ]+)"', page)
    assert named is not None and ">Acknowledge all 3</button>" in page
    assert {int(one) for one in named[1].split()} == {
        one.number for one in together if one.group_id
    }
    assert page.count("also in") == 1  # the others are in their group
    only = html(signed_in, f"?group={group.pk}")
    assert (rows(only), "Show all" in only) == (3, True)
    version = together[0].deployment.version_id
    assert rows(html(signed_in, f"?version={version}")) == 2
    assert html(signed_in, "?by=none").count('<th scope="rowgroup"') == 0
    found = json.loads(signed_in.get(f"/p/ranking/alerts.json?group={group.pk}").content)["alerts"]
    assert {row["group"] for row in found} == {group.title} and len(found) == 3


@pytest.mark.parametrize("odd", ["group=x", "group=-1", "group=" + "9" * 30, "version=%C2%B2"])
def test_an_invalid_filter_is_ignored(signed_in: Client, together: list[Alert], odd: str) -> None:
    assert rows(html(signed_in, f"?{odd}")) == 4


def test_a_group_of_another_project_is_not_found(
    signed_in: Client, together: list[Alert], other_project: Project
) -> None:
    foreign = AlertGroup.objects.create(
        project=other_project, title="secret", opened_at=together[0].opened_at
    )
    page = html(signed_in, f"?group={foreign.pk}")
    assert "No matching alerts" in page and "secret" not in page


def test_the_alert_page_lists_the_related_alerts_with_their_states(
    signed_in: Client, together: list[Alert]
) -> None:
    Alert.objects.filter(pk=together[-1].pk).update(state="resolved", outcome="recovered")
    in_group, alone = (
        [one for one in together if one.group_id],
        next(one for one in together if not one.group_id),
    )
    page = html(signed_in, f"{in_group[0].number}/")
    assert "Check the common cause before rolling back" in page and HOSTILE not in page
    assert [f'alerts/{one.number}/">A-{one.number}' in page for one in together] == [
        one is not in_group[0] for one in together
    ]
    assert "auto-recovered" in page and "Related alerts." in page
    assert "also has alerts in other environments" in html(signed_in, f"{alone.number}/")


def test_the_number_of_queries_does_not_grow_with_the_alerts(
    signed_in: Client, together: list[Alert], project: Project
) -> None:
    counts = []
    for again in range(2):
        with CaptureQueriesContext(connection) as asked:
            html(signed_in, "")
            html(signed_in, f"{together[0].number}/")
        counts.append(len(asked))
        for number in range(9):
            fleet = fleet_make(project, f"more-{again}-{number}")
            deployment = fleet.deploy("2")
            fleet.run(deployment, HOSTILE)
            fleet.say(deployment, "roll_back")
        alerts_sync()
        alerts_correlate()
    assert counts[0] == counts[1]
    assert AlertGroup.objects.get().alerts.count() == 3 + 18

"""One request acts on many alerts: each is checked and recorded for itself, the result states the
counts, and one Undo restores all of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

import pytest
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Alert
from dashboard.alerts.services import alerts_sync
from dashboard.projects.models import Project, Role
from tests.dashboard.alerts.fleet import fleet_make

ACT = "/p/ranking/alerts/act/"


@pytest.fixture
def three(project: Project) -> list[Alert]:
    for name in "abc":
        fleet = fleet_make(project, f"model-{name}")
        fleet.say(fleet.deploy("2"), "roll_back")
    alerts_sync()
    return list(Alert.objects.order_by("number"))


def act(client: Client, action: str, numbers: list[object], **more: object) -> str:
    answer = client.post(ACT, {"action": action, "number": numbers, **more}, follow=True)
    assert answer.status_code == 200
    return unescape(answer.content.decode()).replace("\xa0", " ")


def states() -> list[str]:
    return list(Alert.objects.order_by("number").values_list("state", flat=True))


@pytest.mark.parametrize(
    ("action", "said", "state"),
    [
        ("acknowledge", "2 alerts acknowledged.", "acknowledged"),
        ("snooze", "2 alerts snoozed for 1 hour.", "snoozed"),
        ("resolve", "2 alerts resolved.", "resolved"),
        ("dismiss", "2 alerts marked as false positive.", "resolved"),
    ],
)
def test_each_action_changes_the_selected_alerts_and_is_undone_at_once(
    signed_in: Client, three: list[Alert], action: str, said: str, state: str
) -> None:
    page = act(signed_in, action, [three[0].number, three[2].number])
    assert said in page and states() == [state, "open", state]
    assert AuditEntry.objects.filter(action=f"alert.{action}").count() == 2
    undo = re.search(r'action="(/p/ranking/alerts/act/\?undo=[^"]+)"', page)
    assert undo is not None
    back = unescape(signed_in.post(undo[1], follow=True).content.decode())
    assert "2\xa0alerts restored." in back and states() == ["open"] * 3
    assert AuditEntry.objects.filter(action="alert.undo").count() == 2


def test_alerts_that_cannot_change_are_named(signed_in: Client, three: list[Alert]) -> None:
    act(signed_in, "resolve", [three[0].number])
    page = act(signed_in, "acknowledge", [one.number for one in three] + [999])
    assert "2 alerts acknowledged." in page
    assert f"Not changed: A-999 was not found. A-{three[0].number} is already resolved." in page


def test_the_button_of_a_group_names_its_alerts(signed_in: Client, three: list[Alert]) -> None:
    numbers = f"{three[0].number} {three[1].number}"
    act(signed_in, f"acknowledge {numbers}", [three[2].number])
    assert states() == ["acknowledged", "acknowledged", "open"]


def test_the_reader_returns_to_the_filtered_list(signed_in: Client, three: list[Alert]) -> None:
    given = {"action": "acknowledge", "number": [1], "back": "verdict=roll_back&q=a b"}
    assert signed_in.post(ACT, given)["Location"] == "/p/ranking/alerts/?verdict=roll_back&q=a+b"
    outside = given | {"back": "//evil.example/?x=1"}
    assert signed_in.post(ACT, outside)["Location"].startswith("/p/ranking/alerts/?")


def test_without_a_selection_nothing_changes(signed_in: Client, three: list[Alert]) -> None:
    assert "Select at least one alert." in act(signed_in, "acknowledge", ["x", "-1", ""])
    assert states() == ["open"] * 3
    assert signed_in.post(ACT, {"action": "explode"}).status_code == 404


def test_alerts_of_another_project_do_not_change(
    signed_in: Client, three: list[Alert], other_project: Project
) -> None:
    fleet = fleet_make(other_project, "foreign")
    fleet.say(fleet.deploy("2"), "roll_back")
    alerts_sync()
    foreign = Alert.objects.get(project=other_project)
    Alert.objects.filter(pk=foreign.pk).update(number=77)
    assert "A-77 was not found" in act(signed_in, "resolve", [77])
    assert Alert.objects.get(pk=foreign.pk).state == "open"


def test_a_viewer_sees_no_checkboxes_and_may_not_act(
    as_role: Callable[[Role], Client], three: list[Alert]
) -> None:
    viewer = as_role(Role.VIEWER)
    html = viewer.get("/p/ranking/alerts/").content.decode()
    assert "checkbox" not in html and ACT not in html
    given = {"action": "resolve", "number": [three[0].number]}
    assert viewer.post(ACT, given).status_code == 403 and states() == ["open"] * 3

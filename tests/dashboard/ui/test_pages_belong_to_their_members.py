"""The door: who is not signed in goes to the sign-in page, a foreign project does not exist, a role that is too low may not act."""

from collections.abc import Callable
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.test import Client

from dashboard.alerts.models import Alert, Channel, Delivery, MaintenanceWindow, Rule
from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Key, Project, Role
from tests.dashboard.ui import stories

MESSAGES = "settings/messages/"
ADMIN_ONLY = (
    "setup/keys/add/",
    "setup/channels/add/",
    "settings/judging/save/",
    "settings/judging/try/",
    f"{MESSAGES}rules/add/",
    f"{MESSAGES}rules/1/remove/",
    f"{MESSAGES}zone/",
)
OPERATORS_TOO = (f"{MESSAGES}maintenance/add/", f"{MESSAGES}maintenance/1/end/", f"{MESSAGES}1/replay/")


def pages(alert: Alert) -> list[str]:
    return [
        "/p/ranking/",
        "/p/ranking/alerts/",
        "/p/ranking/alerts/grades/",
        f"/p/ranking/alerts/{alert.number}/",
        f"/p/ranking/models/{alert.deployment.model_id}/",
        f"/p/ranking/models/{alert.deployment.model_id}/compare",
        "/p/ranking/health/",
        "/p/ranking/settings/judging/",
        "/p/ranking/settings/messages/",
        f"/p/ranking/settings/judging/?model={alert.deployment.model_id}",
        "/p/ranking/setup/",
        "/p/ranking/setup/arrival/",
        "/p/ranking/setup/channels/",
    ]


def acts(alert: Alert) -> list[str]:
    channel = Channel.objects.filter(project=alert.project).first()
    assert channel
    alerts = [f"/p/ranking/alerts/{alert.number}/{action}/" for action in ("acknowledge", "snooze", "resolve", "dismiss")]
    baseline = f"/p/ranking/models/{alert.deployment.model_id}/baseline/"
    return [
        *alerts,
        baseline,
        f"{baseline}1/end/",
        *(f"/p/ranking/{part}" for part in (*ADMIN_ONLY, *OPERATORS_TOO)),
        f"/p/ranking/setup/channels/{channel.pk}/test/",
    ]


def test_whoever_is_not_signed_in_is_led_to_the_sign_in_page(client: Client, alert: Alert) -> None:
    for address in pages(alert):
        assert client.get(address).headers["Location"] == f"/accounts/login/?next={quote(address)}"
    for address in acts(alert):
        assert client.post(address).headers["Location"].startswith("/accounts/login/")


def test_a_foreign_project_does_not_exist(client: Client, alert: Alert, make_user: Callable[..., object], other_project: Project) -> None:
    client.force_login(make_user("stranger", other_project, Role.ADMIN))  # type: ignore[arg-type]
    for address in pages(alert):
        assert client.get(address).status_code == 404
    for address in acts(alert):
        assert client.post(address).status_code == 404
    alert.refresh_from_db()
    assert alert.state == "open"


def test_ids_of_another_project_do_not_exist_in_this_one(signed_in: Client, project: Project, other_project: Project) -> None:
    foreign = stories.fleet(other_project, every=60)
    other_model = WatchedModel.objects.filter(project=other_project).first()
    channel = Channel.objects.filter(project=other_project).first()
    assert other_model and channel
    assert signed_in.get(f"/p/ranking/alerts/{foreign.number}/").status_code == 404
    assert signed_in.post(f"/p/ranking/alerts/{foreign.number}/acknowledge/").status_code == 404
    assert signed_in.get(f"/p/ranking/models/{other_model.pk}/").status_code == 404
    assert signed_in.post(f"/p/ranking/models/{other_model.pk}/baseline/", {"kind": "pin"}).status_code == 404
    assert signed_in.get(f"/p/ranking/settings/judging/?model={other_model.pk}").status_code == 404
    assert signed_in.post("/p/ranking/settings/judging/save/", {"model": other_model.pk, "p50.muted": "yes"}).status_code == 404
    assert signed_in.post(f"/p/ranking/setup/channels/{channel.pk}/test/").status_code == 404
    delivery = Delivery.objects.filter(project=other_project).first()
    rule = Rule.objects.create(project=other_project, channel=channel)
    now = clock.now()
    window = MaintenanceWindow.objects.create(project=other_project, starts_at=now, ends_at=now + timedelta(hours=1), made_by_name="x")
    assert delivery
    for part in (f"rules/{rule.pk}/remove/", f"maintenance/{window.pk}/end/", f"{delivery.pk}/replay/"):
        assert signed_in.post(f"/p/ranking/{MESSAGES}{part}").status_code == 404
    assert signed_in.post(f"/p/ranking/{MESSAGES}rules/add/", {"channel": channel.pk}).status_code == 400
    assert Rule.objects.get() == rule
    assert "ranker" not in signed_in.get("/p/ranking/").content.decode()


def test_a_viewer_looks_but_does_not_act(as_role: Callable[[Role], Client], alert: Alert) -> None:
    client = as_role(Role.VIEWER)
    for address in pages(alert):
        assert client.get(address).status_code == 200
    for address in acts(alert):
        answer = client.post(address)
        assert answer.status_code == 403
        assert "Your role does not allow this" in answer.content.decode()
    html = client.get(f"/p/ranking/alerts/{alert.number}/").content.decode()
    assert "Operators can act on alerts." in html
    assert "/acknowledge/" not in html
    assert "Make a key" not in client.get("/p/ranking/setup/").content.decode()


def test_an_operator_acts_on_alerts_but_makes_no_keys(as_role: Callable[[Role], Client], alert: Alert) -> None:
    client = as_role(Role.OPERATOR)
    assert client.post(f"/p/ranking/alerts/{alert.number}/acknowledge/").status_code == 302
    for part in ADMIN_ONLY:
        assert client.post(f"/p/ranking/{part}").status_code == 403
    assert not Key.objects.filter(project=alert.project).exists()


@pytest.mark.parametrize("address", ["acknowledge", "snooze", "resolve", "dismiss"])
def test_looking_never_changes_anything(signed_in: Client, alert: Alert, address: str) -> None:
    assert signed_in.get(f"/p/ranking/alerts/{alert.number}/{address}/").status_code == 405


def test_what_a_database_cannot_store_is_refused_at_the_door(signed_in: Client, alert: Alert) -> None:
    page = f"/p/ranking/alerts/{alert.number}/"
    assert signed_in.post(f"{page}acknowledge/", {"note": "a\0b"}).status_code == 400
    assert signed_in.get(f"/p/ranking/models/{alert.deployment.model_id}/?env=%00").status_code == 400
    alert.refresh_from_db()
    assert alert.state == "open"

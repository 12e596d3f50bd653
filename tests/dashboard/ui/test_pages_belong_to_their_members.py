"""Access to pages: the answers to users who are not signed in or whose role is too low.
`tests/dashboard/access` holds the table of permissions."""

from collections.abc import Callable
from urllib.parse import quote

from django.test import Client

from dashboard.accounts.models import User
from dashboard.accounts.reauthentication import REAUTHENTICATION_VALID_S
from dashboard.alerts.models import Alert, Channel, Rule
from dashboard.alerts.services import channel_create
from dashboard.fleet.models import ModelVersion, WatchedModel
from dashboard.projects.models import Key, Project, Role
from tests.dashboard.conftest import sign_in
from tests.dashboard.ui import stories

MESSAGES = "settings/messages/"
ADMIN_ONLY = (
    "setup/keys/add/",
    "settings/messages/channels/add/",
    "setup/command-key/",
    "settings/judging/save/",
    "settings/judging/try/",
    f"{MESSAGES}rules/add/",
    f"{MESSAGES}rules/1/remove/",
    f"{MESSAGES}zone/",
    "settings/guides/save/",
)
OPERATORS_TOO = (
    f"{MESSAGES}maintenance/add/",
    f"{MESSAGES}maintenance/1/end/",
    f"{MESSAGES}1/replay/",
)


def pages(alert: Alert) -> list[str]:
    return [
        "/p/ranking/",
        "/p/ranking/alerts/",
        "/p/ranking/alerts/grades/",
        f"/p/ranking/alerts/{alert.number}/",
        f"/p/ranking/models/{alert.deployment.model_id}/",
        f"/p/ranking/models/{alert.deployment.model_id}/compare",
        f"/p/ranking/models/{alert.deployment.model_id}/switch/",
        "/p/ranking/health/",
        "/p/ranking/settings/judging/",
        "/p/ranking/settings/messages/",
        "/p/ranking/settings/guides/",
        f"/p/ranking/settings/judging/?model={alert.deployment.model_id}",
        "/p/ranking/setup/",
        "/p/ranking/setup/arrival/",
        "/p/ranking/settings/messages/channels/",
        "/p/ranking/setup/keys/",
    ]


def acts(alert: Alert) -> list[str]:
    channel = Channel.objects.filter(project=alert.project).first()
    assert channel
    alerts = [
        f"/p/ranking/alerts/{alert.number}/{action}/"
        for action in ("acknowledge", "snooze", "resolve", "dismiss")
    ]
    baseline = f"/p/ranking/models/{alert.deployment.model_id}/baseline/"
    return [
        *alerts,
        baseline,
        f"{baseline}1/end/",
        f"/p/ranking/models/{alert.deployment.model_id}/switch/begin/",
        f"/p/ranking/models/{alert.deployment.model_id}/switch/1/end/",
        *(f"/p/ranking/{part}" for part in (*ADMIN_ONLY, *OPERATORS_TOO)),
        f"/p/ranking/settings/messages/channels/{channel.pk}/test/",
    ]


def test_pages_redirect_users_who_are_not_signed_in_to_the_sign_in_page(
    client: Client, alert: Alert
) -> None:
    for address in pages(alert):
        assert client.get(address).headers["Location"] == f"/accounts/login/?next={quote(address)}"
    for address in acts(alert):
        assert client.post(address).headers["Location"].startswith("/accounts/login/")


def test_an_id_in_a_form_is_looked_up_in_its_project_only(
    signed_in: Client, project: Project, other_project: Project
) -> None:
    stories.fleet(other_project, every=400)
    other_model = WatchedModel.objects.filter(project=other_project).first()
    channel = Channel.objects.filter(project=other_project).first()
    assert other_model and channel
    assert signed_in.get(f"/p/ranking/settings/judging/?model={other_model.pk}").status_code == 404
    assert (
        signed_in.post(
            "/p/ranking/settings/judging/save/", {"model": other_model.pk, "p50.muted": "yes"}
        ).status_code
        == 404
    )
    assert (
        signed_in.post(f"/p/ranking/{MESSAGES}rules/add/", {"channel": channel.pk}).status_code
        == 400
    )
    assert not Rule.objects.exists()
    assert "ranker" not in signed_in.get("/p/ranking/").content.decode()


def test_a_viewer_has_read_only_access(as_role: Callable[[Role], Client], alert: Alert) -> None:
    client = as_role(Role.VIEWER)
    for address in pages(alert):
        assert client.get(address).status_code == 200
    for address in acts(alert):
        answer = client.post(address)
        assert answer.status_code == 403
        assert "Your role does not allow this" in answer.content.decode()
    html = client.get(f"/p/ranking/alerts/{alert.number}/").content.decode()
    assert "Actions require the Operator role." in html
    assert "/acknowledge/" not in html
    assert "Create key" not in client.get("/p/ranking/setup/").content.decode()


def test_an_operator_acts_on_alerts_but_creates_no_keys(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    client = as_role(Role.OPERATOR)
    assert client.post(f"/p/ranking/alerts/{alert.number}/acknowledge/").status_code == 302
    for part in ADMIN_ONLY:
        assert client.post(f"/p/ranking/{part}").status_code == 403
    assert not Key.objects.filter(project=alert.project).exists()


def test_rotating_a_signing_secret_requires_reauthentication(
    client: Client, user: User, alert: Alert
) -> None:
    channel = channel_create(
        project=alert.project,
        user=user,
        kind="webhook",
        name="ci",
        address="https://hooks.example.com/in",
    )
    late, act = (
        sign_in(client, user, ago=REAUTHENTICATION_VALID_S + 5.0),
        f"/p/ranking/settings/messages/channels/{channel.pk}",
    )
    assert late.post(f"{act}/rotate/").headers["Location"].startswith("/accounts/reauthenticate/")
    assert Channel.objects.get(pk=channel.pk).secret == channel.secret
    assert late.post(f"{act}/disable/").headers["Location"] == "/p/ranking/settings/messages/"


def test_budgets_are_not_set_through_a_version_of_another_model(
    signed_in: Client, alert: Alert
) -> None:
    other = ModelVersion.objects.exclude(model_id=alert.deployment.model_id).first()
    assert other
    budgets = f"/p/ranking/models/{alert.deployment.model_id}/versions/{other.pk}/budgets/"
    assert signed_in.post(budgets, {"cold_start": "60"}).status_code == 404


def test_values_that_the_database_cannot_store_are_refused(signed_in: Client, alert: Alert) -> None:
    page = f"/p/ranking/alerts/{alert.number}/"
    assert signed_in.post(f"{page}acknowledge/", {"note": "a\0b"}).status_code == 400
    assert (
        signed_in.get(f"/p/ranking/models/{alert.deployment.model_id}/?env=%00").status_code == 400
    )
    alert.refresh_from_db()
    assert alert.state == "open"

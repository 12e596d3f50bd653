"""Administration: staff can view everything and change nothing by hand; each repair action is in
the audit log."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from allauth.mfa.models import Authenticator
from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.services import audit_write
from dashboard.projects.models import Key, Project, Role
from dashboard.projects.services import key_create
from tests.dashboard.conftest import sign_in

MODELS = (
    "accounts/user",
    "accounts/auditentry",
    "projects/project",
    "projects/member",
    "projects/key",
    "projects/invitation",
)
OTHERS = ("common/heartbeat", "ingest/poisonreport", "alerts/delivery")


@pytest.fixture
def operator(make_user: Callable[..., User]) -> User:
    person = make_user("root")
    person.is_staff = True
    person.save()
    return person


def act(client: Client, model: str, action: str, *ids: int) -> str:
    given = {"action": action, "_selected_action": [str(one) for one in ids]}
    return client.post(f"/admin/{model}/", given, follow=True).content.decode()


def test_staff_can_view_everything_under_the_content_security_policy(
    operator: User, project: Project, user: User
) -> None:
    client = sign_in(Client(), operator)
    key, text = key_create(project=project, name="trainers", actor=user)
    for model in (*MODELS, *OTHERS):
        answer = client.get(f"/admin/{model}/")
        assert answer.status_code == 200, model
        policy = answer["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self' 'unsafe-eval'" in policy
        assert client.get(f"/admin/{model}/add/").status_code == 403
    shown = client.get(f"/admin/projects/key/{key.pk}/change/").content.decode()
    assert key.lookup in shown and text not in shown
    assert client.get("/admin/").status_code == 200
    assert client.get("/p/ranking/").status_code == 404
    assert "unsafe" not in client.get("/")["Content-Security-Policy"]


def test_facts_and_the_audit_log_cannot_be_changed_or_deleted(
    operator: User, project: Project, user: User
) -> None:
    client = sign_in(Client(), operator)
    row = audit_write(action="key.create", subject="x", project_id=project.pk, actor=user)
    for model, pk in (
        ("accounts/auditentry", row.pk),
        ("projects/project", project.pk),
        ("accounts/user", user.pk),
    ):
        before = AuditEntry.objects.count()
        assert (
            client.post(
                f"/admin/{model}/{pk}/change/", {"subject": "y", "is_staff": "on", "slug": "z"}
            ).status_code
            == 403
        )
        assert client.post(f"/admin/{model}/{pk}/delete/", {"post": "yes"}).status_code == 403
        act(client, model, "delete_selected", pk)
        assert AuditEntry.objects.count() == before
    row.refresh_from_db()
    user.refresh_from_db()
    assert (
        row.subject == "x" and not user.is_staff and Project.objects.filter(slug="ranking").exists()
    )


def test_a_repair_is_in_the_audit_log(operator: User, project: Project, user: User) -> None:
    client, theirs = sign_in(Client(), operator), sign_in(Client(), user)
    Authenticator.objects.create(user=user, type="totp", data={})
    assert "recorded in the audit log" in act(client, "accounts/user", "second_step", user.pk)
    assert not Authenticator.objects.exists()
    act(client, "accounts/user", "sign_out", user.pk)
    assert theirs.get("/p/ranking/").status_code == 302
    act(client, "accounts/user", "close", user.pk)
    user.refresh_from_db()
    assert not user.is_active
    act(client, "accounts/user", "open_again", user.pk)
    key, _ = key_create(project=project)
    act(client, "projects/key", "revoke", key.pk)
    assert Key.objects.get().revoked_at
    assert "You cannot close" in act(client, "accounts/user", "close", operator.pk)
    done = AuditEntry.objects.filter(actor=operator).order_by("pk").values_list("action", flat=True)
    assert list(done) == [
        "user.second_step",
        "user.sign_out",
        "user.close",
        "user.open",
        "key.revoke",
    ]


def test_a_repair_asks_for_the_password_again(operator: User, user: User) -> None:
    client = sign_in(Client(), operator, ago=3600)
    assert client.get("/admin/accounts/user/").status_code == 200
    led = client.post(
        "/admin/accounts/user/", {"action": "close", "_selected_action": [str(user.pk)]}
    )
    assert led.headers["Location"].startswith("/accounts/reauthenticate/")
    user.refresh_from_db()
    assert user.is_active


def test_only_staff_can_sign_in_to_the_administration(
    client: Client, user: User, project: Project, make_user: Callable[..., User]
) -> None:
    assert client.get("/admin/").headers["Location"].startswith("/accounts/login/?next=/admin/")
    assert sign_in(Client(), user).get("/admin/").status_code == 403
    assert (
        sign_in(Client(), make_user("oscar", project, Role.OPERATOR))
        .get("/admin/accounts/user/")
        .status_code
        == 403
    )

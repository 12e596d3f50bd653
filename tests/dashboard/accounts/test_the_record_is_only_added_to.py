"""Audit log: every change is one row, and rows cannot be changed or deleted."""

import pytest
from django.core.exceptions import ValidationError

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.services import audit_write, user_create
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create, key_revoke, member_add

pytestmark = pytest.mark.django_db


def test_each_change_of_a_project_writes_one_row(project: Project, user: User) -> None:
    before = AuditEntry.objects.count()
    member_add(project=project, user=user, role=Role.OPERATOR, actor=user)
    key, text = key_create(project=project, name="trainers", actor=user)
    key_revoke(key=key, actor=user)
    key_revoke(key=key, actor=user)
    rows = list(AuditEntry.objects.order_by("pk"))[before:]
    assert [(row.action, row.project_id, row.actor, row.actor_name) for row in rows] == [
        ("member.set", project.pk, user, "ada"),
        ("key.create", project.pk, user, "ada"),
        ("key.revoke", project.pk, user, "ada"),
    ]
    assert (rows[0].before, rows[0].after) == ({"role": "admin"}, {"role": "operator"})
    assert all(text not in f"{row.subject} {row.before} {row.after}" for row in rows)


def test_rows_cannot_be_changed_or_deleted(user: User) -> None:
    entry = audit_write(action="something.done", subject="x" * 500, actor=user)
    assert len(entry.subject) == 200
    entry.action = "something.else"
    with pytest.raises(TypeError, match="cannot be changed"):
        entry.save()
    with pytest.raises(TypeError, match="cannot be deleted"):
        entry.delete()


def test_a_row_needs_an_actor() -> None:
    with pytest.raises(ValueError, match="actor"):
        audit_write(action="something.done", subject="x")


def test_the_name_remains_when_the_person_is_deleted(user: User) -> None:
    entry = audit_write(action="something.done", subject="x", actor=user)
    user.delete()
    entry.refresh_from_db()
    assert entry.actor is None and entry.actor_name == "ada"


@pytest.mark.parametrize("password", ["short", "password1234", ""])
def test_a_weak_password_creates_no_user(password: str) -> None:
    with pytest.raises(ValidationError):
        user_create(username="ada", password=password)
    assert not User.objects.exists()

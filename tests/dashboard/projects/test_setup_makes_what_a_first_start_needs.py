"""`setup_project` creates a person, a project and a key once and shows them once; a second run
changes nothing."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from dashboard.accounts.models import AuditEntry, User
from dashboard.projects.key_auth import key_check
from dashboard.projects.models import Key, Member, Project, Role

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> dict[str, str]:
    out = StringIO()
    call_command("setup_project", *arguments, stdout=out)
    return {
        name: value.strip()
        for name, _, value in (line.partition(":") for line in out.getvalue().splitlines())
    }


def test_first_and_second_run() -> None:
    first = run("--name", "Ad Ranking", "--user", "ada")
    assert first["project"] == "ad-ranking" and first["user"] == "ada"
    known = key_check(first["key"])
    assert known is not None and known.project_id == Project.objects.get().pk
    assert User.objects.get().check_password(first["password"])
    assert Member.objects.get().role == Role.ADMIN
    second = run("--name", "Ad Ranking", "--user", "ada")
    assert second["key"].startswith("(as before") and second["password"] == "(as before)"
    assert (Key.objects.count(), User.objects.count(), Project.objects.count()) == (1, 1, 1)


def test_setup_without_a_person() -> None:
    assert set(run("--name", "Ranking")) == {"project", "key"}
    assert not User.objects.exists()


def test_a_name_without_letters_is_one_sentence() -> None:
    with pytest.raises(CommandError, match="cannot be blank"):
        run("--name", "!!!")


def test_each_step_is_in_the_audit_log() -> None:
    run("--name", "Ranking", "--user", "ada")
    assert list(AuditEntry.objects.order_by("pk").values_list("action", flat=True)) == [
        "user.create",
        "project.create",
        "member.set",
        "key.create",
    ]
    assert set(AuditEntry.objects.values_list("actor_name", flat=True)) == {"setup_project"}

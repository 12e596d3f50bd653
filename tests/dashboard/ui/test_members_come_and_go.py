"""Settings > Members: people join through a single-use link, change their role and leave; one admin
always remains."""

import re
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.conf import LazySettings
from django.core import mail
from django.core.exceptions import ValidationError
from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.services import user_create
from dashboard.common import clock
from dashboard.projects.models import Invitation, Member, Project, Role
from tests.dashboard.conftest import PASSWORD, sign_in

MEMBERS = "/p/ranking/settings/members/"
MakeUser = Callable[..., User]


def invited(client: Client, **given: str) -> str:
    """The path of a new invitation, as shown on the page."""
    answer = client.post(MEMBERS + "invite/", {"role": "operator", **given})
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store")
    found = re.search(r'id="link">http[^<]*?(/invitations/[^<]+)<', answer.content.decode())
    assert found
    return found[1]


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_a_link_creates_one_account_and_membership(signed_in: Client, project: Project) -> None:
    path, guest = invited(signed_in, note="Mara, on call"), Client()
    page = guest.get(path).content.decode()
    assert "ada invited you as operator" in page
    answer = guest.post(path, {"username": "mara", "password": PASSWORD})
    assert answer.headers["Location"] == "/p/ranking/"
    assert guest.get("/p/ranking/").status_code == 200
    assert Member.objects.get(user__username="mara").role == Role.OPERATOR
    again = Client().post(path, {"username": "eve", "password": PASSWORD})
    assert (again.status_code, User.objects.filter(username="eve").exists()) == (404, False)
    assert actions()[-3:] == ["invitation.create", "user.create", "invitation.accept"]
    assert AuditEntry.objects.filter(action="invitation.create").get().address == "127.0.0.1"


def test_the_link_is_not_stored(signed_in: Client, project: Project) -> None:
    token = invited(signed_in).split("/")[2]
    made = Invitation.objects.get()
    assert token.encode() not in bytes(made.digest)
    assert token not in signed_in.get(MEMBERS).content.decode()
    assert all(token not in f"{row.subject} {row.after}" for row in AuditEntry.objects.all())


def test_a_weak_password_or_a_taken_name_is_reported_at_its_field(
    signed_in: Client, project: Project
) -> None:
    path, guest = invited(signed_in), Client()
    short = guest.post(path, {"username": "mara", "password": "short"})
    assert (
        short.status_code == 400
        and "at least 12" in short.content.decode()
        and 'value="mara"' in short.content.decode()
    )
    taken = guest.post(path, {"username": "ada", "password": PASSWORD})
    assert taken.status_code == 400 and "username-e" in taken.content.decode()
    assert not Member.objects.exclude(user__username="ada").exists()


def test_names_that_differ_only_in_case_are_refused(signed_in: Client, project: Project) -> None:
    taken = Client().post(invited(signed_in), {"username": "ADA", "password": PASSWORD})
    assert taken.status_code == 400 and "username-e" in taken.content.decode()
    assert (
        Client().post("/accounts/login/", {"login": "ada", "password": PASSWORD}).status_code == 302
    )


@pytest.mark.parametrize(("taken", "tried"), [("Élodie", "élodie"), ("ΣΑΣ", "σας")])
def test_names_are_compared_without_case_in_every_alphabet(
    taken: str, tried: str, project: Project
) -> None:
    user_create(username=taken, password=PASSWORD)
    with pytest.raises(ValidationError, match="already exists"):
        user_create(username=tried, password=PASSWORD)


def test_the_second_of_two_concurrent_uses_of_a_link_creates_no_account(
    signed_in: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, seen = invited(signed_in), Invitation.objects.get()
    assert Client().post(path, {"username": "mara", "password": PASSWORD}).status_code == 302
    monkeypatch.setattr("dashboard.ui.pages.account.views_projects.find_invitation", lambda _: seen)
    late = Client().post(path, {"username": "eve", "password": PASSWORD})
    assert (late.status_code, User.objects.filter(username="eve").exists()) == (400, False)


def test_a_user_with_an_account_signs_in_and_keeps_the_higher_role(
    signed_in: Client, project: Project, make_user: MakeUser
) -> None:
    path = invited(signed_in, role="viewer")
    assert f"next={path}" in Client().get(path).content.decode()
    operator = sign_in(Client(), make_user("oscar", project, Role.OPERATOR))
    operator.post(path)
    assert Member.objects.get(user__username="oscar").role == Role.OPERATOR


def test_a_link_shows_a_member_how_the_role_would_change(
    signed_in: Client, project: Project, make_user: MakeUser
) -> None:
    operator = sign_in(Client(), make_user("oscar", project, Role.OPERATOR))
    less = operator.get(invited(signed_in, role="viewer")).content.decode()
    assert "You are already a member, as operator. This link does not change your role" in less
    assert 'type="submit">Become' not in less
    more = operator.get(invited(signed_in, role="admin")).content.decode()
    assert "This invitation makes you admin." in more
    assert 'type="submit">Become admin' in more
    stranger = sign_in(Client(), make_user("stranger"))
    assert (
        "You are signed in as <b>stranger</b>. The link works once"
        in stranger.get(invited(signed_in)).content.decode()
    )


@pytest.mark.parametrize("ended", ["expired", "revoked", "maker gone"])
def test_a_link_that_expired_was_revoked_or_lost_its_author_does_not_work(
    signed_in: Client, project: Project, user: User, make_user: MakeUser, ended: str
) -> None:
    path = invited(signed_in)
    made = Invitation.objects.get()
    if ended == "expired":
        Invitation.objects.update(expires_at=clock.now() - timedelta(seconds=1))
    elif ended == "revoked":
        signed_in.post(f"{MEMBERS}invitations/{made.pk}/revoke/")
    else:
        make_user("grace", project, Role.ADMIN)
        signed_in.post(MEMBERS + "leave/")
    for answer in (
        Client().get(path),
        Client().post(path, {"username": "mara", "password": PASSWORD}),
    ):
        assert answer.status_code == 404
        assert "Invitation expired or revoked" in answer.content.decode()


def test_an_invitation_is_mailed_if_a_mail_server_is_configured(
    signed_in: Client, project: Project, settings: LazySettings
) -> None:
    refused = signed_in.post(MEMBERS + "invite/", {"role": "viewer", "email": "mara@example.com"})
    assert refused.status_code == 400 and "cannot send email" in refused.content.decode()
    settings.MAIL_READY = True
    path = invited(signed_in, email="mara@example.com")
    [sent] = mail.outbox
    assert sent.to == ["mara@example.com"] and path in sent.body
    assert (
        signed_in.post(MEMBERS + "invite/", {"role": "viewer", "email": "nobody"}).status_code
        == 400
    )


def test_a_role_changes_except_that_of_the_last_admin(
    signed_in: Client, project: Project, user: User, make_user: MakeUser
) -> None:
    oscar = make_user("oscar", project, Role.VIEWER)
    for answer in (
        signed_in.post(f"{MEMBERS}{user.pk}/role/", {"role": "viewer"}),
        signed_in.post(f"{MEMBERS}{user.pk}/remove/"),
        signed_in.post(f"{MEMBERS}leave/"),
    ):
        assert answer.status_code == 400 and "ada is the only admin" in answer.content.decode()
    assert signed_in.post(f"{MEMBERS}{oscar.pk}/role/", {"role": "emperor"}).status_code == 400
    signed_in.post(f"{MEMBERS}{oscar.pk}/role/", {"role": "admin"})
    assert signed_in.post(f"{MEMBERS}leave/").headers["Location"] == "/"
    assert signed_in.get("/p/ranking/").status_code == 404
    assert list(Member.objects.values_list("user__username", "role")) == [("oscar", "admin")]
    assert actions()[-2:] == ["member.set", "member.remove"]


def test_a_disabled_admin_does_not_count_as_an_admin(
    signed_in: Client, project: Project, make_user: MakeUser
) -> None:
    gone = make_user("grace", project, Role.ADMIN)
    gone.is_active = False
    gone.save()
    assert signed_in.post(f"{MEMBERS}leave/").status_code == 400


def test_a_removed_member_loses_access_immediately(
    signed_in: Client, project: Project, make_user: MakeUser
) -> None:
    oscar = make_user("oscar", project, Role.OPERATOR)
    theirs = sign_in(Client(), oscar)
    assert theirs.get("/p/ranking/").status_code == 200
    signed_in.post(f"{MEMBERS}{oscar.pk}/remove/")
    assert theirs.get("/p/ranking/").status_code == 404
    assert signed_in.post(f"{MEMBERS}{oscar.pk}/remove/").status_code == 404


def test_members_of_another_project_cannot_be_changed(
    signed_in: Client, other_project: Project, make_user: MakeUser
) -> None:
    stranger = make_user("mallory", other_project, Role.VIEWER)
    for part in ("role", "remove"):
        assert (
            signed_in.post(f"{MEMBERS}{stranger.pk}/{part}/", {"role": "admin"}).status_code == 404
        )
    assert "mallory" not in signed_in.get(MEMBERS).content.decode()


def test_only_admins_and_staff_create_projects(
    signed_in: Client, make_user: MakeUser, project: Project
) -> None:
    answer = signed_in.post("/projects/new/", {"name": "Ranking"})
    assert answer.headers["Location"] == "/p/ranking-2/setup/"
    assert Member.objects.get(project__slug="ranking-2").role == Role.ADMIN
    assert set(
        AuditEntry.objects.filter(project_id=Project.objects.get(slug="ranking-2").pk).values_list(
            "address"
        )
    ) == {("127.0.0.1",)}
    assert signed_in.post("/projects/new/", {"name": "  "}).status_code == 400
    assert "New project" in signed_in.get("/").content.decode()
    nobody = sign_in(Client(), make_user("nobody"))
    assert nobody.get("/projects/new/").status_code == 403
    assert "New project" not in nobody.get("/").content.decode()

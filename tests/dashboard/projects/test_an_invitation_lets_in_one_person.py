"""Attacks on invitations: guessed links, concurrent use, and links that end while their page is
open."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from dashboard.accounts.models import AuditEntry, User
from dashboard.accounts.session_expiry import reset_sign_in_limits
from dashboard.common import clock
from dashboard.projects.invitations import find_invitation, invitation_create, invitation_revoke
from dashboard.projects.models import Invitation, Member, Project, Role
from tests.dashboard.conftest import PASSWORD, sign_in

VIEW = "dashboard.ui.pages.account.views_projects.find_invitation"
MakeUser = Callable[..., User]


@pytest.fixture(autouse=True)
def _no_tries_before(db: None) -> None:
    reset_sign_in_limits()


def made(project: Project, user: User, role: str = "operator") -> str:
    """The path of a new invitation."""
    return f"/invitations/{invitation_create(project=project, role=role, actor=user)[1]}/"


def once_seen(monkeypatch: pytest.MonkeyPatch, then: Callable[[Invitation], Any]) -> None:
    """Runs a callback after the page has found its invitation and before the invitation is
    accepted."""

    def look(text: str) -> Invitation | None:
        if (found := find_invitation(text)) is not None:
            then(found)
        return found

    monkeypatch.setattr(VIEW, look)


def at_once(what: list[Callable[[], int]]) -> list[int]:
    """The statuses, sorted."""

    def run(one: Callable[[], int]) -> int:
        try:
            return one()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(what)) as threads:
        return sorted(threads.map(run, what))


def test_guessing_links_is_limited(project: Project, user: User) -> None:
    path = made(project, user)
    statuses = [
        Client(REMOTE_ADDR="203.0.113.7").get(f"/invitations/{number:043d}/").status_code
        for number in range(70)
    ]
    assert statuses[:60] == [404] * 60 and set(statuses[60:]) == {429}
    late = Client(REMOTE_ADDR="203.0.113.7").post(path, {"username": "eve", "password": PASSWORD})
    assert late.status_code == 429 and "Too many attempts" in late.content.decode()
    assert not User.objects.filter(username="eve").exists()
    assert Client(REMOTE_ADDR="203.0.113.8").get(path).status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        str.swapcase,
        lambda text: text[:-1],
        lambda text: text + "A",
        lambda text: text + "%00",
        lambda _: "%",
    ],
)
def test_a_nearly_correct_link_is_invalid(
    project: Project, user: User, change: Callable[[str], str]
) -> None:
    text = invitation_create(project=project, role="viewer", actor=user)[1]
    answer = Client().post(
        f"/invitations/{change(text)}/", {"username": "eve", "password": PASSWORD}
    )
    assert answer.status_code == 404 and not User.objects.filter(username="eve").exists()


@pytest.mark.django_db(transaction=True)
def test_one_of_four_concurrent_users_of_a_link_becomes_a_member(
    project: Project, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, together = made(project, user), Barrier(4)
    once_seen(monkeypatch, lambda _: together.wait(30))

    def take(name: str) -> int:
        return Client().post(path, {"username": name, "password": PASSWORD}).status_code

    assert at_once(
        [lambda name=name: take(name) for name in ("eve", "mallory", "oscar", "trudy")]
    ) == [302, 400, 400, 400]
    assert User.objects.count() == 2 and Member.objects.exclude(user=user).count() == 1
    assert AuditEntry.objects.filter(action="invitation.accept").count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_person_who_accepts_two_links_at_once_gets_the_greater_role(
    project: Project, user: User, make_user: MakeUser, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, together, oscar = (
        [made(project, user, role) for role in ("viewer", "admin")],
        Barrier(2),
        make_user("oscar"),
    )
    browsers = [sign_in(Client(raise_request_exception=False), oscar) for _ in paths]
    once_seen(monkeypatch, lambda _: together.wait(30))
    pairs = zip(browsers, paths, strict=True)
    assert at_once(
        [
            lambda browser=browser, path=path: browser.post(path).status_code
            for browser, path in pairs
        ]
    ) == [302, 302]
    assert Member.objects.get(user=oscar).role == Role.ADMIN


def demoted(found: Invitation) -> None:
    Member.objects.filter(user=found.made_by).update(role=Role.OPERATOR)


def removed(found: Invitation) -> None:
    Member.objects.filter(user=found.made_by).delete()


def closed(found: Invitation) -> None:
    User.objects.filter(pk=found.made_by_id).update(is_active=False)


def expired(found: Invitation) -> None:
    Invitation.objects.update(expires_at=clock.now() - timedelta(seconds=1))


def taken_back(found: Invitation) -> None:
    assert found.made_by
    invitation_revoke(invitation=found, actor=found.made_by)


ENDS = [demoted, removed, closed, expired, taken_back]


@pytest.mark.parametrize("end", ENDS)
def test_a_link_that_ends_while_its_page_is_open_admits_no_one(
    project: Project,
    user: User,
    make_user: MakeUser,
    monkeypatch: pytest.MonkeyPatch,
    end: Callable[[Invitation], None],
) -> None:
    stranger, path = sign_in(Client(), make_user("oscar")), made(project, user)
    once_seen(monkeypatch, end)
    for browser in (Client(), stranger):
        Member.objects.update_or_create(
            project=project, user=user, defaults={"role": Role.ADMIN, "created_at": clock.now()}
        )
        User.objects.update(is_active=True)
        Invitation.objects.update(expires_at=clock.now() + timedelta(days=1), revoked_at=None)
        answer = browser.post(path, {"username": "eve", "password": PASSWORD})
        assert answer.status_code == 400 and "Already used or revoked" in answer.content.decode()
    assert (
        not User.objects.filter(username="eve").exists()
        and not Member.objects.exclude(user=user).exists()
    )


@pytest.mark.parametrize("end", [demoted, closed])
def test_a_link_ends_when_its_creator_loses_the_right_to_invite(
    project: Project, user: User, end: Callable[[Invitation], None]
) -> None:
    path = made(project, user)
    end(Invitation.objects.get())
    answer = Client().post(path, {"username": "eve", "password": PASSWORD})
    assert answer.status_code == 404 and not User.objects.filter(username="eve").exists()


def test_the_audit_log_names_the_person_who_used_a_mailed_link(
    project: Project, user: User, make_user: MakeUser
) -> None:
    """By design a link works for any person who has it, so the members' page and the audit log name
    the person, not the mail address."""
    text = invitation_create(project=project, role="viewer", note="mara@example.com", actor=user)[1]
    sign_in(Client(), make_user("oscar")).post(f"/invitations/{text}/")
    assert AuditEntry.objects.get(action="invitation.accept").actor_name == "oscar"
    page = sign_in(Client(), user).get("/p/ranking/settings/members/").content.decode()
    assert "oscar" in page and not re.search("mara@example.com", page)

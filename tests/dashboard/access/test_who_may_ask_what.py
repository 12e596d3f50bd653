"""Access tests: every URL with every method as every caller. The answer matches the access matrix,
and a refused request writes nothing."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection, transaction
from django.http import HttpResponseBase
from django.test import Client

from dashboard.accounts.models import User
from dashboard.accounts.session_expiry import reset_sign_in_limits
from dashboard.alerts.models import Alert
from dashboard.api.read import auth
from dashboard.ingest import group_commit
from dashboard.projects.key_auth import clear_key_cache
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create, key_revoke
from tests.dashboard.access.belongings import addresses, belongings, filled, looked_at, wants
from tests.dashboard.access.matrix import (
    AS_VISITOR,
    COLUMNS,
    GONE,
    KEY,
    LINES,
    LOGIN,
    METHOD,
    NO,
    OK,
    SURE,
    expected_answers,
    line_of,
)
from tests.dashboard.conftest import sign_in

pytestmark = pytest.mark.timeout(1800)
LONG_AGO = 3600.0
NEVER = ("PUT", "PATCH", "DELETE")
A_FEW = ("visitor", "admin", "api")
"""Callers for methods that a URL does not support: these requests are refused before
authentication."""
ASKING = (
    ("viewer", "operator", "admin", "late"),
    ("visitor", "outsider", "neighbour", "staff", "closed"),
    ("ing", "api", "dep", "foreign", "revoked"),
)
HEADERS = {
    "Content-Security-Policy": "default-src 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
}
"""Headers of every answer, refusals included."""
REFUSALS = {401: KEY, 403: NO, 404: GONE, 405: METHOD}
NOTED = ("project_key", "cache_entry", "django_session")
"""Tables that a refused request may write: last use of a key, count of sign-in attempts, and the
session that waits for the sign-in."""


class Exchange:
    """One request: its answer and its database writes. The writes are rolled back."""

    def __init__(self, client: Client, method: str, path: str, body: str = "") -> None:
        self.written: list[str] = []
        cookies = copy.copy(client.cookies)
        with connection.execute_wrapper(self._note), transaction.atomic():
            answer = client.generic(method, path, body, FORM)
            if answer.streaming:
                list(answer)  # otherwise its query stays open
            self.answer = answer_word(answer)
            self.bare = [
                name for name, words in HEADERS.items() if words not in answer.headers.get(name, "")
            ]
            transaction.set_rollback(True)
        client.cookies = cookies
        clear_key_cache()
        auth.reset_read_rates()

    def _note(
        self, execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        if sql.split(None, 1)[0].upper() in ("INSERT", "UPDATE", "DELETE") and not any(
            f'"{table}"' in sql for table in NOTED
        ):
            self.written.append(sql)
        return execute(sql, params, many, context)


FORM = "application/x-www-form-urlencoded"


def answer_word(answer: HttpResponseBase) -> str:
    """The answer as a word of the access matrix."""
    led = answer.headers.get("Location", "")
    if answer.status_code == 302 and led.startswith(
        ("/accounts/login/", "/accounts/reauthenticate/")
    ):
        return LOGIN if led.startswith("/accounts/login/") else SURE
    return REFUSALS.get(
        answer.status_code, OK if answer.status_code < 500 else str(answer.status_code)
    )


@pytest.fixture
def guest(make_user: Callable[..., User], project: Project) -> User:
    return make_user("guest", project, Role.VIEWER)


@pytest.fixture
def ids(
    project: Project, user: User, guest: User, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """One row of everything in `project`. No other thread may use the database while the single
    transaction is rolled back again and again."""
    monkeypatch.setattr(group_commit, "_write_refusals", lambda: None)
    monkeypatch.setattr(connection, "close", lambda: None)
    key_create(project=project)
    logging.disable(logging.ERROR)  # hides thousands of refusals with tracebacks
    yield belongings(project, user, guest)
    # `disable` also clears the level cache of each logger.
    logging.disable(logging.NOTSET)


@pytest.fixture
def callers(
    project: Project,
    other_project: Project,
    user: User,
    guest: User,
    make_user: Callable[..., User],
) -> dict[str, Client]:
    """One client for each column of the access matrix."""

    def person(
        name: str, role: Role | None = None, where: Project = project, ago: float = 0.0
    ) -> Client:
        return sign_in(
            Client(), make_user(name, where if role else None, role or Role.VIEWER), ago=ago
        )

    def keyed(kind: str, where: Project = project, revoked: bool = False) -> Client:
        key, text = key_create(project=where, kind=kind)
        if revoked:
            key_revoke(key=key, actor=user)
        return Client(headers={"authorization": f"Bearer {text}"})

    made = {
        "visitor": Client(),
        "outsider": person("outsider"),
        "neighbour": person("neighbour", Role.ADMIN, other_project),
        "viewer": sign_in(Client(), guest),
        "operator": person("operator", Role.OPERATOR),
        "admin": sign_in(Client(), user),
        "late": person("late", Role.ADMIN, ago=LONG_AGO),
        "staff": person("staff"),
        **{kind: keyed(kind) for kind in ("ing", "api", "dep")},
        "foreign": keyed("api", other_project),
        "closed": person("closed", Role.ADMIN),
        "revoked": keyed("api", revoked=True),
    }
    User.objects.filter(username="staff").update(is_staff=True)
    User.objects.filter(username="closed").update(is_active=False)
    return made


def requests_of_matrix(ids: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, str]]]:
    """The name, the path and the matrix line of every URL; URLs that sign out or send reports come
    last."""
    for name, route in sorted(addresses(), key=lambda one: one[0] == "reports"):
        action = "disable" if "channel_id" in wants(route) else "acknowledge"
        path = filled(route, {**ids, "action": action, "object_id": looked_at(route)})
        query = "?a={}&b={}".format(*ids["a_and_b"]) if name == "comparison_read" else ""
        yield name, path + query, line_of(name) or {}


def test_every_url_has_a_line_every_line_has_a_url_and_every_caller_is_tried() -> None:
    assert sorted(who for group in ASKING for who in group) == sorted((*COLUMNS, *AS_VISITOR))
    names = {name for name, _ in addresses()}
    assert sorted(name for name in names if line_of(name) is None) == []
    assert sorted(name for name in LINES if not name.startswith("*") and name not in names) == []


@pytest.mark.parametrize("asking", ASKING, ids=("members", "others", "keys"))
def test_every_caller_gets_the_answer_of_the_matrix(
    ids: dict[str, Any], callers: dict[str, Client], asking: tuple[str, ...]
) -> None:
    wrong = []
    for name, path, line in requests_of_matrix(ids):
        for method in ("GET", "POST"):
            reset_sign_in_limits()
            for who, expected in expected_answers(line.get(method, "nobody")):
                if who not in asking or (method not in line and who not in A_FEW):
                    continue
                got = Exchange(
                    callers[who],
                    method,
                    path,
                    f"model={ids['model_id']}" if name == "guide_save" and method == "POST" else "",
                )
                if (
                    got.answer != expected
                    or got.bare
                    or (got.written and (expected != OK or method == "GET"))
                ):
                    wrong.append(
                        f"{name}: {method} by {who} gets {got.answer}, expected {expected}; "
                        f"written: {got.written}; without: {got.bare}"
                    )
        for method in NEVER:
            for who in set(A_FEW) & set(asking):
                got = Exchange(callers[who], method, path)
                # Form pages of allauth treat any method as GET or POST; nothing is written.
                if got.written or (
                    got.answer == OK
                    and dict(expected_answers(line.get("POST", "nobody")))[who] != OK
                ):
                    wrong.append(
                        f"{name}: {method} by {who} gets {got.answer}; written: {got.written}"
                    )
    assert not wrong, "\n" + "\n".join(wrong)


def test_an_id_of_another_project_does_not_exist(
    ids: dict[str, Any],
    callers: dict[str, Client],
    other_project: Project,
    make_user: Callable[..., User],
) -> None:
    stranger, member = (
        make_user("theirs", other_project, Role.ADMIN),
        make_user("their-guest", other_project, Role.VIEWER),
    )
    key_create(project=other_project)
    foreign = belongings(other_project, stranger, member)
    Alert.objects.filter(project=other_project, number=foreign["number"]).update(number=517)
    foreign["number"] = 517
    tried = 0
    for name, route in addresses():
        line = line_of(name) or {}
        for part in sorted(
            {part for part in wants(route) if part.endswith("_id") or part == "number"}
            - {"provider_id"}
        ):
            if name.startswith("admin:"):
                continue
            mixed = {
                **ids,
                part: foreign[part],
                "action": "disable" if part == "channel_id" else "acknowledge",
            }
            for method in line:
                for who in ("admin", "api") if line[method] == "readers" else ("admin",):
                    query = (
                        "?a={}&b={}".format(*ids["a_and_b"]) if name == "comparison_read" else ""
                    )
                    got = Exchange(callers[who], method, filled(route, mixed) + query)
                    assert (got.answer, got.written) == (GONE, []), (name, part, method, who)
                    tried += 1
    assert tried > 40


def test_a_cross_site_form_does_nothing(ids: dict[str, Any], user: User) -> None:
    lured = sign_in(Client(enforce_csrf_checks=True), user)
    for name, path, line in requests_of_matrix(ids):
        if "POST" in line and not line["POST"].endswith("keys"):
            got = Exchange(lured, "POST", path)
            assert (got.answer in (NO, GONE), got.written) == (True, []), (name, got.answer)

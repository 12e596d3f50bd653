"""Fixtures of all dashboard tests: a project with an administrator and a key, and reports stored
through the real service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import MAX_REPORTS, Request
from django.conf import settings
from django.contrib.auth.hashers import Argon2PasswordHasher
from django.test import Client, TransactionTestCase
from whitenoise.middleware import WhiteNoiseMiddleware as WhiteNoise

from dashboard.accounts.models import User
from dashboard.accounts.services import user_create
from dashboard.api.read.auth import reset_read_rates
from dashboard.common import clock
from dashboard.common.heartbeat import reset_fold_end
from dashboard.fleet.writers.cold_starts import clear_first_calls
from dashboard.fleet.writers.limits import clear_known_keys
from dashboard.ingest.batch import batch_read
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.intake_counters import drain_intake
from dashboard.ingest.refusal_counters import drain_refusals
from dashboard.ingest.services import reports_store
from dashboard.projects.key_auth import clear_key_cache
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create, member_add, project_create
from tests.dashboard import table_cleanup
from tests.dashboard.page_source import unwrap_response
from tests.dashboard.requests import request_make
from tests.flow.database_templates import use_template

PASSWORD = "correct horse battery staple"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Settings of the test database. On PostgreSQL a server thread keeps no connection after its
    response, because an open connection would prevent dropping the database."""
    database = settings.DATABASES["default"]
    database["CONN_MAX_AGE"] = 0
    use_template(database)


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Keeps the file that `use_template` copied on SQLite; the run's folder is removed anyway."""
    return bool(settings.DATABASES["default"]["ENGINE"].endswith("sqlite3"))


@pytest.fixture(autouse=True, scope="session")
def cheap_passwords() -> Iterator[None]:
    """Argon2 as in production, at its lowest cost: each test creates accounts, and at full cost
    each account took a quarter of a second of all cores."""
    with pytest.MonkeyPatch.context() as patch:
        for name, least in (("time_cost", 1), ("memory_cost", 8), ("parallelism", 1)):
            patch.setattr(Argon2PasswordHasher, name, least)
        yield


@pytest.fixture(autouse=True, scope="session")
def _tables_are_emptied_row_by_row() -> Iterator[None]:
    """Replaces the cleanup after a test that commits; see table_cleanup.py."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", table_cleanup.teardown)
        yield


@pytest.fixture(autouse=True, scope="session")
def _pages_are_read_without_line_breaks() -> Iterator[None]:
    """Removes template line breaks from pages: assertions quote text and tags regardless of where
    the template breaks a line."""
    ask = Client.request

    def request(client: Client, **environ: Any) -> Any:
        response = ask(client, **environ)
        unwrap_response(response)
        return response

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "request", request)
        yield


@pytest.fixture(autouse=True, scope="session")
def _static_files_are_listed_once() -> Iterator[None]:
    """Lists the static files for the first client only. Each client builds its middleware, and
    listing the files took 40 ms of it."""
    add, found = WhiteNoise.add_files_from_finders, dict[str, Any]()

    def reuse(self: Any) -> None:
        if not found:
            add(self)
            found.update(self.files)
        self.files.update(found)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WhiteNoise, "add_files_from_finders", reuse)
        yield


@pytest.fixture(autouse=True)
def _process_starts_clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """Resets the state that a process caches between tests. A test that posts reports is marked
    `django_db(transaction=True)`: another thread commits the reports, needs to see the rows of the
    test, and has to end before the database is emptied."""
    marker = request.node.get_closest_marker("django_db")
    if marker is not None:
        request.getfixturevalue("transactional_db" if marker.kwargs.get("transaction") else "db")
    clear_key_cache()
    clear_known_keys()
    clear_first_calls()
    reset_fold_end()
    reset_read_rates()
    yield
    COMMITTER.stop()
    drain_refusals()
    drain_intake()


@pytest.fixture
def make_user(db: None) -> Callable[..., User]:
    """`make_user("ada", project, Role.VIEWER)`; without a project the account has no membership."""

    def make(username: str, project: Project | None = None, role: Role = Role.VIEWER) -> User:
        user = user_create(username=username, password=PASSWORD)
        if project is not None:
            member_add(project=project, user=user, role=role)
        return user

    return make


@pytest.fixture
def make_project(db: None) -> Callable[[str], Project]:
    """`make_project("search")`."""
    return lambda slug: project_create(name=slug.title(), slug=slug)


@pytest.fixture
def project(make_project: Callable[[str], Project]) -> Project:
    """A project called `ranking`."""
    return make_project("ranking")


@pytest.fixture
def other_project(make_project: Callable[[str], Project]) -> Project:
    """A project with other members."""
    return make_project("somebody-elses")


@pytest.fixture
def user(make_user: Callable[..., User], project: Project) -> User:
    """An administrator of `project`."""
    return make_user("ada", project, Role.ADMIN)


def sign_in(client: Client, user: User, *, ago: float = 0.0) -> Client:
    """Signs in; the password was confirmed this number of seconds ago."""
    client.force_login(user)
    session = client.session
    session["account_authentication_methods"] = [
        {"method": "password", "at": time.time() - ago, "username": user.get_username()}
    ]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()
    return client


@pytest.fixture
def signed_in(client: Client, user: User) -> Client:
    """A browser with a session of `user`."""
    return sign_in(client, user)


@pytest.fixture
def ingest_key(project: Project) -> str:
    """The text of a key that sends reports to `project`."""
    return key_create(project=project, kind="ing", name="tests")[1]


@pytest.fixture
def api_key(project: Project) -> str:
    """The text of a key that reads `project`."""
    return key_create(project=project, kind="api", name="tests")[1]


@pytest.fixture
def make_request() -> Callable[..., Request]:
    """`make_request(model="ranker", version="1", minutes=3)`: one report a minute, the last one
    ending now; see requests.py."""

    def make(**wanted: Any) -> Request:
        wanted.setdefault("end", clock.unix())
        return request_make(**wanted)

    return make


@pytest.fixture
def store_reports(project: Project) -> Callable[..., list[tuple[int, int]]]:
    """`store_reports(request, ...)` stores wire requests in the inbox as the endpoint does; returns
    the acknowledged ranges."""

    def store(*requests: Request, project: Project = project) -> list[tuple[int, int]]:
        acked: list[tuple[int, int]] = []
        for request in requests:
            for start in range(0, len(request.reports), MAX_REPORTS):
                part = replace(request, reports=request.reports[start : start + MAX_REPORTS])
                batch = batch_read(text=dumps(part), project_id=project.pk, received=clock.unix())
                [stored] = reports_store([batch])
                assert not stored.rejected, stored.rejected
                acked.extend(stored.acked)
        return acked

    return store

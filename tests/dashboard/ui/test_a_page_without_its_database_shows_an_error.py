"""Unavailable database: pages answer 503 without a query, programs get JSON, and a programming
error stays a 500."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, ProgrammingError, connection
from django.test import Client


@contextmanager
def database_fails(error: Exception, *, on: str = "") -> Iterator[None]:
    def fail(execute: Any, sql: str, *rest: Any) -> Any:
        if on in sql:
            raise error
        return execute(sql, *rest)

    with connection.execute_wrapper(fail):
        yield


@pytest.mark.parametrize(
    "error", [OperationalError("lock timeout"), InterfaceError("connection is closed")]
)
@pytest.mark.parametrize("address", ["/p/ranking/", "/p/ranking/alerts/", "/"])
def test_a_page_answers_503_with_retry_after(
    signed_in: Client, error: Exception, address: str
) -> None:
    signed_in.raise_request_exception = False
    with database_fails(error):
        answer = signed_in.get(address)
    assert (
        answer.status_code == 503
        and int(answer["Retry-After"]) >= 1
        and answer["Cache-Control"] == "no-store"
    )
    assert "The database is unavailable" in answer.content.decode()
    assert "lock timeout" not in answer.content.decode()
    assert "default-src 'none'" in answer["Content-Security-Policy"]


def test_one_locked_table_makes_only_its_page_a_503(signed_in: Client) -> None:
    with database_fails(OperationalError("lock timeout"), on="alert"):
        assert signed_in.get("/p/ranking/alerts/").status_code == 503
    assert signed_in.get("/p/ranking/alerts/").status_code == 200


def test_programs_get_json(signed_in: Client) -> None:
    signed_in.raise_request_exception = False
    with database_fails(OperationalError("gone")):
        answer = signed_in.get("/p/ranking/models/1.json")
    assert answer.status_code == 503 and answer.json()["code"] == "busy" and answer["Retry-After"]


@pytest.mark.parametrize(
    "address", ["/invitations/x%0AERROR forged/", "/api/v1/projects/x%0AERROR forged/models"]
)
def test_an_address_cannot_inject_a_line_into_the_log(
    client: Client, api_key: str, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    client.raise_request_exception = False
    with database_fails(OperationalError("gone")):
        client.get(address, headers={"authorization": f"Bearer {api_key}"})
    assert any("the database failed" in line for line in caplog.messages)
    assert not [line for line in caplog.messages if "\n" in line]


def test_a_session_that_cannot_be_saved_is_a_503(client: Client, user: Any) -> None:
    client.raise_request_exception = False
    fields = {"login": user.username, "password": "correct horse battery staple"}
    with database_fails(OperationalError("read-only"), on="django_session"):
        assert client.post("/accounts/login/", fields).status_code == 503


def test_a_programming_error_is_a_500(signed_in: Client) -> None:
    signed_in.raise_request_exception = False
    with database_fails(ProgrammingError("no such column"), on="alert"):
        assert signed_in.get("/p/ranking/alerts/").status_code == 500

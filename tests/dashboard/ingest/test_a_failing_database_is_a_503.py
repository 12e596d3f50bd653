"""While the database cannot commit, no report is acknowledged, the answer has a Retry-After, and
the same report is accepted later."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest
from compilewatch.wire.messages import Request
from django.db import DatabaseError, connection
from django.test import RequestFactory

from dashboard.common.http import ApiErrorMiddleware
from dashboard.ingest.models import InboxRow
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


@contextmanager
def nobody_writes() -> Iterator[None]:
    """Another process holds the lock that the inbox needs."""
    database = connection.settings_dict
    if connection.vendor == "sqlite":
        with closing(sqlite3.connect(database["NAME"], isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            yield
            other.execute("ROLLBACK")
        return
    address: Any = {
        "host": database["HOST"],
        "port": database["PORT"],
        "user": database["USER"],
        "dbname": database["NAME"],
    }
    with psycopg.connect(**address) as other_session:
        other_session.execute("LOCK TABLE ingest_inbox")
        yield
        other_session.rollback()


def test_a_locked_inbox_is_busy_and_later_accepts_the_report(
    endpoint: Endpoint, make_request: Callable[..., Request]
) -> None:
    request = make_request(minutes=2)
    assert endpoint.report(make_request(instance=1)).status == 200
    with nobody_writes():
        answer = endpoint.report(request)
        assert answer.outcome == (503, "busy") and int(answer.headers["Retry-After"]) >= 1
    while endpoint.report(request).status == 503:  # requests that waited for the lock come first
        pass
    assert endpoint.report(request).json["acked"] == [[1, 1], [2, 2]]
    assert InboxRow.objects.count() == 3


def test_one_request_that_cannot_be_stored_does_not_affect_its_neighbours(
    project: Any, make_request: Callable[..., Request]
) -> None:
    from compilewatch.wire.codec import dumps

    from dashboard.ingest.batch import batch_read
    from dashboard.ingest.group_commit import PendingBatch, commit_group

    def waiting(project_id: int, instance: int) -> PendingBatch:
        request = make_request(instance=instance)
        return PendingBatch(
            batch_read(text=dumps(request), project_id=project_id, received=request.sent)
        )

    good, gone, also_good = waiting(project.pk, 1), waiting(987654, 2), waiting(project.pk, 3)
    commit_group([good, gone, also_good])
    assert good.result(0).acked == also_good.result(0).acked == [(1, 1)]
    with pytest.raises(DatabaseError):
        gone.result(0)
    assert InboxRow.objects.count() == 2


def test_any_view_under_api_answers_a_failing_database_with_a_503() -> None:
    answer = ApiErrorMiddleware(lambda request: None).process_exception(
        RequestFactory().get("/api/v1/x"), DatabaseError("gone")
    )  # type: ignore[arg-type,return-value]
    assert answer is not None and answer.status_code == 503 and answer["Retry-After"]
    assert (
        ApiErrorMiddleware(lambda request: None).process_exception(
            RequestFactory().get("/page"), DatabaseError("gone")
        )
        is None
    )  # type: ignore[arg-type,return-value]

"""An unexpected error costs the requests of one group a second attempt, and never ends the
committing thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from compilewatch.wire.messages import Request
from django.test import Client

from dashboard.ingest import group_commit
from dashboard.ingest.group_commit import COMMITTER, MAX_FAILURES_IN_A_ROW
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)
PLACES = ("record_commit", "_write_refusals", "_write_intake")


@pytest.fixture(autouse=True)
def well() -> Iterator[None]:
    yield
    COMMITTER.stop()
    COMMITTER.failures_in_a_row = 0


def fails(
    monkeypatch: pytest.MonkeyPatch, place: str, error: BaseException, times: int
) -> list[int]:
    """Makes the function raise the error this number of times and then work."""
    works, seen = getattr(group_commit, place), [0]

    def sometimes(*given: Any) -> Any:
        seen[0] += 1
        if seen[0] <= times:
            raise error
        return works(*given)

    monkeypatch.setattr(group_commit, place, sometimes)
    return seen


@pytest.mark.parametrize(
    "error",
    [KeyError("lost"), MemoryError(), SystemExit(1)],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("place", PLACES)
def test_the_next_reports_are_committed(
    place: str,
    error: BaseException,
    endpoint: Endpoint,
    make_request: Callable[..., Request],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    COMMITTER.stop()
    monkeypatch.setattr(COMMITTER, "_counts_due", 0.0)
    seen = fails(monkeypatch, place, error, times=1)
    endpoint.report(make_request(instance=1))
    deadline = time.monotonic() + 10
    while not seen[0] and time.monotonic() < deadline:
        time.sleep(0.05)
    assert seen[0], "it failed"
    assert endpoint.report(make_request(instance=2)).status == 200
    assert endpoint.report(make_request(instance=1)).status == 200


def test_pending_requests_are_answered_immediately(
    endpoint: Endpoint, make_request: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    fails(monkeypatch, "commit_group", KeyError("lost"), times=1)
    began = time.monotonic()
    answer = endpoint.report(make_request(instance=1))
    assert (
        answer.outcome == (503, "busy") and time.monotonic() - began < group_commit.COMMIT_TIMEOUT_S
    )
    assert endpoint.report(make_request(instance=1)).status == 200


def test_a_dead_thread_is_replaced(
    endpoint: Endpoint, make_request: Callable[..., Request]
) -> None:
    COMMITTER.start()
    dead = COMMITTER._thread
    assert dead is not None
    COMMITTER._queue.put(None)  # the thread ends silently, as after an error in the interpreter
    dead.join(10)
    assert not dead.is_alive()
    assert endpoint.report(make_request(instance=1)).status == 200


def test_readiness_checks_the_committer(
    client: Client,
    endpoint: Endpoint,
    make_request: Callable[..., Request],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fails(monkeypatch, "commit_group", KeyError("lost"), times=MAX_FAILURES_IN_A_ROW)
    for _ in range(MAX_FAILURES_IN_A_ROW):
        assert client.get("/readyz").status_code == 200
        assert endpoint.report(make_request(instance=1)).status == 503
    answer = client.get("/readyz")
    assert (
        answer.status_code == 503
        and answer.json()["checks"]["committer"]["value"] == MAX_FAILURES_IN_A_ROW
    )
    assert endpoint.report(make_request(instance=1)).status == 200
    assert client.get("/readyz").json()["checks"]["committer"]["ok"]

"""A project above its rate gets 429, a process with too many requests in progress answers 503; both
have a Retry-After and count as refusals."""

import time
from collections.abc import Callable

import pytest
from compilewatch.wire.messages import Request

from dashboard.ingest import endpoint as front
from dashboard.ingest.admission import (
    MAX_REQUESTS_WHILE_STALLED,
    STALLED_AFTER_S,
    Admission,
    TokenBucket,
)
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.models import InboxRow
from dashboard.projects.key_auth import clear_key_cache
from dashboard.projects.models import Project
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_project_above_its_rate_gets_429_and_others_do_not(
    endpoint: Endpoint, make_request: Callable[..., Request], project: Project
) -> None:
    Project.objects.filter(pk=project.pk).update(settings={"reports_per_second": 0.01})
    clear_key_cache()
    assert endpoint.report(make_request(minutes=5)).status == 200
    answer = endpoint.report(make_request(first_seq=6))
    assert answer.outcome == (429, "too_many") and int(answer.headers["Retry-After"]) > 1
    assert InboxRow.objects.count() == 5


def test_one_request_too_many_is_refused(
    endpoint: Endpoint, make_request: Callable[..., Request], monkeypatch: pytest.MonkeyPatch
) -> None:
    admission = Admission(limit=1)
    monkeypatch.setattr(front, "ADMISSION", admission)
    with admission:
        answer = endpoint.report(make_request())
    assert answer.outcome == (503, "busy") and 5 <= int(answer.headers["Retry-After"]) <= 30
    assert endpoint.report(make_request()).status == 200


def test_a_slot_is_released_when_a_request_fails() -> None:
    admission = Admission(limit=1)
    for _ in range(3):
        with pytest.raises(RefusalError, match="not JSON"), admission:
            raise RefusalError("not_json", "not JSON")


def test_a_bucket_refills() -> None:
    bucket = TokenBucket(rate=1e6)
    bucket.charge(10**6)
    assert bucket.wait() == 0.0
    slow = TokenBucket(rate=1e-3)
    slow.charge(1)
    assert slow.wait() > 0


def test_few_requests_may_wait_while_commits_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    admission = Admission()
    for _ in range(MAX_REQUESTS_WHILE_STALLED):
        admission.__enter__()
    admission.on_commit_start()
    with admission:
        pass  # a commit that has just started is no stall
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + STALLED_AFTER_S + 1)
    with pytest.raises(RefusalError) as refused, admission:
        pass
    assert refused.value.code == "busy"
    admission.on_commit_end()
    with admission:
        pass

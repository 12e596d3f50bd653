"""Every refusal is counted by project, hour and code, without a database write for each."""

import json
from collections.abc import Callable

import pytest
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Request
from django.db import DatabaseError

from dashboard.ingest import group_commit
from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.models import Refusal
from dashboard.ingest.refusal_counters import drain_refusals, record_refusal
from dashboard.ingest.selectors import count_refusals_by_code
from dashboard.projects.models import Project
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def test_refusals_are_counted_by_code_of_request_and_report(
    endpoint: Endpoint, make_request: Callable[..., Request], project: Project
) -> None:
    for _ in range(3):
        endpoint.send_json("[]")
    endpoint.send(b"", headers={"Authorization": "Bearer nonsense"})
    data = encode(make_request(minutes=2))
    data["reports"][0]["seq"] = [0, 0]
    endpoint.send_json(json.dumps(data))
    COMMITTER.stop()
    assert count_refusals_by_code(project=project) == {"bad_request": 3, "invalid_seq": 1}
    assert Refusal.objects.get(project_id=0).code == "bad_key"


def test_counts_that_could_not_be_written_are_kept(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(counts: object) -> None:
        raise DatabaseError("gone")

    record_refusal(project_id=project.pk, code="too_old", count=2)
    with monkeypatch.context() as patched:
        patched.setattr(group_commit, "refusals_write", failing)
        group_commit._write_refusals()
    record_refusal(project_id=project.pk, code="too_old")
    group_commit._write_refusals()
    group_commit._write_refusals()
    assert count_refusals_by_code(project=project) == {"too_old": 3}
    assert not drain_refusals()

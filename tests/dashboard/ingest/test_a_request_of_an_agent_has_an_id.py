"""Requests to the report endpoint have a request id like all requests, and refusals are logged once
a minute per kind."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from compilewatch.wire.messages import Request

from dashboard.common.log_throttle import LogThrottle
from dashboard.ingest import endpoint as reports
from dashboard.projects.models import Project
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_id_is_generated_or_comes_from_the_proxy(
    endpoint: Endpoint, make_request: Callable[..., Request]
) -> None:
    assert re.fullmatch("[0-9a-f]{16}", endpoint.report(make_request()).headers["X-Request-ID"])
    given = endpoint.send(b"{}", headers={"Authorization": None, "X-Request-ID": "of-the-proxy-1"})
    assert (given.status, given.headers["X-Request-ID"]) == (401, "of-the-proxy-1")
    odd = endpoint.send(b"{}", headers={"Authorization": None, "X-Request-ID": "no id at all"})
    assert re.fullmatch("[0-9a-f]{16}", odd.headers["X-Request-ID"])


def test_a_refusal_is_logged_once_a_minute_per_kind(
    endpoint: Endpoint,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(reports, "_log_throttle", LogThrottle())
    caplog.set_level("INFO", logger="dashboard")
    for _ in range(3):
        assert endpoint.send(b"{}", headers={"Authorization": "Bearer nothing"}).status == 401
        assert endpoint.send(b"not gzip").status == 400
    told = [line for line in caplog.messages if "was refused" in line]
    assert [line.split(" was refused")[0] for line in told] == [
        "a request with an unknown key",
        f"a request of project {project.pk}",
    ]
    assert "bad_key: The key is missing" in told[0]

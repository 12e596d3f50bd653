"""Quota of waiting reports: above the quota a project gets 429 while other projects do not, and the
fold makes room again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.messages import Request

from dashboard.fleet.fold_service import fold_all
from dashboard.ingest import admission
from dashboard.ingest.models import InboxRow
from dashboard.projects.key_auth import clear_key_cache
from dashboard.projects.models import Project
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]


@pytest.fixture(autouse=True)
def _quota(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quota of five waiting reports, counted on every request."""
    Project.objects.filter(pk=project.pk).update(settings={"reports_waiting": 5})
    clear_key_cache()
    monkeypatch.setattr(admission, "COUNT_INTERVAL_S", 0.0)
    monkeypatch.setattr(admission, "_buckets", {})


def test_waiting_reports_are_limited_and_the_fold_makes_room(
    endpoint: Endpoint, make_request: Make
) -> None:
    assert endpoint.report(make_request(minutes=5)).status == 200
    refused = endpoint.report(make_request(first_seq=6))
    assert refused.outcome == (429, "too_many") and 15 <= int(refused.headers["Retry-After"]) <= 45
    assert "5 or more reports of the project are queued" in refused.json["detail"]
    assert InboxRow.objects.count() == 5
    fold_all()
    assert endpoint.report(make_request(first_seq=6)).status == 200


def test_reports_of_others_do_not_count(
    endpoint: Endpoint,
    make_request: Make,
    other_project: Project,
    store_reports: Callable[..., object],
) -> None:
    store_reports(make_request(minutes=9), project=other_project)
    assert endpoint.report(make_request(minutes=2)).status == 200


def test_reports_accepted_between_two_counts_are_included(
    endpoint: Endpoint, make_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "COUNT_INTERVAL_S", 3600.0)
    assert endpoint.report(make_request(minutes=5)).status == 200
    assert endpoint.report(make_request(first_seq=6)).outcome == (429, "too_many")

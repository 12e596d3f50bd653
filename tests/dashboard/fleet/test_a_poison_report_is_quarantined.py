"""A report that cannot be folded is quarantined with its error while the other reports are counted,
and can be restored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.messages import Request
from django.core.management import call_command

from dashboard.fleet.fold.facts import Facts
from dashboard.fleet.fold.report_window import minute_of_end
from dashboard.fleet.fold_service import fold_all, poison_refold
from dashboard.fleet.models import RegionMinute
from dashboard.fleet.write_facts import facts_store
from dashboard.ingest.models import FoldAttempt, InboxRow, PoisonReport
from tests.dashboard.fleet.totals import assert_all_counted

MakeRequest = Callable[..., Request]
Store = Callable[..., object]

pytestmark = pytest.mark.django_db


def spoil(seq: int) -> None:
    """Damages the stored text of a report, as a faulty disk or an older release could."""
    assert (
        InboxRow.objects.filter(seq_first=seq).update(report=b'{"seq": [1, 1], "window": "never"}')
        == 1
    )


def test_an_unreadable_report_is_quarantined_and_the_others_are_counted(
    make_request: MakeRequest, store_reports: Store
) -> None:
    request = make_request(minutes=20)
    store_reports(request)
    spoil(7)
    assert fold_all() == 20
    [poison] = PoisonReport.objects.all()
    assert poison.seq_first == 7
    assert "window" in poison.error
    request.reports = [report for report in request.reports if report.seq[0] != 7]
    assert_all_counted([request])
    assert not InboxRow.objects.exists()
    assert not FoldAttempt.objects.exists()


def test_a_report_that_the_database_refuses_is_found_by_halving(
    make_request: MakeRequest, store_reports: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = make_request(minutes=20)
    store_reports(request)
    real, tries = facts_store, list[int]()
    bad = minute_of_end(request.reports[12].window[1])

    def refuse(facts: Facts, **kwargs: Any) -> None:
        if any(minute == bad for _, minute in facts.process_minutes):
            tries.append(len(facts.process_minutes))
            raise ValueError("this one cannot be stored")
        real(facts, **kwargs)

    monkeypatch.setattr("dashboard.fleet.fold_service.facts_store", refuse)
    assert fold_all() == 20
    assert tries[-3:] == [1, 1, 1]
    assert tries[0] == 20
    [poison] = PoisonReport.objects.all()
    assert (poison.seq_first, poison.error) == (13, "ValueError: this one cannot be stored")
    assert RegionMinute.objects.count() == 19
    monkeypatch.setattr("dashboard.fleet.fold_service.facts_store", real)
    call_command("refold", str(poison.pk), verbosity=0)
    assert fold_all() == 1
    assert_all_counted([request])
    assert not PoisonReport.objects.exists()
    assert not FoldAttempt.objects.exists()


def test_refold_restores_all_quarantined_reports(
    make_request: MakeRequest, store_reports: Store
) -> None:
    store_reports(make_request(minutes=3))
    spoil(1)
    spoil(2)
    fold_all()
    assert PoisonReport.objects.count() == 2
    assert poison_refold() == 2
    assert (PoisonReport.objects.count(), InboxRow.objects.count()) == (0, 2)

"""A range of sequence numbers must fit into the duration of its window; otherwise it would
acknowledge later reports that are not stored."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.messages import Report, Request

from dashboard.ingest.models import InboxRow
from dashboard.ingest.numbering import derive_numbers
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]


def ranged(request: Request, first: int, last: int) -> Request:
    """The request with one report that claims these numbers."""
    report: Report = request.reports[0]
    return replace(request, reports=[replace(report, seq=(first, last))])


@pytest.mark.parametrize("last", [1 << 53, 10**12, 5000])
def test_a_range_that_is_too_long_is_refused_and_later_windows_are_stored(
    endpoint: Endpoint, make_request: Make, last: int
) -> None:
    request = make_request()
    assert endpoint.report(request).json["acked"] == [[1, 1]]

    answer = endpoint.report(ranged(request, 2, last)).json
    later = endpoint.report(ranged(request, 2, 2)).json

    assert [(one["seq"], one["code"]) for one in answer.get("rejected", [])] == [
        ([2, last], "invalid_seq")
    ]
    assert later.get("rejected", []) == []
    assert InboxRow.objects.count() == 2


def test_a_window_that_starts_in_1970_permits_no_longer_range(
    endpoint: Endpoint, make_request: Make
) -> None:
    request = make_request()
    report = request.reports[0]
    long = replace(
        request, reports=[replace(report, seq=(2, 10**12), window=(0.0, report.window[1]))]
    )
    assert [one["code"] for one in endpoint.report(long).json.get("rejected", [])] == [
        "invalid_seq"
    ]


def test_merged_windows_and_numbers_derived_from_time_are_stored(
    endpoint: Endpoint, make_request: Make
) -> None:
    request = make_request()
    start, end = request.reports[0].window
    for first, last in (
        (1, 700),
        derive_numbers(int(start * 1_000_000) * 1000, int(end * 1_000_000) * 1000),
    ):
        answer = endpoint.report(ranged(request, first, last)).json
        assert (answer.get("rejected", []), [first, last] in answer["acked"]) == ([], True)

"""A repeated report is acknowledged; a different report under the same range is refused, counted
and named."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Request
from hypothesis import given
from hypothesis import strategies as st

from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.models import InboxRow, Sender
from dashboard.ingest.recent_digests import (
    MAX_RECENT_REPORTS,
    ReportDigest,
    digest_report,
    pack_recent,
    unpack_recent,
)
from dashboard.ingest.selectors import count_refusals_by_code
from dashboard.ingest.sequence_ranges import COVERED, NEW, RANGE_CONFLICT, Coverage
from dashboard.projects.models import Project
from tests.dashboard.ingest.conftest import Endpoint

Make = Callable[..., Request]


def window(number: int, text: str = "", late: float = 0.0) -> ReportDigest:
    return digest_report(
        (number, number), f"{number} {text}".encode(), 1000.0 + 10.0 * number + late
    )


def stored(count: int) -> Coverage:
    coverage = Coverage()
    for number in range(1, count + 1):
        assert coverage.take(window(number)) == NEW
    return coverage


@pytest.mark.parametrize("count", [1, MAX_RECENT_REPORTS, 5 * MAX_RECENT_REPORTS])
def test_a_repeat_is_acknowledged_and_a_different_report_is_a_conflict(count: int) -> None:
    coverage = stored(count)
    assert [coverage.take(window(number)) for number in range(1, count + 1)] == [COVERED] * count
    assert coverage.take(window(count, "of a second process")) == RANGE_CONFLICT


def test_a_copy_that_wakes_up_long_after_the_newest_reports_is_a_conflict() -> None:
    coverage = stored(400)
    assert coverage.take(window(30, "of a copy", late=3700.0)) == RANGE_CONFLICT


def test_a_part_of_a_stored_range_is_a_different_report() -> None:
    coverage = Coverage()
    assert coverage.take(digest_report((1, 4), b"merged", 1040.0)) == NEW
    assert coverage.take(window(3)) == RANGE_CONFLICT


def test_reports_stored_by_an_earlier_release_count_as_repeats() -> None:
    coverage = Coverage(ranges=[(1, 20)])
    assert coverage.take(window(20, "unknown")) == COVERED
    coverage.take(window(21))
    coverage.add((22, 25))
    coverage.take(window(26))
    assert [coverage.take(window(number, "unknown")) for number in (20, 23, 25)] == [COVERED] * 3


@given(st.lists(st.integers(1, 60), min_size=1, max_size=80))
def test_a_repeat_is_never_a_conflict_in_any_order_of_reports(numbers: list[int]) -> None:
    coverage, before = Coverage(), set[int]()
    for number in numbers:
        coverage = Coverage.of(
            coverage.ranges,
            coverage.closed,
            coverage.missing,
            unpack_recent(pack_recent(coverage.recent)),
        )
        assert coverage.take(window(number)) == (COVERED if number in before else NEW)
        before.add(number)


@pytest.mark.django_db(transaction=True)
def test_the_endpoint_refuses_and_counts_conflicts(
    endpoint: Endpoint, make_request: Make, project: Project
) -> None:
    data = encode(make_request(minutes=3))
    first = endpoint.send_json(json.dumps(data)).json
    assert endpoint.send_json(json.dumps(data)).json == first
    data["reports"][1]["losses"] = {"spool_errors": 7}
    answer = endpoint.send_json(json.dumps(data)).json
    seq = data["reports"][1]["seq"]
    assert [refused["seq"] for refused in answer["rejected"]] == [seq]
    assert answer["rejected"][0]["code"] == RANGE_CONFLICT
    assert "a second process has the same instance id" in answer["rejected"][0]["detail"]
    COMMITTER.stop()
    assert count_refusals_by_code(project=project) == {RANGE_CONFLICT: 1}
    assert InboxRow.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_the_number_of_digests_of_a_sender_is_limited(
    endpoint: Endpoint, make_request: Make
) -> None:
    for first in (1, MAX_RECENT_REPORTS + 1, 2 * MAX_RECENT_REPORTS + 1):
        data = encode(make_request(minutes=MAX_RECENT_REPORTS))
        for place, report in enumerate(data["reports"]):
            report["seq"] = [first + place, first + place]
        endpoint.send_json(json.dumps(data))
    sender = Sender.objects.get()
    assert sender.ranges == [[1, 3 * MAX_RECENT_REPORTS]]
    assert [one.last for one in unpack_recent(sender.recent)] == list(
        range(2 * MAX_RECENT_REPORTS + 1, 3 * MAX_RECENT_REPORTS + 1)
    )

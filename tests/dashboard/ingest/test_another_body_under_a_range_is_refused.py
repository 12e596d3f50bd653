"""A report that is sent again is acknowledged; another one under the same numbers is refused and counted."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest
from compilewatch.wire.report import Losses, Request

from dashboard.ingest.committer import COMMITTER
from dashboard.ingest.digests import MAX_BYTES
from dashboard.ingest.models import InboxRow, Refusal, Sender
from tests.dashboard.ingest.conftest import Answer, Endpoint

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]


def codes(answer: Answer) -> list[tuple[list[int], str]]:
    return [(rejected["seq"], rejected["code"]) for rejected in answer.json.get("rejected", [])]


def another(request: Request, place: int = 0) -> Request:
    """The request with another body in one of its reports."""
    report = request.reports[place]
    request.reports[place] = replace(report, losses=Losses(internal_errors=1))
    return request


def test_another_body_is_refused_and_counted(endpoint: Endpoint, make_request: Make) -> None:
    request = make_request(minutes=3)
    endpoint.report(request)
    answer = endpoint.report(another(request, 1))
    assert answer.json["acked"] == [[1, 1], [3, 3]]
    assert codes(answer) == [([2, 2], "range_conflict")]
    assert InboxRow.objects.count() == 3
    COMMITTER.stop()
    assert [(row.code, row.count) for row in Refusal.objects.all()] == [("range_conflict", 1)]


def test_a_range_that_an_earlier_release_stored_is_acknowledged(endpoint: Endpoint, make_request: Make) -> None:
    endpoint.report(make_request(minutes=2))
    Sender.objects.update(digests=None)
    assert endpoint.report(another(make_request(minutes=2))).json["acked"] == [[1, 1], [2, 2]]
    endpoint.report(make_request(first_seq=3))
    assert codes(endpoint.report(another(make_request(first_seq=3)))) == [([3, 3], "range_conflict")]


def test_a_sender_keeps_the_digests_of_32_ranges(endpoint: Endpoint, make_request: Make) -> None:
    for first in range(1, 101, 20):
        endpoint.report(make_request(minutes=20, first_seq=first))
    assert len(bytes(Sender.objects.get().digests or b"")) == MAX_BYTES
    assert codes(endpoint.report(another(make_request(first_seq=69)))) == [([69, 69], "range_conflict")]
    assert endpoint.report(another(make_request(first_seq=68))).json["acked"] == [[68, 68]]


@pytest.mark.parametrize("seed", range(5))
def test_repeats_in_any_order_are_acknowledged(endpoint: Endpoint, make_request: Make, seed: int) -> None:
    chance = random.Random(seed)
    requests, first = [], 1
    while first < 60:
        width = chance.randint(1, 4)
        last = first + width - 1
        requests.append(make_request(first_seq=first, change=lambda report, ends=(first, last): setattr(report, "seq", ends)))
        first = last + 1
    sent = [request for request in requests for _ in range(chance.randint(1, 4))]
    chance.shuffle(sent)
    for request in sent:
        answer = endpoint.report(request)
        assert answer.json["acked"] == [list(request.reports[0].seq)] and not codes(answer)
    assert InboxRow.objects.count() == len(requests)
    assert Sender.objects.get().ranges == [[1, first - 1]]

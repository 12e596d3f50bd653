"""Each acknowledged report is stored once, with its range, its shard and its original text."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from compilewatch.wire.codec import dumps, encode, loads
from compilewatch.wire.messages import Report, Request

from dashboard.ingest.batch import compute_shard, report_read
from dashboard.ingest.models import InboxRow, Sender
from dashboard.projects.models import Project
from tests.dashboard.ingest.conftest import Endpoint
from tests.environment import DATABASE

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]


def test_the_answer_names_the_ranges_and_the_next_number(
    endpoint: Endpoint, make_request: Make
) -> None:
    answer = endpoint.report(make_request(minutes=3))
    assert answer.status == 200
    assert answer.json == {
        "cw": 1,
        "acked": [[1, 1], [2, 2], [3, 3]],
        "next_seq": 4,
        "commands": [],
    }
    assert answer.headers["Cache-Control"] == "no-store"


def test_a_row_contains_the_unchanged_report(
    endpoint: Endpoint, make_request: Make, project: Project
) -> None:
    request = make_request(model="ranker", version="7")
    endpoint.report(request)
    row = InboxRow.objects.get()
    assert (row.project_id, row.instance_id, row.seq_first, row.seq_last) == (
        project.pk,
        request.instance.id,
        1,
        1,
    )
    # SQLite has one folder, so that a shard for each version would only lengthen the work.
    assert row.shard == (
        compute_shard(project.pk, "ranker", "7") if DATABASE == "postgresql" else 0
    )
    assert bytes(row.report) == dumps(request.reports[0])
    assert bytes(row.identity) == dumps(request.instance)
    assert report_read(bytes(row.report)) == loads(Report, bytes(row.report)) == request.reports[0]


def test_a_repeat_is_acknowledged_again_and_stored_once(
    endpoint: Endpoint, make_request: Make
) -> None:
    request = make_request(minutes=2)
    first, second = endpoint.report(request), endpoint.report(request)
    assert first.json == second.json
    assert InboxRow.objects.count() == 2


def test_ten_senders_of_the_same_report_at_once_leave_one_row(
    endpoint: Endpoint, make_request: Make
) -> None:
    request = make_request(minutes=1)
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: endpoint.report(request), range(50)))
    assert {answer.status for answer in answers} == {200}
    assert all(answer.json["acked"] == [[1, 1]] for answer in answers)
    assert InboxRow.objects.count() == 1


def test_many_instances_at_once_lose_nothing(endpoint: Endpoint, make_request: Make) -> None:
    requests = [
        make_request(instance=instance, first_seq=1 + 2 * part, minutes=2)
        for instance in range(8)
        for part in range(4)
    ]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(endpoint.report, requests))
    assert all(len(answer.json["acked"]) == 2 for answer in answers)
    assert InboxRow.objects.count() == 64
    assert [sender.ranges for sender in Sender.objects.all()] == [[[1, 8]]] * 8


def test_a_merged_window_is_one_row_with_its_range(endpoint: Endpoint, make_request: Make) -> None:
    answer = endpoint.report(make_request(change=lambda report: setattr(report, "seq", (1, 17))))
    assert answer.json["acked"] == [[1, 17]] and answer.json["next_seq"] == 18
    part = endpoint.report(make_request(first_seq=9)).json
    assert (part["acked"], [refused["code"] for refused in part["rejected"]]) == (
        [],
        ["range_conflict"],
    )
    assert InboxRow.objects.count() == 1


def test_a_part_of_a_known_range_is_refused_and_the_rest_is_stored(
    endpoint: Endpoint, make_request: Make
) -> None:
    endpoint.report(make_request(first_seq=5))
    request = make_request(minutes=2, first_seq=6)
    request.reports[0].seq = (4, 5)
    answer = endpoint.report(request)
    assert answer.json["acked"] == [[7, 7]]
    assert [(rejected["seq"], rejected["code"]) for rejected in answer.json["rejected"]] == [
        ([4, 5], "partial_overlap")
    ]


def test_a_request_without_reports_asks_for_the_next_number(
    endpoint: Endpoint, make_request: Make
) -> None:
    assert endpoint.report(make_request(minutes=0)).json == {
        "cw": 1,
        "acked": [],
        "next_seq": 1,
        "commands": [],
    }
    assert not Sender.objects.exists()
    endpoint.report(make_request(minutes=3))
    assert endpoint.report(make_request(minutes=0)).json["next_seq"] == 4


def test_the_same_instance_in_another_project_is_another_sender(
    endpoint: Endpoint,
    make_request: Make,
    other_project: Project,
    store_reports: Callable[..., list[tuple[int, int]]],
) -> None:
    request = make_request(minutes=2)
    store_reports(request, project=other_project)
    assert endpoint.report(request).json["acked"] == [[1, 1], [2, 2]]
    assert (
        InboxRow.objects.filter(project=other_project).count()
        == InboxRow.objects.exclude(project=other_project).count()
        == 2
    )


def test_the_clock_offset_of_the_request_is_stored(endpoint: Endpoint, make_request: Make) -> None:
    request = make_request()
    request.sent -= 3600
    request.reports[0].window = (request.sent - 10, request.sent)
    assert endpoint.report(request).json["acked"] == [[1, 1]]
    assert round(InboxRow.objects.get().clock_offset / 3600) == 1
    assert round(Sender.objects.get().clock_offset / 3600) == 1


def test_text_is_cut_at_the_limits_of_the_wire(endpoint: Endpoint, make_request: Make) -> None:
    request = make_request(version="v" * 10_000)
    data = encode(request)
    data["instance"]["version"] = "v" * 10_000
    data["reports"][0]["regions"][0]["name"] = "n" * 5_000
    import json

    assert endpoint.send_json(json.dumps(data)).status == 200
    row = InboxRow.objects.get()
    assert len(report_read(bytes(row.report)).regions[0].name) == 512
    assert len(bytes(row.identity)) < 2_000

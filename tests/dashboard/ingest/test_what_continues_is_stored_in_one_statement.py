"""PostgreSQL stores reports that continue their sender's newest range in one statement; any other
sequence leaves the same rows."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Request
from django.db import connection
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dashboard.ingest.batch import Batch, batch_read
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.group_commit import PendingBatch, commit_group
from dashboard.ingest.models import InboxRow, Sender
from dashboard.ingest.sequence_ranges import Coverage
from dashboard.ingest.services import reports_append
from dashboard.projects.models import Project

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., Request]

RANGES = st.lists(
    st.tuples(st.integers(1, 12), st.integers(0, 2)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    min_size=1,
    max_size=3,
)
GROUPS = st.lists(
    st.lists(st.tuples(st.integers(0, 2), RANGES), min_size=1, max_size=4), min_size=1, max_size=5
)


def batch_of(
    make_request: Make, project: Project, instance: int, ranges: list[tuple[int, int]]
) -> Batch:
    """A batch whose reports have these ranges."""
    request = make_request(instance=instance, minutes=len(ranges))
    for report, seq in zip(request.reports, ranges, strict=True):
        report.seq = seq
    return batch_read(text=dumps(request), project_id=project.pk, received=request.sent)


@given(groups=GROUPS)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_groups_of_ranges_are_stored_as_the_range_arithmetic_predicts(
    groups: list, make_request: Make, project: Project
) -> None:  # type: ignore[type-arg]
    InboxRow.objects.all().delete()
    Sender.objects.all().delete()
    acked: dict[int, set[tuple[int, int]]] = {0: set(), 1: set(), 2: set()}
    for group in groups:
        waiting = [
            (instance, PendingBatch(batch_of(make_request, project, instance, ranges)))
            for instance, ranges in group
        ]
        commit_group([each for _, each in waiting])
        for instance, each in waiting:
            acked[instance].update(each.result(0).acked)
    for instance, told in acked.items():
        rows = list(
            InboxRow.objects.filter(instance_id=f"{instance:026d}").values_list(
                "seq_first", "seq_last"
            )
        )
        numbers = [number for first, last in rows for number in range(first, last + 1)]
        assert len(numbers) == len(set(numbers)), "a number is stored twice"
        assert {number for first, last in told for number in range(first, last + 1)} == set(numbers)
        again = Coverage()
        for row in sorted(rows):
            again.add(row)
        sender = Sender.objects.filter(instance_id=f"{instance:026d}").first()
        assert [tuple(pair) for pair in sender.ranges] == again.ranges if sender else not rows


def test_only_continuing_ranges_are_appended(make_request: Make, project: Project) -> None:
    first = batch_of(make_request, project, 0, [(1, 1), (2, 4)])
    gap = batch_of(make_request, project, 1, [(1, 1), (3, 3)])
    same_again = batch_of(make_request, project, 0, [(5, 5)])
    found = reports_append([first, gap, same_again])
    if connection.vendor != "postgresql":
        assert found == [None, None, None]
        return
    assert found[0] is not None and (found[0].acked, found[0].next_seq) == ([(1, 1), (2, 4)], 5)
    assert found[1:] == [None, None], "a gap, and a second batch of one sender, take the other way"
    assert reports_append([batch_of(make_request, project, 0, [(4, 5)])]) == [None], (
        "an overlap does too"
    )
    assert reports_append([batch_of(make_request, project, 0, [(5, 5)])])[0] is not None
    assert Sender.objects.get().ranges == [[1, 5]]


def test_a_commit_is_durable_despite_the_setting_of_the_server(
    make_request: Make, project: Project
) -> None:
    if connection.vendor != "postgresql":
        return
    with connection.cursor() as cursor:
        cursor.execute("SET synchronous_commit = off")
        reports_append([batch_of(make_request, project, 0, [(1, 1)])])
        cursor.execute("SHOW synchronous_commit")
        assert cursor.fetchone() == ("on",)
    connection.close()


def test_a_request_that_timed_out_is_not_stored_later(make_request: Make, project: Project) -> None:
    waiting = PendingBatch(batch_of(make_request, project, 0, [(1, 1)]))
    with pytest.raises(RefusalError, match="too slow"):
        waiting.result(0.01)
    assert waiting.given_up


@pytest.mark.postgresql_only
def test_the_statement_is_planned_once_per_connection(make_request: Make, project: Project) -> None:
    for seq in (1, 2, 3):
        assert reports_append([batch_of(make_request, project, 0, [(seq, seq)])])[0] is not None
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT generic_plans + custom_plans FROM pg_prepared_statements WHERE "
            "statement LIKE '%%INTO ingest_inbox%%'"
        )
        assert cursor.fetchall() == [(3,)]

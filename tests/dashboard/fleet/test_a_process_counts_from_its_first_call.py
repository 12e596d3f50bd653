"""A process counts as an instance from its first call or compilation; parents and data workers
never count, in any order of reports."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from compilewatch.wire.messages import Compile, Report, Request
from django.db import connection

from dashboard.common import clock
from dashboard.fleet.fold.roles import is_counted
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import (
    Deployment,
    Instance,
    ProcessMinute,
    VersionProcessHour,
    VersionProcessMinute,
)
from dashboard.fleet.selectors.instances.instances import list_version_instances
from dashboard.fleet.selectors.jobs import list_job_ranks, list_jobs, list_live_ranks
from dashboard.fleet.selectors.judge_inputs.independent_units import read_processes
from dashboard.fleet.selectors.judge_inputs.judge_processes import read_process_minutes
from dashboard.ingest.models import Sender
from tests.dashboard.requests import region_make, report_make, request_make

Store = Callable[..., object]

pytestmark = pytest.mark.django_db
END = 60.0 * (clock.unix() // 60)
NOTHING, CALLS, COMPILES = "nothing", "calls", "compiles"


def request(
    does: Sequence[str], *, instance: int = 0, first: int = 0, window: float = 60.0, **identity: Any
) -> Request:
    """One report a minute, the last of ten ending now; each entry names the activity of a
    minute."""
    reports = [
        _report(what, first + number, END - (9 - first - number) * 60.0, window)
        for number, what in enumerate(does)
    ]
    made = request_make(end=END, instance=instance, **identity)
    made.reports[:], made.sent = reports, clock.unix()
    return made


def _report(what: str, number: int, stop: float, window: float) -> Report:
    report = report_make(
        seq=number + 1,
        window=(stop - window, stop),
        regions=[region_make()] if what == CALLS else [],
    )
    if what == COMPILES:
        report.compiles.append(
            Compile(at=stop, id="0/0", kind="recompile", outcome="ok", seconds={"total": 4.0})
        )
    return report


def rows() -> list[tuple[int, int, float]]:
    """Minutes before now, instances and covered seconds of the version, summed over hosts."""
    last = clock.minute_of(END - 1)
    found = VersionProcessMinute.objects.order_by("minute").values_list(
        "minute", "instances", "covered"
    )
    return [(minute - last, instances, covered) for minute, instances, covered in found]


def hours() -> tuple[int, float]:
    """The largest number of instances in an hour, and the covered seconds of all hours."""
    found = list(VersionProcessHour.objects.values_list("instances", "covered"))
    return max(instances for instances, _ in found), sum(covered for _, covered in found)


def test_a_process_counts_from_its_first_call(store_reports: Store) -> None:
    store_reports(
        request([NOTHING, NOTHING, CALLS, NOTHING]),
        request([NOTHING] * 4, instance=1),
        request([NOTHING, COMPILES], instance=2),
    )
    fold_all()
    assert rows() == [(-9, 0, 0.0), (-8, 1, 60.0), (-7, 1, 60.0), (-6, 1, 60.0)]
    assert hours()[1] == 180.0
    assert ProcessMinute.objects.filter(covered=60.0).count() == 10, (
        "the rows of all reports are stored"
    )
    assert sorted(Instance.objects.values_list("active_minute", flat=True), key=bool)[0] is None


def test_compilations_of_a_parent_are_added_and_the_parent_is_not_counted(
    store_reports: Store,
) -> None:
    store_reports(
        request([CALLS]),
        request([COMPILES], instance=1, role="parent"),
        request([CALLS], instance=2, role="data worker"),
        request([NOTHING], instance=3, role="auxiliary"),
        request([COMPILES], instance=4, role="auxiliary"),
        request([CALLS], instance=5, role="engine"),
    )
    fold_all()
    assert rows() == [(-9, 3, 180.0)], "the worker, the auxiliary that compiled, and the engine"
    assert VersionProcessMinute.objects.get().compiles == 2
    deployment = Deployment.objects.get()
    where = {
        "project_id": deployment.project_id,
        "version_ids": [deployment.version_id],
        "environment": deployment.environment,
    }
    assert {int(one.instance_id) for one in list_version_instances(**where)} == {0, 4, 5}
    assert {int(one.instance) for one in read_processes(deployment).values()} == {0, 4, 5}


def test_a_parent_that_starts_to_serve_counts_from_then_on(store_reports: Store) -> None:
    store_reports(request([CALLS, NOTHING], role="parent"))
    store_reports(request([NOTHING, CALLS, NOTHING], role="worker", first=2))
    fold_all()
    assert [row[1:] for row in rows()] == [(0, 0.0), (0, 0.0), (0, 0.0), (1, 60.0), (1, 60.0)]


def test_an_old_agent_without_a_role_counts_from_its_first_call(store_reports: Store) -> None:
    store_reports(request([CALLS, NOTHING]))
    fold_all()
    assert [row[1] for row in rows()] == [1, 1]


@pytest.mark.parametrize("seed", range(6))
def test_late_and_regrouped_reports_count_the_same(store_reports: Store, seed: int) -> None:
    """The same reports in one batch and in any order and grouping. Two reports belong to one
    minute, and one is too long for a minute."""
    wanted = [
        *(
            request([what], first=n)
            for n, what in enumerate([NOTHING, NOTHING, CALLS, NOTHING, CALLS])
        ),
        *(
            request([what], first=n, instance=1)
            for n, what in enumerate([NOTHING, NOTHING, NOTHING, COMPILES])
        ),
        *(
            request([what], first=n, instance=2, role="parent")
            for n, what in enumerate([CALLS, NOTHING])
        ),
        request([NOTHING], first=3, instance=3, window=240.0),
        request([CALLS], first=5, instance=3, window=120.0),
        request([NOTHING], first=6, instance=3),
        _half(NOTHING, 30.0, 40),
        _half(CALLS, 0.0, 41),
    ]
    store_reports(*wanted)
    fold_all()
    expected = rows(), hours()
    assert expected[0] == [
        (-9, 0, 0.0),
        (-8, 0, 0.0),
        (-7, 1, 60.0),
        (-6, 2, 120.0),
        (-5, 1, 60.0),
        (-3, 1, 60.0),
        (0, 1, 60.0),
    ]
    for table in (VersionProcessMinute, VersionProcessHour, ProcessMinute):
        table.objects.all().delete()
    for instance in Instance.objects.all():
        instance.delete()
    _forget_senders()
    order = random.Random(seed).sample(wanted, len(wanted))
    for group in (
        itertools.batched(order, 1 + seed % 3)
        if hasattr(itertools, "batched")
        else [[one] for one in order]
    ):
        for one in group:
            one.sent = clock.unix()
        store_reports(*group)
        fold_all()
    assert (rows(), hours()) == expected


def _half(what: str, before: float, seq: int) -> Request:
    made = request_make(end=END, instance=4)
    made.reports[:], made.sent = [_report(what, seq, END - before, 30.0)], clock.unix()
    return made


def _forget_senders() -> None:
    Sender.objects.all().delete()


def test_ranks_are_the_processes_that_compiled_or_called(store_reports: Store) -> None:
    of = {"job": "train-7", "world_size": 2, "host": "node-1"}
    store_reports(
        request([CALLS], rank=0, **of),
        request([NOTHING], rank=1, instance=1, **of),
        request([NOTHING], rank=1, instance=2, role="data worker", **of),
        request([NOTHING], rank=0, instance=3, role="parent", **of),
    )
    fold_all()
    deployment = Deployment.objects.get()
    where = {
        "project_id": deployment.project_id,
        "model_id": deployment.model_id,
        "environment": deployment.environment,
    }
    assert [one.instance_id[-1] for one in list_job_ranks(job="train-7", **where)] == ["0", "1"], (
        "a starting rank is on the Ranks page of its job"
    )
    assert [job.ranks for job in list_jobs(**where)] == [2]
    assert [one.instance_id[-1] for one in list_live_ranks(since_minute=0)] == ["0"], (
        "and it is not compared yet"
    )


def test_the_judge_reads_a_process_from_its_first_call_on(store_reports: Store) -> None:
    store_reports(request([NOTHING, NOTHING, CALLS, NOTHING]), request([NOTHING] * 4, instance=1))
    fold_all()
    minute = clock.minute_of(END)
    found = read_process_minutes(
        deployment=Deployment.objects.get(),
        baseline=None,
        from_minute=minute - 60,
        to_minute=minute,
        starts={},
    )
    assert [(int(one.instance), one.age) for one in found] == [(0, 0), (0, 1)]


def test_instances_of_the_earlier_release_count_as_before(store_reports: Store) -> None:
    """The migration uses their first minute as the first minute with calls: later reports count,
    and nothing is counted twice."""
    store_reports(request([CALLS, NOTHING]))
    fold_all()
    Instance.objects.update(
        active_minute=Instance.objects.get().first_minute,
        last_seen_at=clock.now() - timedelta(minutes=1),
    )
    store_reports(request([NOTHING], first=2))
    fold_all()
    assert rows() == [(-9, 1, 60.0), (-8, 1, 60.0), (-7, 1, 60.0)]


def test_an_instance_that_the_earlier_release_writes_counts_as_it_did_there(
    store_reports: Store,
) -> None:
    """Both releases run in parallel for a while: the earlier one does not know the new columns."""
    store_reports(request([CALLS, CALLS, CALLS, CALLS]))
    fold_all()
    new = {"id", "active_minute", "ended_at", "exit_code", "exit_signal"}
    new |= {"label", "role", "pid", "node"}
    columns = ", ".join(
        f'"{one.column}"' for one in Instance._meta.concrete_fields if one.column not in new
    )
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TEMPORARY TABLE kept AS SELECT {columns} FROM instance")
        Sender.objects.all().delete()
        Instance.objects.get().delete()
        cursor.execute(f"INSERT INTO instance ({columns}) SELECT {columns} FROM kept")
        cursor.execute("DROP TABLE kept")
    one, deployment = Instance.objects.get(), Deployment.objects.get()
    assert is_counted(one) and len(list_version_instances(**_of(deployment))) == 1
    assert [process.first_minute for process in read_processes(deployment).values()] == [
        one.first_minute
    ]
    store_reports(request([CALLS, CALLS], first=4))
    fold_all()
    assert Instance.objects.get().active_minute == one.first_minute
    assert rows() == [(at, 1, 60.0) for at in range(-9, -3)], "and nothing is counted twice"


def _of(deployment: Deployment) -> dict[str, Any]:
    return {
        "project_id": deployment.project_id,
        "version_ids": [deployment.version_id],
        "environment": deployment.environment,
    }

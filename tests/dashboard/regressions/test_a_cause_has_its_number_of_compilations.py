"""Cause text: a function that each process recompiles once is not described as compiled again and
again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from compilewatch.wire.messages import Compile, Report, Request

from dashboard.common import clock
from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Deployment
from dashboard.regressions.stall_cause import find_stall_cause
from tests.dashboard.regressions.conftest import Clock

pytestmark = pytest.mark.django_db

Make = Callable[..., Request]
Store = Callable[..., object]
THREADS = ("GLOBAL_STATE changed: num_threads",)
SERVED = ("self.served == 2", "self.served == 3", "self.served == 4")


@pytest.mark.parametrize(
    ("reasons", "words"),
    [
        ((), ""),
        (THREADS, "`forward` recompiles (guard: GLOBAL_STATE changed: num_threads)"),
        (
            THREADS * 3,
            "`forward` recompiles repeatedly (guard: GLOBAL_STATE changed: num_threads)",
        ),
        (SERVED, "`forward` recompiles repeatedly (guard: self.served == 2)"),
    ],
)
@pytest.mark.parametrize("instances", [1, 3])
def test_one_recompile_per_process_is_described_as_one(
    time_is: Clock,
    make_request: Make,
    store_reports: Store,
    reasons: tuple[str, ...],
    words: str,
    instances: int,
) -> None:
    def compile_again(report: Report) -> None:
        report.compiles.append(_compiled(report, "first", ""))
        report.compiles.extend(_compiled(report, "recompile", reason) for reason in reasons)

    store_reports(
        *(make_request(instance=number, change=compile_again) for number in range(instances))
    )
    fold_all()
    assert (
        find_stall_cause(
            deployment=Deployment.objects.get(), now_minute=clock.minute_of(clock.unix()) + 1
        )
        == words
    )


def _compiled(report: Report, kind: str, reason: str) -> Compile:
    why = "guard" if reason else ""
    return Compile(
        at=report.window[1] - 1.0,
        id="0/0",
        kind=kind,
        outcome="ok",
        frame="forward",
        reason=reason,
        reason_kind=why,
        seconds={"total": 4.0},
    )

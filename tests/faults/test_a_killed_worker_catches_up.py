"""One worker or all workers die or run out of memory: waiting reports are folded soon afterwards,
and nothing is counted twice or quarantined."""

from __future__ import annotations

import contextlib
import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.cluster import children
from tests.faults.prober import Prober
from tests.faults.results import AddResult
from tests.faults.size import sized
from tests.faults.whole_line import WORKERS, WholeLine
from tests.flow.stack import wait_for

pytestmark = pytest.mark.timeout(900)


def children_die(line: WholeLine) -> None:
    for role in WORKERS:
        line.strike_child(role, 0.0)


def parents_die(line: WholeLine) -> None:
    for role in WORKERS:
        line.strike_head(role)


def no_memory_is_left(line: WholeLine) -> None:
    """The children may not allocate memory, for as long as a kernel would need to react; then they
    are killed."""
    processes = [child for role in WORKERS for child in children(line.processes[role].pid)]
    for process in processes:
        with contextlib.suppress(OSError):
            pages = int(Path(f"/proc/{process}/statm").read_text().split()[0])
            resource.prlimit(process, resource.RLIMIT_AS, (pages * resource.getpagesize(),) * 2)
    time.sleep(sized(3, 10))
    children_die(line)


@pytest.mark.parametrize("happens", [children_die, parents_die, no_memory_is_left])
def test_it_catches_up(
    happens: Callable[[WholeLine], None], whole_line: WholeLine, seed: int, add_result: AddResult
) -> None:
    lags = []
    with Prober(whole_line, f"{happens.__name__}-{seed}") as prober:
        for _ in range(sized(1, 20)):
            prober.wait_for_ack()
            happens(whole_line)
            began = time.monotonic()
            prober.wait_for_ack()
            [(newest,)] = whole_line.rows("SELECT coalesce(max(id), 0) FROM ingest_inbox")
            waits = f"SELECT count(*) FROM ingest_inbox WHERE id <= {newest}"
            wait_for(
                "the waiting reports are folded",
                lambda waits=waits: whole_line.rows(waits) == [(0,)],
                seconds=300,
                every=0.05,
            )
            lags.append(time.monotonic() - began)
    prober.check()
    assert all(answer.status == 200 or answer.busy for answer in prober.answers)
    assert whole_line.rows("SELECT error FROM ingest_poison") == []
    add_result(
        f"21 {happens.__name__.replace('_', ' ')}",
        times=len(lags),
        acknowledged=prober.acked,
        longest_catch_up_s=round(max(lags), 1),
    )

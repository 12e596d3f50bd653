"""Outages from ten seconds to a day, on a simulated clock: everything arrives afterwards, with
bounded memory and disk."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from compilewatch.config import Config
from compilewatch.export.outbox import MAX_BYTES, Outbox
from compilewatch.export.recently_acked import RecentlyAcked
from compilewatch.export.sender import Sender
from compilewatch.export.spool.spool import MAX_INSTANCE_BYTES, Spool
from compilewatch.export.transport import create_transport
from compilewatch.identity.identity import identity_build
from compilewatch.wire.codec import dumps, loads
from compilewatch.wire.messages import Region, Report
from compilewatch.wire.sketch import Sketch

from tests.faults.ledger import Recorded
from tests.faults.line import Line
from tests.faults.proxy import FaultProxy
from tests.faults.results import AddResult
from tests.faults.size import FULL

LENGTHS = {"10 s": 10, "5 min": 300, "1 h": 3600} | ({"24 h": 86400} if FULL else {})
INTERVAL = 10.0


class Turned:
    """An instance whose clock advances by ten seconds for each window."""

    def __init__(
        self, line: Line, proxy: FaultProxy, folder: Path, version: str, seconds: int
    ) -> None:
        self.settings = Config(
            model="faults",
            version=version,
            endpoint=proxy.endpoint,
            api_key=line.stack.key,
            spool=str(folder),
            interval=INTERVAL,
        )
        self.now, self.seq = time.time() - seconds - INTERVAL, 0
        self.identity = identity_build(self.settings)
        self.outbox = Outbox()
        self.sender = Sender(
            create_transport(self.settings),
            self.outbox,
            lambda: self.now,
            tail=RecentlyAcked(lambda: self.now),
        )
        self.spool = Spool(self.settings, self.identity, lambda: self.now)
        self.recorded = Recorded(windows={self.identity.id: {}})

    def window(self, chance: random.Random) -> None:
        """Ten seconds of calls, and an attempt if one is due."""
        self.seq += 1
        calls = chance.randint(1, 50)
        latency = Sketch.of([chance.lognormvariate(-6, 1) for _ in range(calls)])
        report = Report(
            (self.seq, self.seq),
            (self.now, self.now + INTERVAL),
            [Region("step", calls, unknown=calls, latency=latency)],
        )
        self.recorded.windows[self.identity.id][self.seq] = loads(Report, dumps(report))
        self.recorded.begun += calls
        self.now += INTERVAL
        self.spool.store(self.outbox.add(report), self.outbox.pending)
        if self.sender.is_due():
            self.sender.attempt(self.identity)
            self.spool.update_pending(self.outbox.pending())


@pytest.mark.parametrize("length", LENGTHS)
def test_down_for(
    length: str, line: Line, proxy: FaultProxy, seed: int, tmp_path: Path, add_result: AddResult
) -> None:
    chance = random.Random(seed)
    version = f"outage-{length}"
    one = Turned(line, proxy, tmp_path, version, LENGTHS[length])
    proxy.down()
    most = disk = 0
    for _ in range(int(LENGTHS[length] / INTERVAL)):
        one.window(chance)
        most = max(most, one.outbox.size_bytes)
        disk = max(disk, sum(path.stat().st_size for path in tmp_path.rglob("*.spool")))
    windows = sum(map(len, one.recorded.windows.values()))
    assert most <= MAX_BYTES and disk <= MAX_INSTANCE_BYTES
    proxy.up()
    for _ in range(1000):
        one.now = max(one.now, one.sender.next_attempt)
        if not len(one.outbox) or not one.sender.attempt(one.identity):
            break
    one.spool.update_pending(one.outbox.pending())
    assert len(one.outbox) == 0
    one.spool.close([])
    found = line.check(version, [one.recorded])
    assert (found["windows lost"], found["calls folded"]) == (0, found["calls"])
    add_result(
        "11",
        **found,
        sent_as=windows - one.outbox.merged_windows,
        most_kib=most >> 10,
        disk_kib=disk >> 10,
    )

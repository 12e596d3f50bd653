"""Windows that a killed process left are sent under another id if another process with the same id
has used their numbers."""

from __future__ import annotations

import json
from pathlib import Path

from compilewatch.export.spool.recovery import SpoolRecovery
from compilewatch.export.transport import Answer
from compilewatch.wire.ack import Ack, Rejected

from tests.agent.export.spool.files import Kept, config

WINDOWS = 70


class Contested:
    """A fake transport: a dashboard that holds other windows of instance `a`, and all windows that
    it receives of other instances."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, int], float] = {}
        """The start of each window, by instance and number."""

    def send(self, body: bytes) -> Answer:
        """Answers as the dashboard does."""
        request = json.loads(body)
        who, reports = request["instance"]["id"], request["reports"]
        ranges = [(report["seq"][0], report["seq"][1]) for report in reports]
        if who == "a" * 26:
            return Answer(
                200, ack=Ack([], 101, rejected=[Rejected(seq, "range_conflict") for seq in ranges])
            )
        self.stored |= {(who, report["seq"][0]): report["window"][0] for report in reports}
        return Answer(200, ack=Ack(ranges, ranges[-1][1] + 1))

    def interrupt(self) -> None:
        """No request is ever in progress."""


def left_behind(folder: Path) -> None:
    kept = Kept(folder, "a")
    for seq in range(31, 31 + WINDOWS):
        kept.close(seq)
    kept.spool.close(kept.outbox.pending())


def test_all_windows_are_stored_once_and_numbered_from_one(tmp_path: Path) -> None:
    left_behind(tmp_path)
    dashboard = Contested()
    leftovers = SpoolRecovery(config(tmp_path), dashboard)
    for _ in range(10):
        leftovers.step()
    (other,) = {who for who, _ in dashboard.stored}
    assert (len(other), other[:10]) == (26, "a" * 10)
    assert dashboard.stored == {
        (other, number): (30 + number) * 10.0 for number in range(1, WINDOWS + 1)
    }
    assert not list(tmp_path.glob("compilewatch-*/*.spool"))


def test_a_process_killed_before_it_records_the_answer_stores_no_window_twice(
    tmp_path: Path,
) -> None:
    left_behind(tmp_path)
    dashboard = Contested()
    first = SpoolRecovery(config(tmp_path), dashboard)
    first.step()
    assert first._current is not None
    first._current._sender.attempt(
        first._current._identity
    )  # stored, but not yet recorded in the file
    assert len(dashboard.stored) == 32
    first.close()
    following = SpoolRecovery(config(tmp_path), dashboard)
    for _ in range(10):
        following.step()
    assert sorted(dashboard.stored.values()) == [
        number * 10.0 for number in range(31, 31 + WINDOWS)
    ]

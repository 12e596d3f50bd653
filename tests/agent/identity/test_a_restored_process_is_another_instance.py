"""A process whose boot, pid or start changed was restored or copied: it continues as another
instance, and no window is lost."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest
from compilewatch import reporter
from compilewatch.config import Config
from compilewatch.recording.recorder import RECORDER
from compilewatch.sources.registry import InstalledSources

BEFORE, AFTER = ("boot", 7, "100"), ("another boot", 7, "100")


def begin(folder: Path) -> reporter.Reporter:
    config = Config(model="m", version="1", endpoint=f"file:{folder / 'reports'}", spool="off")
    return reporter.Reporter(config, RECORDER, InstalledSources(RECORDER), 1_795_000_000.0)


def seqs(one: reporter.Reporter) -> list[tuple[int, int]]:
    return [entry.seq for entry in one.outbox.pending()]


def test_windows_after_the_restore_are_numbered_from_one(
    window: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "process_key", lambda: BEFORE)
    one = begin(tmp_path)
    one.close_window()
    one.outbox.next_batch()
    one.outbox.acknowledge([(1, 1)])
    earlier = one.identity.id
    monkeypatch.setattr(reporter, "process_key", lambda: AFTER)
    one.close_window()
    one.close_window()
    assert (seqs(one), one.identity.id == earlier) == ([(1, 1), (2, 2)], False)


def test_windows_that_the_dashboard_may_hold_are_settled_under_the_earlier_id(
    window: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reporter, "process_key", lambda: BEFORE)
    one = begin(tmp_path)
    one.close_window()
    earlier = one.identity.id
    monkeypatch.setattr(reporter, "process_key", lambda: AFTER)
    one.close_window()
    assert (seqs(one), one.identity.id) == ([(1, 1), (2, 2)], earlier)
    assert [entry.seq for entry in one.outbox.next_batch()] == [(1, 1)]
    assert one.send()
    assert (seqs(one), one.identity.id == earlier) == ([(1, 1)], False)


def test_a_boot_id_that_changes_at_each_reading_is_ignored(
    window: Callable[[], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbers = itertools.count()
    monkeypatch.setattr(reporter, "process_key", lambda: (f"boot {next(numbers)}", 7, "100"))
    one = begin(tmp_path)
    earlier = one.identity.id
    one.close_window()
    one.close_window()
    assert (seqs(one), one.identity.id) == ([(1, 1), (2, 2)], earlier)

"""Windows that were merged in memory are on disk under their common range before they are sent, or
not on disk at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from compilewatch.export.spool.locked_file import LockedFile
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import Report

from tests.agent.export.spool.files import Kept, on_disk, seqs

WINDOWS = 60


def merged(folder: Path) -> Kept:
    """More windows than memory holds."""
    kept = Kept(folder)
    kept.outbox._max_bytes = 2_000
    for seq in range(1, WINDOWS + 1):
        kept.close(seq)
    assert len(seqs(kept.path)) == WINDOWS > len(kept.outbox) > 2
    return kept


def send(kept: Kept) -> list[tuple[int, int]]:
    """Two windows, added as an instance does."""
    kept.spool.prepare_send(kept.outbox.pending(), kept.outbox.merged_windows)
    return [entry.seq for entry in kept.outbox.next_batch(2)]


def test_the_file_holds_the_windows_that_are_sent(tmp_path: Path) -> None:
    kept = merged(tmp_path)
    sent = send(kept)
    assert any(first < last for first, last in sent)
    assert [(entry.seq, entry.body) for entry in on_disk(kept.path)] == [
        (entry.seq, entry.body) for entry in kept.outbox.pending()
    ]
    calls = [
        region.calls for entry in on_disk(kept.path) for region in loads(Report, entry.body).regions
    ]
    assert sum(calls) == 3 * WINDOWS
    assert kept.spool.errors == 0


def test_the_file_is_written_once_for_all_batches(tmp_path: Path) -> None:
    kept = merged(tmp_path)
    send(kept)
    before = kept.path.stat().st_ino
    kept.acknowledge(1, kept.outbox.pending()[1].seq[1])
    send(kept)
    assert kept.path.stat().st_ino == before


def test_the_file_is_not_written_again_while_the_same_windows_are_retried(tmp_path: Path) -> None:
    kept = merged(tmp_path)
    first, before = send(kept), kept.path.stat().st_ino
    kept.close(WINDOWS + 1)
    assert kept.outbox.merged_windows > kept.spool._merges
    assert send(kept) == first
    assert kept.path.stat().st_ino == before


def test_a_disk_that_refuses_keeps_nothing_that_would_count_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = merged(tmp_path)

    def full(*given: object) -> LockedFile:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(LockedFile, "create", full)
        send(kept)
    assert on_disk(kept.path) == []
    assert (kept.spool.errors, kept.spool.capability()[0]) == (1, "no")
    kept.now += 61
    kept.close(WINDOWS + 1)
    assert seqs(kept.path) == [entry.seq for entry in kept.outbox.pending()]

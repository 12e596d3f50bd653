"""Retransmission queue: closed windows in memory until the dashboard acknowledges them.

The queue is a FIFO with at-least-once delivery. The server removes duplicates by the pair of
instance id and sequence range, so a window may be sent any number of times.
- Freeze on send: the first attempt freezes the range and the bytes of a window. A window that the
  server may already hold is never merged or renumbered.
- Bounded memory: at most `MAX_BYTES` of JSON. Above the limit, the queue merges the adjacent pair
  of unsent windows with the shortest total time span, so resolution degrades evenly. Merging keeps
  all counts. If every window is frozen, the queue exceeds the limit.
- Renewal: two processes that report under one instance id (a copied or restored process) get
  `range_conflict`. The queue then sends only frozen windows. When none is left, `renumber` assigns
  numbers from 1 for a new instance id.

Only the agent's thread uses the queue; there is no lock. `add` costs one JSON encoding of the
window; each merge decodes two windows and encodes one. `batch` and `acknowledged` are linear in the
number of windows.
"""

from __future__ import annotations

from dataclasses import dataclass

from compilewatch.export.fit_to_limit import fit_report
from compilewatch.recording.aggregate import merge_reports
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import MAX_REPORTS, Report, SeqRange

MAX_BYTES = 2 << 20
MAX_BATCH_BYTES = 1 << 20


@dataclass(slots=True)
class Entry:
    """A window as the bytes to send.

    From the first attempt until the acknowledgement its range and bytes do not change.
    """

    seq: SeqRange
    start: float
    end: float
    body: bytes
    attempted: bool = False


def renumber_report(entry: Entry, first: int) -> Report:
    """Decodes the window and assigns sequence numbers starting at `first`."""
    report = loads(Report, entry.body)
    report.seq = first, first + entry.seq[1] - entry.seq[0]
    return report


class Outbox:
    """FIFO of unacknowledged windows; only the agent's thread uses it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.merged_windows = 0
        self.truncated_events = 0
        self.rejected_windows = 0
        self.renewal_due = False
        """Whether another process reports under this instance id.

        Windows that were never sent then wait for a new id.
        """
        self._max_bytes = max_bytes
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """Total size of the queued windows in bytes."""
        return sum(len(entry.body) for entry in self._entries)

    def add(self, report: Report) -> Entry:
        """Queues a closed window and returns its entry; merges older windows if memory is full."""
        closed = self._entry(report)
        self._entries.append(closed)
        while self.size_bytes > self._max_bytes and self._merge_one():
            pass
        return closed

    def pending(self) -> list[Entry]:
        """Returns all unacknowledged windows, oldest first."""
        return list(self._entries)

    def restore(self, entries: list[Entry]) -> None:
        """Queues windows that were sent before, with their ranges and bytes."""
        for entry in entries:
            entry.attempted = True
        self._entries = sorted(entries + self._entries, key=lambda entry: entry.seq)

    def _entry(self, report: Report) -> Entry:
        """Encodes the window within the size limit of a request."""
        body, lost = fit_report(report, MAX_BATCH_BYTES)
        self.truncated_events += lost
        return Entry(report.seq, *report.window, body)

    def _merge_one(self) -> bool:
        """Merges the adjacent pair with the shortest time span, the oldest pair on a tie."""
        best, least = -1, float("inf")
        for i, (first, second) in enumerate(zip(self._entries, self._entries[1:], strict=False)):
            span = second.end - first.start
            if (
                not first.attempted
                and not second.attempted
                and first.seq[1] + 1 == second.seq[0]
                and span < least
            ):
                best, least = i, span
        if best < 0:
            return False
        first, second = self._entries[best : best + 2]
        merged, lost = merge_reports(loads(Report, first.body), loads(Report, second.body))
        self.truncated_events += lost
        self.merged_windows += 1
        self._entries[best : best + 2] = [self._entry(merged)]
        return True

    def next_batch(self, limit: int = MAX_REPORTS) -> list[Entry]:
        """Returns the windows to send now and freezes them: attempted windows first, otherwise the
        oldest.
        """
        frozen = [entry for entry in self._entries if entry.attempted]
        batch: list[Entry] = []
        size = 0
        for entry in (frozen if frozen or self.renewal_due else self._entries)[:limit]:
            size += len(entry.body)
            if batch and size > MAX_BATCH_BYTES:
                break
            entry.attempted = True
            batch.append(entry)
        return batch

    def acknowledge(self, ranges: list[SeqRange]) -> list[Entry]:
        """Removes the windows that the server now holds and returns them."""
        return self._remove(ranges)

    def reject(self, ranges: list[SeqRange]) -> int:
        """Removes and counts the windows that the server rejected permanently."""
        removed = len(self._remove(ranges))
        self.rejected_windows += removed
        return removed

    def release_contested(self, ranges: list[SeqRange]) -> int:
        """Keeps windows for a new id, because the server holds other windows under their numbers.

        Returns how many.
        """
        entries = [entry for entry in self._entries if entry.attempted and entry.seq in ranges]
        for entry in entries:
            entry.attempted = False
        self.renewal_due = self.renewal_due or bool(entries)
        return len(entries)

    def mark_copied(self) -> None:
        """Freezes all windows after the process was copied or restored: the other process may send
        them too.
        """
        for entry in self._entries:
            entry.attempted = True
        self.renewal_due = True

    @property
    def renewable(self) -> bool:
        """Whether a new id is due and the server can hold none of the remaining windows under this
        id.
        """
        return self.renewal_due and not any(entry.attempted for entry in self._entries)

    def renumber(self) -> int:
        """Renumbers the queued windows from 1, for a new instance id; returns the last number."""
        last, renumbered = 0, []
        for entry in self._entries:
            report = renumber_report(entry, last + 1)
            last = report.seq[1]
            renumbered.append(self._entry(report))
        self._entries, self.renewal_due = renumbered, False
        return last

    def _remove(self, ranges: list[SeqRange]) -> list[Entry]:
        remaining: list[Entry] = []
        removed: list[Entry] = []
        for entry in self._entries:
            covered = entry.attempted and any(
                first <= entry.seq[0] and entry.seq[1] <= last for first, last in ranges
            )
            (removed if covered else remaining).append(entry)
        self._entries = remaining
        return removed

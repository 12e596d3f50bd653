"""Closed windows that wait for their acknowledgement: bounded in memory, and never dropped, only merged."""

from __future__ import annotations

from dataclasses import dataclass

from compilewatch.export.fit_to_limit import fitted
from compilewatch.recording.aggregate import reports_merge
from compilewatch.wire.codec import loads
from compilewatch.wire.messages import MAX_REPORTS, Report, SeqRange

MAX_BYTES = 2 << 20
MAX_BATCH_BYTES = 1 << 20


@dataclass(slots=True)
class Entry:
    """A window as the bytes that are sent; once attempted it keeps its range and its bytes until it is acknowledged."""

    seq: SeqRange
    start: float
    end: float
    body: bytes
    attempted: bool = False


def report_renumbered(entry: Entry, first: int) -> Report:
    """The window with numbers from `first` on."""
    report = loads(Report, entry.body)
    report.seq = first, first + entry.seq[1] - entry.seq[0]
    return report


class Outbox:
    """First in, first out; the agent's thread alone touches it."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self.merged_windows = 0
        self.truncated_events = 0
        self.rejected_windows = 0
        self.renewal_due = False
        """Whether another process reports under this instance's id: what no request has carried yet waits for another id."""
        self._max_bytes = max_bytes
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def bytes_held(self) -> int:
        """What the waiting windows take."""
        return sum(len(entry.body) for entry in self._entries)

    def add(self, report: Report) -> Entry:
        """Takes a closed window in and answers with it as it is sent; where memory is full, older ones are merged to make room."""
        closed = self._entry(report)
        self._entries.append(closed)
        while self.bytes_held > self._max_bytes and self._merge_one():
            pass
        return closed

    def waiting(self) -> list[Entry]:
        """Everything that is not acknowledged, the oldest first."""
        return list(self._entries)

    def restore(self, entries: list[Entry]) -> None:
        """Takes windows in that were sent before, with the ranges and bytes they had."""
        for entry in entries:
            entry.attempted = True
        self._entries = sorted(entries + self._entries, key=lambda entry: entry.seq)

    def _entry(self, report: Report) -> Entry:
        """The window as bytes, as many as a request takes at most."""
        body, lost = fitted(report, MAX_BATCH_BYTES)
        self.truncated_events += lost
        return Entry(report.seq, *report.window, body)

    def _merge_one(self) -> bool:
        """Merges the two neighbours that span least, the oldest of equals, so that resolution coarsens evenly."""
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
        merged, lost = reports_merge(loads(Report, first.body), loads(Report, second.body))
        self.truncated_events += lost
        self.merged_windows += 1
        self._entries[best : best + 2] = [self._entry(merged)]
        return True

    def batch(self, limit: int = MAX_REPORTS) -> list[Entry]:
        """What to send now: the windows that were attempted before, or else the oldest ones, frozen from here on."""
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

    def acknowledged(self, ranges: list[SeqRange]) -> list[Entry]:
        """Lets go of the windows that the server holds now and answers which they were."""
        return self._remove(ranges)

    def rejected(self, ranges: list[SeqRange]) -> int:
        """Lets go of the windows that the server refused for good, and counts them."""
        removed = len(self._remove(ranges))
        self.rejected_windows += removed
        return removed

    def contested(self, ranges: list[SeqRange]) -> int:
        """Keeps windows that the server refused because it holds others under their numbers, for another id; answers how many."""
        found = [entry for entry in self._entries if entry.attempted and entry.seq in ranges]
        for entry in found:
            entry.attempted = False
        self.renewal_due = self.renewal_due or bool(found)
        return len(found)

    def copied(self) -> None:
        """The process was restored or copied: what waits may be in another process too, so it keeps its numbers and bytes."""
        for entry in self._entries:
            entry.attempted = True
        self.renewal_due = True

    @property
    def renewable(self) -> bool:
        """Whether another id is due, and no window is left that the server may hold under this one."""
        return self.renewal_due and not any(entry.attempted for entry in self._entries)

    def renumber(self) -> int:
        """Gives what waits the numbers from 1 on, under which another instance sends it; answers the last of them."""
        last, renumbered = 0, []
        for entry in self._entries:
            report = report_renumbered(entry, last + 1)
            last = report.seq[1]
            renumbered.append(self._entry(report))
        self._entries, self.renewal_due = renumbered, False
        return last

    def _remove(self, ranges: list[SeqRange]) -> list[Entry]:
        kept: list[Entry] = []
        removed: list[Entry] = []
        for entry in self._entries:
            covered = entry.attempted and any(
                first <= entry.seq[0] and entry.seq[1] <= last for first, last in ranges
            )
            (removed if covered else kept).append(entry)
        self._entries = kept
        return removed

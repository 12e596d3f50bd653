"""Finding state: new, ongoing, gone or back.

Input: the minute of the first sighting per version, and the spans in which versions reported.

1. A version has the finding from its first sighting until its last report.
2. Spans with the finding join into one interval, unless ABSENCE_MINUTES without it separate them.
3. Enough absence after the newest interval means "gone".
4. Several versions in the newest interval mean "ongoing".
5. One version means "back" after an earlier interval, else "new".

Invariant: the state does not depend on the order in which rows or reports arrive.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

ABSENCE_MINUTES = 60
"""Minutes of reports without the finding before its absence counts. A version compiles mostly at
its start."""

RULE = (
    "New: seen in one version. Ongoing: seen in several versions. Gone: every version with the "
    "finding has stopped reporting, and other versions that report compilations ran for an hour "
    "without it. Back: seen again after that."
)


class Presence(NamedTuple):
    """Minutes since 1970 in which a version reported; first and last minute have data."""

    version: int
    first: int
    last: int


class FindingState(NamedTuple):
    """State of a finding, and its start in minutes since 1970."""

    state: str
    since: int


class _Interval(NamedTuple):
    first: int
    last: int
    versions: frozenset[int]


def derive_finding_state(shown: Mapping[int, int], present: Sequence[Presence]) -> FindingState:
    """Return the state of a finding.

    `shown` maps each version to the minute of its first sighting. The order of arrival does not
    matter.
    """
    silent = _AbsenceMinutes(_list_presence_without(shown, present))
    stretches: list[_Interval] = []
    for version, first, last in sorted(
        _list_presence_with(shown, present), key=lambda one: (one.first, one.last, one.version)
    ):
        before = stretches[-1] if stretches else None
        if before is None or silent.minutes(before.last + 1, first - 1) >= ABSENCE_MINUTES:
            stretches.append(_Interval(first, last, frozenset({version})))
        else:
            stretches[-1] = _Interval(
                before.first, max(before.last, last), before.versions | {version}
            )
    newest = stretches[-1]
    if silent.minutes(newest.last + 1, silent.end) >= ABSENCE_MINUTES:
        return FindingState("gone", newest.last)
    if len(newest.versions) > 1:
        return FindingState("ongoing", newest.first)
    return FindingState("back" if len(stretches) > 1 else "new", newest.first)


def _list_presence_with(shown: Mapping[int, int], present: Iterable[Presence]) -> list[Presence]:
    """Return the presence of versions with the finding, from the first sighting until the last
    report."""
    found = [
        Presence(version, max(first, shown[version]), last)
        for version, first, last in present
        if last >= shown.get(version, last + 1)
    ]
    known = {one.version for one in found}
    return found + [
        Presence(version, minute, minute)
        for version, minute in shown.items()
        if version not in known
    ]


def _list_presence_without(
    shown: Mapping[int, int], present: Iterable[Presence]
) -> list[tuple[int, int]]:
    """Return the spans in which versions reported before any sighting of the finding there."""
    ends = (
        (first, min(last, shown.get(version, last + 1) - 1)) for version, first, last in present
    )
    return [(first, last) for first, last in ends if first <= last]


class _AbsenceMinutes:
    """Minutes with reports but without the finding, each counted once."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self.firsts: list[int] = []
        self.lasts: list[int] = []
        for first, last in sorted(spans):
            if self.lasts and first <= self.lasts[-1] + 1:
                self.lasts[-1] = max(self.lasts[-1], last)
            else:
                self.firsts.append(first)
                self.lasts.append(last)

    @property
    def end(self) -> int:
        """Newest minute; 0 if there is none."""
        return self.lasts[-1] if self.lasts else 0

    def minutes(self, first: int, last: int) -> int:
        """Return the number of minutes from `first` to `last`."""
        start = bisect_left(self.lasts, first)
        return sum(
            max(0, min(end, last) - max(begin, first) + 1)
            for begin, end in zip(self.firsts[start:], self.lasts[start:], strict=True)
            if begin <= last
        )

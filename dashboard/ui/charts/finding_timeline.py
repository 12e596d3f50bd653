"""Timeline of a finding: when each version of the model ran, and when it had the finding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

WIDTH = 1000.0
MIN_BAR_WIDTH = 4.0
"""Minimum width, so that one minute in a year stays visible."""
MAX_ROWS = 24


@dataclass(frozen=True)
class VersionSpan:
    """Minutes since 1970 in which a version ran in an environment, or had the finding; `last` is
    exclusive."""

    version_id: int
    version: str
    environment: str
    first: int
    last: int
    times: int = 0


@dataclass(frozen=True)
class Bar:
    """Position of a bar within `WIDTH`."""

    x: float
    width: float


@dataclass(frozen=True)
class FindingTimelineRow:
    """One version in one environment."""

    version_id: int
    version: str
    environment: str
    ran: list[Bar]
    shown: Bar | None
    times: int
    first: int
    last: int


@dataclass(frozen=True)
class FindingTimeline:
    """All rows on one time scale, newest version first; `left_out` counts older versions."""

    rows: list[FindingTimelineRow]
    first: int
    last: int
    left_out: int

    @property
    def conclusion(self) -> str:
        """Text alternative of the timeline."""
        showed = sum(row.shown is not None for row in self.rows)
        return f"{showed} of {len(self.rows)} versions since the first sighting had the finding."


def build_finding_timeline(
    *, ran: Iterable[VersionSpan], shown: Iterable[VersionSpan], now: int
) -> FindingTimeline:
    """Puts both on one scale, from the first sighting, or the deployment before it, until now."""
    seen = {(one.version_id, one.environment): one for one in shown}
    spans: dict[tuple[int, str], list[VersionSpan]] = {}
    for one in ran:
        spans.setdefault((one.version_id, one.environment), []).append(one)
    for key in seen:
        spans.setdefault(key, [])
    everything = [one for found in spans.values() for one in found] + list(seen.values())
    first = min((one.first for one in everything), default=now - 1)
    scale = WIDTH / max(1, now - first)

    def bar(one: VersionSpan) -> Bar:
        width = max(MIN_BAR_WIDTH, (min(one.last, now) - one.first) * scale)
        return Bar(round(min((one.first - first) * scale, WIDTH - width), 1), round(width, 1))

    rows = []
    for key, found in spans.items():
        told, whole = seen.get(key), [*found, *([seen[key]] if key in seen else [])]
        one = whole[0]
        rows.append(
            FindingTimelineRow(
                one.version_id,
                one.version,
                one.environment,
                [bar(each) for each in found],
                bar(told) if told else None,
                told.times if told else 0,
                min(each.first for each in whole),
                max(each.last for each in whole),
            )
        )
    rows.sort(key=lambda row: (row.first, row.version_id), reverse=True)
    return FindingTimeline(rows[:MAX_ROWS], first, now, max(0, len(rows) - MAX_ROWS))

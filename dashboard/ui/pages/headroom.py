"""How often each frame was compiled in one process, against torch's limits, beyond which it runs eager until the process restarts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dashboard.fleet.selectors.compiled import Compiled
from dashboard.fleet.selectors.starts import Started
from dashboard.ui import words

LIMIT, ALL_LIMIT = 8, 256
"""torch's defaults of `recompile_limit` and `accumulated_recompile_limit`; agents tell the first where a frame reached it."""
COUNTED = ("first", "recompile", "empty")
SHOWN = 10
REASONS_SHOWN = 2


@dataclass(frozen=True)
class FrameRoom:
    """One frame in the process where it was compiled most often."""

    frame: str
    place: str
    used: int
    limit: int
    most: str
    processes: int
    latched: int
    reasons: list[str]
    more: int

    @property
    def pips(self) -> list[int]:
        """The places of the filled marks of eight, which stand for the limit."""
        return list(range(min(LIMIT, round(LIMIT * self.used / self.limit)))) if self.limit else []

    @property
    def left(self) -> int:
        """How many more shapes are compiled."""
        return max(0, self.limit - self.used)

    @property
    def near(self) -> bool:
        """Whether one more, or none, fits."""
        return self.left <= 1 or bool(self.latched)


def frames_room(events: Iterable[Compiled], own: Sequence[Started]) -> list[FrameRoom]:
    """The frames with least room first."""
    counts: dict[tuple[str, str, int], Counter[int]] = {}
    reasons: dict[tuple[str, str, int], Counter[str]] = {}
    for event in events:
        if event.kind in COUNTED and event.outcome == "ok":
            key = (event.frame, event.file, event.line)
            counts.setdefault(key, Counter())[event.instance_id] += 1
            if event.reason:
                reasons.setdefault(key, Counter())[event.reason.strip().splitlines()[0]] += 1
    names = {one.id: one.name for one in own}
    latched: dict[str, list[int]] = {}
    for process in own:
        for told in process.latched:
            latched.setdefault(str(told.get("frame") or ""), []).append(_limit(told.get("limit")))
    rows = [_room(key, count, reasons.get(key, Counter()), names, latched.get(key[0], [])) for key, count in counts.items()]
    return sorted(rows, key=lambda row: (-bool(row.latched), row.left, row.frame, row.place))


def _room(key: tuple[str, str, int], count: Counter[int], reasons: Counter[str], names: dict[int, str], latched: list[int]) -> FrameRoom:
    frame, file, line = key
    instance, used = max(count.items(), key=lambda item: (item[1], item[0]))
    return FrameRoom(
        frame=frame or "a frame",
        place=f"{file}:{line}" if file else "",
        used=used,
        limit=max([limit for limit in latched if limit], default=LIMIT),
        most=names.get(instance, ""),
        processes=len(count),
        latched=len(latched),
        reasons=[reason for reason, _ in reasons.most_common(REASONS_SHOWN)],
        more=max(0, len(reasons) - REASONS_SHOWN),
    )


def _limit(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 100_000 else 0


def nearest(rows: Sequence[FrameRoom]) -> str:
    """The frame with least room, in one line."""
    if not rows:
        return ""
    return f"{rows[0].used} of {rows[0].limit}" if not rows[0].latched else f"reached on {words.plural(rows[0].latched, 'instance')}"

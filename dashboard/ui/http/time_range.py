"""The ranges a page can show, and the part of its address that says which: relative, from one time
to another, or since the deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.http import QueryDict

from dashboard.common import clock
from dashboard.fleet.metrics.time_bins import TimeBins as Bins
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange
from dashboard.vocabulary import numbers

MAX_RANGE_MINUTES = 400 * 1440
"""Minutes: hours are kept so long at most."""
MAX_BINS = 168
BIN_STEPS_MINUTES = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 360, 720, 1440, 2880, 4320)
SINCE_DEPLOYMENT = "deployment"


@dataclass(frozen=True)
class RangePreset:
    """One choice of the Fleet page: its name in the address, its words, its bin and how many bins,
    in minutes."""

    key: str
    label: str
    bin: int
    bins: int


RANGE_PRESETS = (
    RangePreset("1h", "1\u00a0h", 1, 60),
    RangePreset("6h", "6\u00a0h", 5, 72),
    # In hours: a day of minutes of a whole fleet is forty times as many rows, and a line of this
    # size shows no more.
    RangePreset("24h", "24\u00a0h", 60, 24),
    RangePreset("7d", "7\u00a0d", 120, 84),
)
DEFAULT_PRESET = RANGE_PRESETS[2]
SPAN_MINUTES = {"1h": 60, "6h": 360, "24h": 1440, "7d": 7 * 1440, "30d": 30 * 1440}
DEFAULT_SPAN = "6h"


@dataclass(frozen=True)
class TimeRange:
    """What a page shows: minutes since 1970, `last` exclusive. `note` says what of the address
    could not be."""

    key: str
    first: int
    last: int
    label: str
    live: bool = True
    note: str = ""

    @property
    def minutes(self) -> int:
        """How long it is."""
        return self.last - self.first

    def bins(self, *, minutes_from: int) -> Bins:
        """Equal bins, as many as a chart can show; what begins before the minutes that are kept is
        drawn in hours."""
        step = next(
            (step for step in BIN_STEPS_MINUTES if self.minutes <= step * MAX_BINS),
            BIN_STEPS_MINUTES[-1],
        )
        window = Bins.ending(self.last, self.minutes, step)
        return window if step < 60 and window.first >= minutes_from else self._hours()

    def _hours(self) -> Bins:
        """Whole hours or more, the first and the running one in it."""
        end = -(-self.last // 60) * 60
        minutes = self.minutes if self.key in SPAN_MINUTES else end - self.first
        step = next(
            (step for step in BIN_STEPS_MINUTES if step >= 60 and minutes <= step * MAX_BINS),
            BIN_STEPS_MINUTES[-1],
        )
        return Bins.ending(end, minutes, step)


@dataclass(frozen=True)
class RangePicker:
    """The choice as a template draws it: links, the ends of the range as the form shows them, and
    what else the address holds."""

    links: list[tuple[str, str, bool]]
    chosen: TimeRange
    kept: list[tuple[str, str]]

    @property
    def custom(self) -> bool:
        """Whether the ends were given."""
        return self.chosen.key == "custom"

    @property
    def first(self) -> datetime:
        """The beginning."""
        return clock.at_minute(self.chosen.first)

    @property
    def last(self) -> datetime:
        """The end."""
        return clock.at_minute(self.chosen.last)


def read_range_preset(query: QueryDict) -> RangePreset:
    """The Fleet page's range that the address asks for; an unknown one is the default."""
    return next((one for one in RANGE_PRESETS if one.key == query.get("range")), DEFAULT_PRESET)


def build_window(chosen: RangePreset) -> BinnedRange:
    """The range as minutes up to now, its bins on round minutes."""
    end = clock.minute_of(clock.unix())
    start = (end // chosen.bin - chosen.bins + 1) * chosen.bin
    return BinnedRange(start=start, end=end, bin=chosen.bin)


def read_time_range(
    query: QueryDict, *, now: int, since: int | None = None, usual: str = DEFAULT_SPAN
) -> TimeRange:
    """The range of an address. `since` is when the deployment began; `until` alone moves a relative
    range back."""
    if "from" in query or "to" in query:
        return _read_custom_range(query, now=now, since=since, usual=usual)
    key = query.get("range", usual)
    key = key if key in SPAN_MINUTES or (key == SINCE_DEPLOYMENT and since is not None) else usual
    if key == SINCE_DEPLOYMENT:
        return TimeRange(
            SINCE_DEPLOYMENT,
            min(max(since or 0, now - MAX_RANGE_MINUTES), now - 1),
            now,
            "since deployment",
        )
    until = _minute(query.get("until", ""))
    if until is not None and now - MAX_RANGE_MINUTES < until < now:
        return TimeRange(key, until - SPAN_MINUTES[key], until, format_span(key), live=False)
    return TimeRange(key, now - SPAN_MINUTES[key], now, format_span(key))


def _read_custom_range(query: QueryDict, *, now: int, since: int | None, usual: str) -> TimeRange:
    """From one time to another, cut to what can be kept; a strange one is refused in words and the
    usual range is shown."""
    first, last = (
        _minute(query.get("from", "")),
        _minute(query.get("to", "")) if query.get("to") else now,
    )
    wrong = ""
    if first is None or last is None:
        name = "from" if first is None else "to"
        wrong = f"{name}: write a time such as 2026-11-22T05:30, in UTC; it is not one."
    elif first >= now:
        wrong = "from: lies in the future, where nothing is reported yet."
    elif first >= last:
        wrong = "from: must be before to."
    elif last <= now - MAX_RANGE_MINUTES:
        wrong = f"to: nothing is kept for longer than {MAX_RANGE_MINUTES // 1440} days."
    if wrong or first is None or last is None:
        shown = read_time_range(QueryDict(), now=now, since=since, usual=usual)
        return replace(shown, note=f"{wrong} Shown is what is usual: {shown.label}.")
    notes = []
    if last > now:
        notes.append("The range ends now: nothing is reported beyond.")
    if first < now - MAX_RANGE_MINUTES:
        notes.append(
            f"It begins where the last {MAX_RANGE_MINUTES // 1440} days do: nothing is "
            "kept for longer."
        )
    first, last = max(first, now - MAX_RANGE_MINUTES), min(last, now)
    return TimeRange(
        "custom",
        first,
        last,
        numbers.format_coarse_duration((last - first) * 60),
        live=last == now,
        note=" ".join(notes),
    )


def _minute(text: str) -> int | None:
    """A minute since 1970, written as such or as a time in UTC; None for anything else."""
    if text.isascii() and text.isdecimal():
        return int(text) if len(text) < 12 else None
    try:
        at = datetime.fromisoformat(text)
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() // 60)
    except (ValueError, OverflowError):
        return None


def format_span(span: str) -> str:
    """6 h."""
    return f"{span[:-1]}\u00a0{span[-1]}"


def build_range_picker(
    query: QueryDict,
    chosen: TimeRange,
    *,
    deployed: bool = False,
    spans: Sequence[str] = tuple(SPAN_MINUTES),
) -> RangePicker:
    """The links and the form of the choice; every other part of the address stays as it is."""
    gone = {"from": "", "to": "", "until": ""}
    links = [
        (format_span(key), replace_query(query, range=key, **gone), key == chosen.key)
        for key in spans
    ]
    if deployed:
        links.append(
            (
                "Since deployment",
                replace_query(query, range=SINCE_DEPLOYMENT, **gone),
                chosen.key == SINCE_DEPLOYMENT,
            )
        )
    kept = [
        (name, value)
        for name, values in query.lists()
        if name not in (*gone, "range", "page")
        for value in values
    ]
    return RangePicker(links, chosen, kept)


def replace_query(query: QueryDict, **changes: str) -> str:
    """The address's query with some values changed; an empty value removes it."""
    changed = query.copy()
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return "?" + changed.urlencode()

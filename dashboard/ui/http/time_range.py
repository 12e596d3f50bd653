"""Time ranges of the pages and their URL parameters: relative, custom, or since the deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urlencode

from django.http import QueryDict

from dashboard.common import clock
from dashboard.fleet.metrics.time_bins import TimeBins as Bins
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange
from dashboard.vocabulary import numbers

MAX_RANGE_MINUTES = 400 * 1440
"""Maximum length of a range: hourly data is retained for up to 400 days."""
MAX_BINS = 168
BIN_STEPS_MINUTES = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 360, 720, 1440, 2880, 4320)
SINCE_DEPLOYMENT = "deployment"


@dataclass(frozen=True)
class RangePreset:
    """One range of the Fleet page: URL value, label, bin size in minutes, and number of bins."""

    key: str
    label: str
    bin: int
    bins: int


RANGE_PRESETS = (
    RangePreset("1h", "1\u00a0h", 1, 60),
    RangePreset("6h", "6\u00a0h", 5, 72),
    # Hours: a day of minutes for a whole fleet has forty times as many rows, and a sparkline of
    # this size cannot show more detail.
    RangePreset("24h", "24\u00a0h", 60, 24),
    RangePreset("7d", "7\u00a0d", 120, 84),
)
DEFAULT_PRESET = RANGE_PRESETS[2]
SPAN_MINUTES = {"1h": 60, "6h": 360, "24h": 1440, "7d": 7 * 1440, "30d": 30 * 1440}
DEFAULT_SPAN = "6h"


@dataclass(frozen=True)
class TimeRange:
    """The range of a page in minutes since 1970, `last` exclusive. `note` names the URL values that
    were ignored."""

    key: str
    first: int
    last: int
    label: str
    live: bool = True
    note: str = ""

    @property
    def minutes(self) -> int:
        """Length in minutes."""
        return self.last - self.first

    def bins(self, *, minutes_from: int) -> Bins:
        """Equal bins, as many as a chart can show. Hourly bins if the range begins before the
        retained minutes."""
        step = next(
            (step for step in BIN_STEPS_MINUTES if self.minutes <= step * MAX_BINS),
            BIN_STEPS_MINUTES[-1],
        )
        window = Bins.ending(self.last, self.minutes, step)
        return window if step < 60 and window.first >= minutes_from else self._hours()

    def _hours(self) -> Bins:
        """Bins of whole hours or more, including the first and the current hour."""
        end = -(-self.last // 60) * 60
        minutes = self.minutes if self.key in SPAN_MINUTES else end - self.first
        step = next(
            (step for step in BIN_STEPS_MINUTES if step >= 60 and minutes <= step * MAX_BINS),
            BIN_STEPS_MINUTES[-1],
        )
        return Bins.ending(end, minutes, step)


@dataclass(frozen=True)
class RangePicker:
    """The range picker for the template: links, the ends of the range for the form, and the other
    URL parameters."""

    links: list[tuple[str, str, bool]]
    chosen: TimeRange
    kept: list[tuple[str, str]]

    @property
    def custom(self) -> bool:
        """True for a custom range."""
        return self.chosen.key == "custom"

    @property
    def first(self) -> datetime:
        """Start of the range."""
        return clock.at_minute(self.chosen.first)

    @property
    def last(self) -> datetime:
        """End of the range."""
        return clock.at_minute(self.chosen.last)

    @property
    def link(self) -> str:
        """The query with the absolute range: it shows the same minutes to everyone, at any time."""
        ends = (("from", f"{self.first:%Y-%m-%dT%H:%M}"), ("to", f"{self.last:%Y-%m-%dT%H:%M}"))
        return "?" + urlencode([*self.kept, *ends])


def read_range_preset(query: QueryDict) -> RangePreset:
    """The range of the Fleet page from the URL; an unknown range is replaced by the default."""
    return next((one for one in RANGE_PRESETS if one.key == query.get("range")), DEFAULT_PRESET)


def build_window(chosen: RangePreset) -> BinnedRange:
    """The range as minutes up to now, with bins on round minutes."""
    end = clock.minute_of(clock.unix())
    start = (end // chosen.bin - chosen.bins + 1) * chosen.bin
    return BinnedRange(start=start, end=end, bin=chosen.bin)


def read_time_range(
    query: QueryDict, *, now: int, since: int | None = None, usual: str = DEFAULT_SPAN
) -> TimeRange:
    """Reads the range from the URL. `since` is the start of the deployment; `until` alone moves a
    relative range back."""
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
    """A custom range, cut to the retained time. An invalid range is explained in `note`, and the
    default range is shown."""
    first, last = (
        _minute(query.get("from", "")),
        _minute(query.get("to", "")) if query.get("to") else now,
    )
    wrong = ""
    if first is None or last is None:
        name = "from" if first is None else "to"
        wrong = f"{name}: not a time. Enter a UTC time such as 2026-11-22T05:30."
    elif first >= now:
        wrong = "from: the time is in the future. Choose an earlier time."
    elif first >= last:
        wrong = "from: must be earlier than to."
    elif last <= now - MAX_RANGE_MINUTES:
        wrong = f"to: data is retained for up to {MAX_RANGE_MINUTES // 1440} days."
    if wrong or first is None or last is None:
        shown = read_time_range(QueryDict(), now=now, since=since, usual=usual)
        return replace(shown, note=f"{wrong} Showing the default range: {shown.label}.")
    notes = []
    if last > now:
        notes.append("The range was cut at the current time.")
    if first < now - MAX_RANGE_MINUTES:
        notes.append(
            f"The range was cut at the last {MAX_RANGE_MINUTES // 1440} days, "
            "the maximum retention."
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
    """A minute since 1970, written as a number or as a UTC time; None for other texts."""
    if text.isascii() and text.isdecimal():
        return int(text) if len(text) < 12 else None
    try:
        at = datetime.fromisoformat(text)
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() // 60)
    except (ValueError, OverflowError):
        return None


def format_span(span: str) -> str:
    """A label such as "6 h"."""
    return f"{span[:-1]}\u00a0{span[-1]}"


def build_range_picker(
    query: QueryDict,
    chosen: TimeRange,
    *,
    deployed: bool = False,
    spans: Sequence[str] = tuple(SPAN_MINUTES),
) -> RangePicker:
    """The links and the form of the picker; other URL parameters stay unchanged."""
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
    """The URL query with some values changed; an empty value removes its parameter."""
    changed = query.copy()
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return "?" + changed.urlencode()

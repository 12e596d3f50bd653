"""The ranges a page can show, and the part of its address that says which: relative, from one time to another, or since the deployment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.http import QueryDict

from dashboard.common import clock
from dashboard.fleet.metrics.time_bins import Window as Bins
from dashboard.fleet.selectors.versions.fleet_page import Window
from dashboard.ui import words

FURTHEST = 400 * 1440
"""Minutes: hours are kept so long at most."""
MOST_BINS = 168
STEPS = (1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 360, 720, 1440, 2880, 4320)
SINCE = "deployment"


@dataclass(frozen=True)
class Range:
    """One choice of the Fleet page: its name in the address, its words, its bin and how many bins, in minutes."""

    key: str
    label: str
    bin: int
    bins: int


RANGES = (
    Range("1h", "1\u00a0h", 1, 60),
    Range("6h", "6\u00a0h", 5, 72),
    # In hours: a day of minutes of a whole fleet is forty times as many rows, and a line of this size shows no more.
    Range("24h", "24\u00a0h", 60, 24),
    Range("7d", "7\u00a0d", 120, 84),
)
DEFAULT = RANGES[2]
SPANS = {"1h": 60, "6h": 360, "24h": 1440, "7d": 7 * 1440, "30d": 30 * 1440}
USUAL = "6h"


@dataclass(frozen=True)
class Chosen:
    """What a page shows: minutes since 1970, `last` exclusive. `note` says what of the address could not be."""

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
        """Equal bins, as many as a chart can show; what begins before the minutes that are kept is drawn in hours."""
        step = next((step for step in STEPS if self.minutes <= step * MOST_BINS), STEPS[-1])
        window = Bins.ending(self.last, self.minutes, step)
        return window if step < 60 and window.first >= minutes_from else self._hours()

    def _hours(self) -> Bins:
        """Whole hours or more, the first and the running one in it."""
        end = -(-self.last // 60) * 60
        minutes = self.minutes if self.key in SPANS else end - self.first
        step = next((step for step in STEPS if step >= 60 and minutes <= step * MOST_BINS), STEPS[-1])
        return Bins.ending(end, minutes, step)


@dataclass(frozen=True)
class Picker:
    """The choice as a template draws it: links, the ends of the range as the form shows them, and what else the address holds."""

    links: list[tuple[str, str, bool]]
    chosen: Chosen
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


def range_of(query: QueryDict) -> Range:
    """The Fleet page's range that the address asks for; an unknown one is the default."""
    return next((one for one in RANGES if one.key == query.get("range")), DEFAULT)


def window_of(chosen: Range) -> Window:
    """The range as minutes up to now, its bins on round minutes."""
    end = clock.minute_of(clock.unix())
    start = (end // chosen.bin - chosen.bins + 1) * chosen.bin
    return Window(start=start, end=end, bin=chosen.bin)


def range_chosen(query: QueryDict, *, now: int, since: int | None = None, usual: str = USUAL) -> Chosen:
    """The range of an address. `since` is when the deployment began; `until` alone moves a relative range back."""
    if "from" in query or "to" in query:
        return _given(query, now=now, since=since, usual=usual)
    key = query.get("range", usual)
    key = key if key in SPANS or (key == SINCE and since is not None) else usual
    if key == SINCE:
        return Chosen(SINCE, min(max(since or 0, now - FURTHEST), now - 1), now, "since deployment")
    until = _minute(query.get("until", ""))
    if until is not None and now - FURTHEST < until < now:
        return Chosen(key, until - SPANS[key], until, said(key), live=False)
    return Chosen(key, now - SPANS[key], now, said(key))


def _given(query: QueryDict, *, now: int, since: int | None, usual: str) -> Chosen:
    """From one time to another, cut to what can be kept; a strange one is refused in words and the usual range is shown."""
    first, last = _minute(query.get("from", "")), _minute(query.get("to", "")) if query.get("to") else now
    wrong = ""
    if first is None or last is None:
        name = "from" if first is None else "to"
        wrong = f"{name}: write a time such as 2026-11-22T05:30, in UTC; it is not one."
    elif first >= now:
        wrong = "from: lies in the future, where nothing is reported yet."
    elif first >= last:
        wrong = "from: must be before to."
    elif last <= now - FURTHEST:
        wrong = f"to: nothing is kept for longer than {FURTHEST // 1440} days."
    if wrong or first is None or last is None:
        shown = range_chosen(QueryDict(), now=now, since=since, usual=usual)
        return replace(shown, note=f"{wrong} Shown is what is usual: {shown.label}.")
    notes = []
    if last > now:
        notes.append("The range ends now: nothing is reported beyond.")
    if first < now - FURTHEST:
        notes.append(f"It begins where the last {FURTHEST // 1440} days do: nothing is kept for longer.")
    first, last = max(first, now - FURTHEST), min(last, now)
    return Chosen("custom", first, last, words.coarse((last - first) * 60), live=last == now, note=" ".join(notes))


def _minute(text: str) -> int | None:
    """A minute since 1970, written as such or as a time in UTC; None for anything else."""
    if text.isascii() and text.isdecimal():
        return int(text) if len(text) < 12 else None
    try:
        at = datetime.fromisoformat(text)
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() // 60)
    except (ValueError, OverflowError):
        return None


def said(span: str) -> str:
    """6 h."""
    return f"{span[:-1]}\u00a0{span[-1]}"


def picker_of(query: QueryDict, chosen: Chosen, *, deployed: bool = False, spans: Sequence[str] = tuple(SPANS)) -> Picker:
    """The links and the form of the choice; every other part of the address stays as it is."""
    gone = {"from": "", "to": "", "until": ""}
    links = [(said(key), with_query(query, range=key, **gone), key == chosen.key) for key in spans]
    if deployed:
        links.append(("Since deployment", with_query(query, range=SINCE, **gone), chosen.key == SINCE))
    kept = [(name, value) for name, values in query.lists() if name not in (*gone, "range", "page") for value in values]
    return Picker(links, chosen, kept)


def with_query(query: QueryDict, **changes: str) -> str:
    """The address's query with some values changed; an empty value removes it."""
    changed = query.copy()
    for name, value in changes.items():
        if value:
            changed[name] = value
        else:
            changed.pop(name, None)
    return "?" + changed.urlencode()

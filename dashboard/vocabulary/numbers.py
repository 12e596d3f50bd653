"""Number formats: numbers, sizes, durations and changes for pages, notifications and verdicts. At
most three digits, a real minus sign, a hard space."""

from __future__ import annotations

import math

SPACE = "\u00a0"
MINUS = "\u2212"
FACTOR_FROM = 2.0
"""A change of at least three times the baseline is shown as a factor: a percentage of that size is
hard to read."""
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def significant(value: float, digits: int = 3) -> str:
    """0.0012, 4.1, 18.4, 100, 12,346: at most this number of significant digits, and all digits
    before the point."""
    if not math.isfinite(value):
        return "?"
    if value == 0:
        return "0"
    places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    text = f"{abs(value):,.{places}f}"
    text = text.rstrip("0").removesuffix(".") if "." in text else text
    return f"{MINUS}{text}" if value < 0 and text != "0" else text


def number(value: float) -> str:
    """12,345, 212, 18.4, 4.2, 0.11: at most three digits below a thousand."""
    size = abs(value)
    if size >= 100 or value == int(value):
        text = f"{size:,.0f}"
    elif size >= 10:
        text = f"{size:.1f}".removesuffix(".0")
    elif size >= 1:
        text = f"{size:.2f}".removesuffix("0").removesuffix(".0")
    elif size >= 0.01:
        text = f"{size:.2f}"
    else:
        text = significant(size, 2)
    return text if value >= 0 else MINUS + text


def duration(seconds: float) -> str:
    """840 µs, 18.4 ms, 1.31 s, 48 s, 2 min 41 s, 1 h 37 min, 3 days."""
    if seconds < 0:
        return MINUS + duration(-seconds)
    for limit, factor, unit in ((9.995e-4, 1e6, "µs"), (0.9995, 1e3, "ms"), (59.5, 1, "s")):
        if seconds < limit:
            return f"{_figure(seconds * factor)}{SPACE}{unit}"
    if seconds < 3600:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes}{SPACE}min" + (f" {rest:02d}{SPACE}s" if rest else "")
    if seconds < 48 * 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours}{SPACE}h" + (f" {minutes:02d}{SPACE}min" if minutes else "")
    return f"{round(seconds / 86400)}{SPACE}days"


def bound(seconds: float) -> str:
    """< 300 ms: the upper bound of a quantile in an engine's first bucket."""
    return f"<{SPACE}{duration(seconds)}"


def mean(seconds: float) -> str:
    """mean 62.6 ms."""
    return f"mean {duration(seconds)}"


def below(seconds: float, average: float) -> str:
    """< 300 ms, mean 62.6 ms."""
    return f"{bound(seconds)}, {mean(average)}"


def size(count: float) -> str:
    """31.2 GiB."""
    value, unit = abs(float(count)), 0
    while value >= 1000 and unit < len(_BYTES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{MINUS if count < 0 else ''}{_figure(value)}{SPACE}{_BYTES[unit]}"


def percent(share: float) -> str:
    """A share in percent, with up to three digits. Only 1 is shown as all, and only 0 as none."""
    value = share * 100
    if 99.95 <= value < 100:
        return f">{SPACE}99.9%"
    if 0 < value < 0.01:
        return f"<{SPACE}0.01%"
    if -0.01 < value < 0:
        return f">{SPACE}{MINUS}0.01%"
    return f"{_short(value)}%"


def count_share(events: int | None, calls: int | None, share: float, noun: str = "") -> str:
    """`1 of 88 calls (1.1%)`: a share with its counts; empty if they are unknown, or do not agree
    with the share because it is weighted."""
    if events is None or not calls or percent(events / calls) != percent(share):
        return ""
    of = f"{events:,} of {calls:,}{SPACE}{noun}".rstrip(SPACE)
    return f"{of} ({percent(share)})"


def one_in(share: float) -> str:
    """1 in 240 for a small share, rounded down to two digits so that a rate is never understated; a
    percentage from 1 in 3 on; "never" for 0."""
    if share <= 0:
        return "never"
    if share > 1 / 3:
        return percent(share)
    whole = math.floor(1 / share + 1e-9)
    step = 10 ** max(0, len(str(whole)) - 2)
    return f"1 in {whole // step * step:,}"


def level(value: float, unit: str) -> str:
    """A value in the unit of a metric: s, share, bytes, per hour, share per hour; any other unit
    follows the number."""
    said = {"s": duration, "share": percent, "B": size, "bytes": size}.get(unit)
    if said is not None:
        return said(value)
    if unit == "per hour":
        return f"{number(value)}{SPACE}/h"
    if unit == "share per hour":
        return f"{percent(value)}/h"
    return f"{number(value)}{SPACE}{unit}".rstrip()


def change(ratio: float) -> str:
    """A relative change: signed percent, or from three times on a factor such as 22.8 times."""
    return _times(ratio) if is_factor(ratio) else f"{_signed(ratio * 100)}%"


def is_factor(ratio: float) -> bool:
    """True if a relative change is shown as a factor."""
    return math.isfinite(ratio) and ratio >= FACTOR_FROM


def magnitude(ratio: float) -> str:
    """A relative change without its sign, for sentences that state the direction."""
    return change(ratio).lstrip("+" + MINUS)


def change_range(low: float, high: float, middle: float | None = None) -> str:
    """The interval of a relative change in one unit, such as 13% to 52%, or 1.5 to 31 times,
    without a plus sign. It has the unit of the change in its `middle`, if that is known."""
    low, high = min(low, high), max(low, high)
    if is_factor(high if middle is None else middle):
        return f"{number(1 + low)} to {_times(high)}"
    return f"{change(low).lstrip('+')} to {change(high).lstrip('+')}"


def points(difference: float) -> str:
    """−28.1 pts: a difference between two shares."""
    text = _signed(difference * 100, exact=True)
    return f"{text}{SPACE}{'pt' if text.lstrip('+' + MINUS) == '1' else 'pts'}"


def signed_size(count: float) -> str:
    """+0.4 GiB."""
    return size(count) if count < 0 else "+" + size(count)


def difference(value: float, base: float, unit: str) -> str:
    """The difference from a baseline: points of a share, a plain rate per hour, else relative;
    empty from zero."""
    if unit == "share":
        return points(value - base)
    if unit in ("per hour", "share per hour"):
        text = level(value - base, unit)
        return f"+{text}" if value > base and text[0].isdigit() else text
    if value == base:
        return "0%"
    return change(value / base - 1) if base else ""


def format_coarse_duration(seconds: float) -> str:
    """A duration in its largest unit: 8 s, 6 min, 2 h, 3 days."""
    for limit, unit, factor in ((90, "s", 1), (90 * 60, "min", 60), (48 * 3600, "h", 3600)):
        if seconds < limit:
            return f"{max(0, round(seconds / factor))}{SPACE}{unit}"
    return f"{round(seconds / 86400)}{SPACE}days"


def format_minutes(minutes: int) -> str:
    """45 min, 1 h, 1 h 35 min: whole minutes, to the minute."""
    hours, rest = divmod(minutes, 60)
    parts = [f"{hours}{SPACE}h"] if hours else []
    if rest or not hours:
        parts.append(f"{rest}{SPACE}min")
    return " ".join(parts)


def plural(count: int, one: str, many: str = "") -> str:
    """1 instance, 6 instances."""
    return f"{number(count)}{SPACE}{one if count == 1 else many or one + 's'}"


def _times(ratio: float) -> str:
    return f"{number(1 + ratio)}{SPACE}times"


def _figure(value: float) -> str:
    if value == 0:
        return "0"
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2f}".rstrip("0").removesuffix(".") if value >= 1 else significant(value, 2)


def _short(value: float) -> str:
    if value == 0:
        return "0"
    digits = 1 if abs(value) >= 1 else 2
    text = f"{abs(value):.{digits}f}".rstrip("0").removesuffix(".")
    return (MINUS if value < 0 else "") + (text or "0")


def _signed(value: float, *, exact: bool = False) -> str:
    if not math.isfinite(value):
        return "?"
    digits = 2 if exact and abs(value) < 1 else 1 if exact or abs(value) < 9.5 else 0
    rounded = round(value, digits)
    if rounded == 0:
        return "0"
    return f"{'+' if rounded > 0 else MINUS}{significant(abs(rounded), 6)}"

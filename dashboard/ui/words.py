"""Numbers, sizes, times and changes as people say them: at most three digits that mean something, a real minus, a hard space."""

from __future__ import annotations

import math

SPACE = "\u00a0"
MINUS = "\u2212"
_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def number(value: float) -> str:
    """Three digits at most after thousands: 12,345, 212, 18.4, 4.2, 0.11."""
    size = abs(value)
    if size >= 100 or value == int(value):
        text = f"{size:,.0f}"
    elif size >= 10:
        text = f"{size:.1f}"
    elif size >= 1:
        text = f"{size:.2f}".removesuffix("0")
    elif size >= 0.01:
        text = f"{size:.2f}"
    else:
        text = f"{size:.2g}"
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
        return f"{minutes}{SPACE}min" + (f" {rest:02d}{SPACE}s" if rest and minutes < 10 else "")
    if seconds < 48 * 3600:
        hours, minutes = divmod(round(seconds / 60), 60)
        return f"{hours}{SPACE}h" + (f" {minutes:02d}{SPACE}min" if minutes else "")
    return f"{round(seconds / 86400)}{SPACE}days"


def bound(seconds: float) -> str:
    """< 300 ms: all that is known of a quantile in an engine's first bucket."""
    return f"<{SPACE}{duration(seconds)}"


def mean(seconds: float) -> str:
    """mean 62.6 ms."""
    return f"mean {duration(seconds)}"


def below(seconds: float, average: float) -> str:
    """< 300 ms, mean 62.6 ms."""
    return f"{bound(seconds)}, {mean(average)}"


def coarse(seconds: float) -> str:
    """How long something lasts, in its largest unit: 8 s, 6 min, 2 h, 3 days."""
    for limit, unit, factor in ((90, "s", 1), (90 * 60, "min", 60), (48 * 3600, "h", 3600)):
        if seconds < limit:
            return f"{max(0, round(seconds / factor))}{SPACE}{unit}"
    return f"{round(seconds / 86400)}{SPACE}days"


def size(count: float) -> str:
    """31.2 GiB."""
    value, unit = abs(float(count)), 0
    while value >= 1000 and unit < len(_BYTES) - 1:
        value, unit = value / 1024, unit + 1
    return f"{MINUS if count < 0 else ''}{_figure(value)}{SPACE}{_BYTES[unit]}"


def percent(share: float) -> str:
    """71.2 %, 96 %, 0.11 %; only all is 100 % and only none is 0 %."""
    value = share * 100
    if 99.95 <= value < 100:
        return f">{SPACE}99.9{SPACE}%"
    if 0 < value < 0.01:
        return f"<{SPACE}0.01{SPACE}%"
    return f"{_short(value)}{SPACE}%"


def change(ratio: float) -> str:
    """+31 %, −6 %, 0 %: a relative change; beyond ten times the words say the factor."""
    if ratio >= 9:
        return f"{MINUS if ratio < 0 else ''}{number(round(ratio + 1))} times"
    return f"{_signed(ratio * 100)}{SPACE}%"


def points(difference: float) -> str:
    """−28.1 pts: a difference between two shares."""
    text = _signed(difference * 100, exact=True)
    return f"{text}{SPACE}{'pt' if text.lstrip('+' + MINUS) == '1' else 'pts'}"


def signed_size(count: float) -> str:
    """+0.4 GiB."""
    return size(count) if count < 0 else "+" + size(count)


_BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("Chrome", "Chrome"), ("Safari", "Safari"))
_SYSTEMS = (("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"), ("Mac OS", "macOS"), ("Linux", "Linux"))


def browser(agent: str) -> str:
    """Firefox on Linux; a browser calls itself by the names of those before it, so the rarest name counts. Empty where none is known."""
    name = next((said for part, said in _BROWSERS if part in agent), "")
    system = next((said for part, said in _SYSTEMS if part in agent), "")
    return f"{name} on {system}" if name and system else name


def plural(count: int, one: str, many: str = "") -> str:
    """1 instance, 6 instances."""
    return f"{number(count)}{SPACE}{one if count == 1 else many or one + 's'}"


def _figure(value: float) -> str:
    if value == 0:
        return "0"
    if value >= 99.95:
        return f"{value:,.0f}"
    if value >= 9.995:
        return f"{value:.1f}".removesuffix(".0")
    return f"{value:.2f}".rstrip("0").removesuffix(".") if value >= 1 else f"{value:.2g}"


def _short(value: float) -> str:
    if value == 0:
        return "0"
    digits = 1 if abs(value) >= 1 else 2
    text = f"{abs(value):.{digits}f}".rstrip("0").removesuffix(".")
    return (MINUS if value < 0 else "") + (text or "0")


def _signed(value: float, *, exact: bool = False) -> str:
    if not math.isfinite(value):
        return "?"
    rounded = round(value, 1) if exact or abs(value) < 9.5 else round(value)
    if rounded == 0:
        return "0"
    return f"{'+' if rounded > 0 else MINUS}{abs(rounded):g}"

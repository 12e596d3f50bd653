"""Filters that format numbers, durations, sizes and times. None is shown as text, not as zero."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from dashboard.common import clock
from dashboard.fleet.fold.finding_state import RULE
from dashboard.fleet.models import Instance
from dashboard.fleet.names import process_name
from dashboard.ui.layout.browser_name import browser_name
from dashboard.vocabulary import numbers

register = template.Library()
ABSENT = "no report"
LINE_BREAK_POINTS = re.compile(r"(?<=[./,])(?=\w)")
BIDI_CONTROLS = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)))


def _format_number(value: Any, say: Callable[[float], str]) -> str:
    return say(value) if isinstance(value, int | float) else ABSENT


def _exact(value: datetime) -> str:
    return f"{value:%Y-%m-%d %H:%M:%S}"


@register.filter(name="process_name")
def format_process_name(one: Instance) -> str:
    """Display name of a process."""
    return process_name(one)


@register.filter
def prose(text: str) -> SafeString:
    """A sentence with code between backticks and with times in the reader's zone. The text is
    escaped, and directional characters of names do not affect the rest of the sentence."""
    text = str(text).translate(BIDI_CONTROLS)
    parts = text.split("`")
    if len(parts) % 2 == 0:
        return _with_times(text)
    said = (
        format_html("<code>{}</code>", part) if place % 2 else _with_times(part)
        for place, part in enumerate(parts)
    )
    return format_html_join("", "{}", ((part,) for part in said))


def _with_times(text: str) -> SafeString:
    """Converts UTC times in a sentence to time elements."""
    parts = clock.TIMESTAMP_PATTERN.split(text)
    said = ((_time_or_text(part) if place % 2 else part,) for place, part in enumerate(parts))
    return format_html_join("", "{}", said)


def _time_or_text(text: str) -> str | SafeString:
    at = clock.parse_timestamp(text)
    return clock_time(at) if at else f"{text} UTC"


@register.filter
def code_breaks(text: str) -> SafeString:
    """Code that breaks after a dot, a slash or a comma, before it is cut within a name."""
    return format_html_join(
        mark_safe("<wbr>"), "{}", ((part,) for part in LINE_BREAK_POINTS.split(str(text)))
    )


@register.filter
def number(value: Any) -> str:
    """12,345 or 18.4."""
    return _format_number(value, numbers.number)


@register.filter
def duration(value: Any) -> str:
    """Formats seconds as 18.4 ms or 2 min 41 s."""
    return _format_number(value, numbers.duration)


@register.filter
def bytes_size(value: Any) -> str:
    """Formats bytes as 31.2 GiB."""
    return _format_number(value, numbers.size)


@register.filter
def percent(value: Any) -> str:
    """Formats a share as a percentage."""
    return _format_number(value, numbers.percent)


@register.filter
def change(value: Any) -> str:
    """Formats a ratio as a signed percentage."""
    return _format_number(value, numbers.change)


@register.filter
def points(value: Any) -> str:
    """Formats a difference of shares as −28.1 pts."""
    return _format_number(value, numbers.points)


@register.filter
def browser(agent: str) -> str:
    """A name such as "Firefox on Linux"; an unknown User-Agent is shown unchanged."""
    return browser_name(agent) or agent


@register.filter
def clock_time(value: datetime | None, shape: str = "clock") -> str | SafeString:
    """A time element that the page's script converts to the viewer's zone, else UTC: 23:35 today,
    24 Nov 23:35 on other days; `day` always includes the date. moments.js writes the same."""
    if value is None:
        return ABSENT
    now = clock.now()
    text = f"{value:%H:%M}"
    if value.date() != now.date() or shape == "day":
        year = "" if value.year == now.year else f" {value.year}"
        text = f"{value.day} {value:%b}{year} {text}"
    return format_html(
        '<time datetime="{}" data-t="{}" title="{} UTC">{}</time>',
        value.isoformat(),
        shape,
        _exact(value),
        text,
    )


@register.filter
def relative_time(value: datetime | None) -> str | SafeString:
    """A time element that shows its distance from now and updates automatically."""
    if value is None:
        return ABSENT
    text = f"{numbers.format_coarse_duration((clock.now() - value).total_seconds())} ago"
    return format_html(
        '<time datetime="{}" data-t="ago" title="{} UTC">{}</time>',
        value.isoformat(),
        _exact(value),
        text,
    )


@register.filter
def minute_time(minute: int | None) -> str | SafeString:
    """A minute since 1970 as a time element."""
    return clock_time(clock.at_minute(minute)) if minute else ABSENT


@register.filter
def minutes_between(interval: tuple[int, int]) -> str:
    """An interval of minutes as text in UTC, for labels that cannot contain a time element."""
    return clock.format_minutes_between(*interval)


@register.simple_tag
def finding_rule() -> str:
    """Definitions of the finding states new, ongoing, gone and back."""
    return RULE

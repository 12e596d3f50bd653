"""Filters of chart pages: value of a mapping, latest value of a chart, span of minutes."""

from collections.abc import Mapping
from typing import Any

from django import template

from dashboard.ui.charts.trends import TrendLine, format_bin
from dashboard.vocabulary import numbers

register = template.Library()


@register.filter
def lookup(mapping: Mapping[str, Any], key: str) -> Any:
    """The value of a key, or None."""
    return mapping.get(key)


@register.filter
def newest(line: TrendLine, suffix: str) -> str:
    """The value of the newest bin with the suffix of its ticks; a dash if it has none."""
    if line.dots:
        return numbers.number(line.dots[-1].value)
    # The newest bin may still wait for its first report; older values are not shown as new.
    places = range(len(line.values) - 1, max(-1, len(line.values) - 3), -1)
    return next((said for place in places if (said := format_bin(line, place, suffix))), "–")


@register.filter
def minutes_span(minutes: int) -> str:
    """93 min, 3 h."""
    return numbers.format_coarse_duration(minutes * 60)

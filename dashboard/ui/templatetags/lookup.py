"""Filters of the chart pages: a value out of a mapping, a chart's newest number, a span of minutes."""

from collections.abc import Mapping
from typing import Any

from django import template

from dashboard.ui import words
from dashboard.ui.charts.trends import Line

register = template.Library()


@register.filter
def lookup(mapping: Mapping[str, Any], key: str) -> Any:
    """The value under a key, None where there is none."""
    return mapping.get(key)


@register.filter
def newest(line: Line, suffix: str) -> str:
    """The number of the newest bin with its tick's suffix; a dash where it has none."""
    if line.dots:
        return words.number(line.dots[-1].value)
    # The newest bin may still wait for its first report; what is older is not called new.
    value = next((value for value in reversed(line.values[-2:]) if value is not None), None)
    return f"{words.number(value)}{suffix}" if value is not None else "–"


@register.filter
def minutes_span(minutes: int) -> str:
    """93 min, 3 h."""
    return words.coarse(minutes * 60)

"""Cells of the Fleet table as tags: an included template costs ten times as much, and a fleet has hundreds of them."""

from collections.abc import Iterable
from functools import lru_cache

from django import template
from django.urls import get_script_prefix, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from dashboard.ui.fleet_cells import Cell
from dashboard.ui.fleet_rows import LiveVersion
from dashboard.ui.sparkline import Spark

register = template.Library()


@lru_cache(maxsize=4096)
def _address(prefix: str, name: str, parts: tuple[object, ...]) -> str:
    return reverse(name, args=parts)


@register.simple_tag
def address(name: str, *parts: object) -> str:
    """What `url` gives, looked up once: a fleet is polled, and its hundreds of addresses are the same each time."""
    return _address(get_script_prefix(), name, parts)


@register.simple_tag
def figure_cell(cell: Cell, absent: str = "no report") -> SafeString:
    """A figure with its change below, in the colour of its verdict; or why there is none."""
    if not cell.text:
        return format_html('<span class="dim">{}</span>', absent)
    changed = format_html('<span class="delta {}">{}</span>', cell.css, cell.change) if cell.css else cell.change
    below = format_html('<span class="sub">{}</span>', changed) if cell.change else ""
    return format_html('<span class="big">{}</span>{}', cell.text, below)


@register.simple_tag
def spark_drawn(spark: Spark, end_css: str = "") -> SafeString:
    """The inside of a sparkline: deployments, lines, and a dot where the newest version stands."""
    parts = [f'<path class="mk" d="M{x} 8V52"/><path class="mkf" d="{diamond}"/>' for x, diamond in spark.marks]
    parts += [f'<path class="l{" thin" if line.thin else ""} s{line.role}" d="{line.path}"/>' for line in spark.lines]
    if spark.end:
        role, x, y = spark.end
        parts.append(f'<circle class="f{role}{end_css}" cx="{x}" cy="{y}" r="3"/>')
    return mark_safe("".join(parts))  # numbers that were formatted here, no text of anybody's


@register.simple_tag
def shares_drawn(versions: Iterable[LiveVersion]) -> SafeString:
    """The inside of the bar of live versions: the part of each that takes calls."""
    shown = ((one.role, one.x, one.width) for one in versions if one.share)
    return format_html_join("", '<rect class="f{}" x="{}" y="0" width="{}" height="6"/>', shown)

"""Cells of the Fleet table as tags: an included template costs ten times as much, and a fleet has
hundreds of cells."""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from django import template
from django.urls import get_script_prefix, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from dashboard.ui.charts.sparkline import Spark
from dashboard.ui.pages.fleet.cells import Cell
from dashboard.ui.pages.fleet.rows import LiveVersion
from dashboard.ui.templatetags.badges import version_mark
from dashboard.vocabulary import numbers

register = template.Library()


@lru_cache(maxsize=4096)
def _address(prefix: str, name: str, parts: tuple[object, ...]) -> str:
    return reverse(name, args=parts)


@register.simple_tag
def address(name: str, *parts: object) -> str:
    """Cached `url` tag: pages poll the fleet, and its hundreds of URLs are the same each time."""
    return _address(get_script_prefix(), name, parts)


@register.simple_tag
def figure_cell(cell: Cell, absent: str = "no report") -> SafeString:
    """A value with its change below, in the colour of its verdict, or the reason for a missing
    value."""
    if not cell.text:
        return format_html('<span class="dim">{}</span>', absent)
    changed = (
        format_html('<span class="delta {}">{}</span>', cell.css, cell.change)
        if cell.css
        else cell.change
    )
    below = (
        format_html('<span class="sub">{}{}</span>', changed, _detail(cell)) if cell.change else ""
    )
    return format_html('<span class="big">{}</span>{}', cell.text, below)


def _detail(cell: Cell, tag: str = "span") -> SafeString | str:
    """Source of the change."""
    return format_html(' <{0} class="from">{1}</{0}>', tag, cell.detail) if cell.detail else ""


@register.simple_tag
def other_roles(rows: Iterable[Any]) -> list[int]:
    """Roles beyond the newest version and its predecessor that occur in a sparkline, for the
    legend."""
    return sorted({line.role for row in rows for line in row.spark.lines if line.role > 2})


@register.simple_tag
def spark_drawn(spark: Spark, end_css: str = "") -> SafeString:
    """Content of a sparkline: deployments, lines, and a dot at the latest value of the newest
    version."""
    parts = [
        f'<path class="mk" d="M{x} 8V52"/><path class="mkf" d="{diamond}"/>'
        for x, diamond in spark.marks
    ]
    parts += [
        f'<path class="l{" thin" if line.thin else ""} s{line.role}" d="{line.path}"/>'
        for line in spark.lines
    ]
    if spark.end:
        role, x, y = spark.end
        parts.append(f'<circle class="f{role}{end_css}" cx="{x}" cy="{y}" r="3"/>')
    return mark_safe(
        "".join(parts)
    )  # The parts are numbers that were formatted here, not user input.


@register.simple_tag
def quantile_cells(p50: Cell, p99: Cell) -> SafeString:
    """Titles and values of p50 and p99, each with its change."""
    if not p50.text:
        return mark_safe('<dt>p50</dt><dd class="dim">no calls now</dd><dd></dd>')
    return format_html(
        '<dt>p50</dt><dd class="big">{}</dd><dd><span class="delta {}">{}</span></dd>{}'
        '<dt>p99</dt><dd>{}</dd><dd><span class="delta {}">{}</span></dd>{}',
        *(
            p50.text,
            p50.css,
            p50.change,
            _detail(p50, "dd"),
            p99.text,
            p99.css,
            p99.change,
            _detail(p99, "dd"),
        ),
    )


@register.simple_tag
def live_versions(
    slug: str, model_id: int, versions: Sequence[LiveVersion], environment: str
) -> SafeString:
    """Versions with traffic, each with its share of calls, and a bar of these shares."""
    tab = address("model_compiles", slug, model_id)
    env = f"&env={quote(environment, safe='')}" if environment else ""
    said = [
        (one, "no calls" if one.share is None else numbers.percent(one.share)) for one in versions
    ]
    listed = (
        (tab, f"?version={one.id}{env}", version_mark(one.role, one.name), share)
        for one, share in said
    )
    drawn = ((one.role, one.x, one.width) for one in versions if one.share)
    return format_html(
        '<ul class="adopt">{}<li><svg class="bar" viewBox="0 0 100 6" '
        'preserveAspectRatio="none" role="img" '
        'aria-label="Share of calls: {}"><rect class="track" width="100" '
        'height="6"/>{}</svg></li></ul>',
        format_html_join(
            "",
            '<li><a class="plain" href="{}{}">{}</a><span class="num mid">{}</span></li>',
            listed,
        ),
        ", ".join(f"{one.name} {share}" for one, share in said),
        format_html_join("", '<rect class="f{}" x="{}" y="0" width="{}" height="6"/>', drawn),
    )

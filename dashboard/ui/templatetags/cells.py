"""Cells of the Fleet table as tags: an included template costs ten times as much, and a fleet has
hundreds of cells."""

from functools import lru_cache
from html import escape

from django import template
from django.urls import get_script_prefix, reverse
from django.utils.safestring import SafeString, mark_safe

from dashboard.regressions.models import VerdictKind
from dashboard.ui.charts.sparkline import Spark
from dashboard.ui.layout import icons
from dashboard.ui.pages.fleet.cells import NO_CHANGE, Cell, ColdStartCell
from dashboard.ui.pages.fleet.rows import FleetRow
from dashboard.ui.pages.fleet.states import ModelState

register = template.Library()
CSS = {"drives": "rb", "caution": "wt"}
ROW_CSS = {VerdictKind.ROLL_BACK.value: "rollback", VerdictKind.WATCH.value: "watch"}
ABSENT = mark_safe('<span class="dim">no report</span>')


def _fill(shape: str, *values: object) -> SafeString:
    """The same as `format_html`, at a fifth of its cost: values that are not safe are escaped."""
    return mark_safe(
        shape.format(*(one if isinstance(one, SafeString) else escape(str(one)) for one in values))
    )


@lru_cache(maxsize=4096)
def _address(prefix: str, name: str, parts: tuple[object, ...]) -> str:
    return reverse(name, args=parts)


@register.simple_tag
def address(name: str, *parts: object) -> str:
    """Cached `url` tag: pages poll the fleet, and its hundreds of URLs are the same each time."""
    return _address(get_script_prefix(), name, parts)


@register.simple_tag
def row_class(row: FleetRow, silence: object) -> str:
    """The class of a row by its verdict; `stale` for a verdict on old data."""
    stale = "stale" if silence or row.state.stale else ""
    return " ".join(filter(None, (ROW_CSS.get(row.state.kind, "calm"), stale)))


@register.simple_tag
def verdict_word(kind: str) -> str:
    """The name of a verdict in lower case."""
    known = kind in VerdictKind.values
    return VerdictKind(kind).label.lower() if known else kind.replace("_", " ")


@register.simple_tag
def version_pill(slug: str, row: FleetRow) -> SafeString:
    """A link to the newest live version with its share of calls; all live versions for screen
    readers."""
    if not row.versions:
        return mark_safe('<span class="dim">none live</span>')
    first = row.versions[0]
    old = (
        _fill('<span class="vold dim"><bdi>{}</bdi> → </span>', row.old_name)
        if row.old_name
        else ""
    )
    listed = ", ".join(f"{one.name} {one.share_said}" for one in row.versions)
    return _fill(
        '<a class="vpill{}" href="{}?version={}" title="{}">{}{}'
        '<bdi class="vname">{}</bdi><span class="sh">{}</span></a>'
        '<span class="vh">Share of calls: {}</span>',
        " split" if row.split else "",
        address("model_compiles", slug, row.state.model.pk),
        first.id,
        listed,
        icons.version_shape(2),
        old,
        first.name,
        first.share_said,
        listed,
    )


@register.simple_tag
def change_cell(cell: Cell, called: bool, label: str) -> SafeString:
    """A change in the colour of its verdict, and below the two values that it was computed from.
    Another window than that of a verdict is named."""
    if not cell.text:
        reason = "no calls now" if called else f"no calls in {label}"
        return _fill('<span class="dim">{}</span>', reason)
    window = "" if cell.judged or cell.known else cell.window.removeprefix("last").strip()
    below = ", ".join(filter(None, (cell.pair or cell.change, window)))
    css = CSS.get(cell.css, "ok")
    return _fill(
        '<span class="d {}" title="{}">{}{}</span><span class="pair">{}</span>',
        css,
        cell.window,
        icons.draw_mark("worse") if css != "ok" else "",
        (cell.change or "0%") if cell.pair else cell.text,
        below,
    )


@register.simple_tag
def share_cell(cell: Cell) -> SafeString:
    """A share, and below its change in points."""
    if not cell.text:
        return ABSENT
    css = CSS.get(cell.css, "ok")
    return _fill(
        '<span class="d {}" title="{}">{}{}</span><span class="pair">{}</span>',
        css,
        cell.pair if cell.change != NO_CHANGE else "",
        icons.draw_mark("worse") if css != "ok" else "",
        cell.text,
        cell.change,
    )


@register.simple_tag
def cold_start_cell(cell: ColdStartCell | None) -> SafeString:
    """A cold start and its budget; marked if it is near the budget."""
    if cell is None:
        return ABSENT
    return _fill(
        '<span class="d {}">{}{}</span><span class="pair">{}</span>',
        "wt" if cell.near else "ok",
        icons.draw_mark("worse") if cell.near else "",
        cell.text,
        f"of {cell.budget}" if cell.budget else "no budget",
    )


@register.simple_tag
def instances_cell(slug: str, state: ModelState, silence: object) -> SafeString:
    """The number of instances; how many report, if some are silent."""
    if not state.instance_count:
        return mark_safe('<span class="dim">none</span>')
    count = str(state.instance_count)
    if state.reporting_count < state.instance_count:
        count = f"{state.reporting_count} of {count}"
    return _fill('<a href="{}">{}</a>', address("instances", slug, state.model.pk), count)


@register.simple_tag
def alerts_cell(slug: str, state: ModelState) -> SafeString:
    """The unresolved alerts by state."""
    if not state.alerts:
        return mark_safe('<span class="dim">none</span>')
    only = len(state.alerts) == 1
    href = address("alert", slug, state.alerts[0].number) if only else address("alerts", slug)
    parts = [
        _fill("<span>{}{}</span>", icons.draw_mark(f"alert-{name}"), f"{count} {name}")
        for name, count in state.standing
    ]
    return _fill('<a href="{}">{}</a>', href, mark_safe(" ".join(parts)))


@register.simple_tag
def detail(title: str, cell: Cell, label: str) -> SafeString | str:
    """A value of an expanded row with its change and window; empty without a report."""
    if not cell.text:
        return ""
    said = f"{cell.change} {cell.pair}" if cell.change else ""
    return _fill(
        '<span>{} {} <span class="dim">{}{}last {}</span></span>',
        title,
        cell.text,
        said,
        ", " if said else "",
        label,
    )


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

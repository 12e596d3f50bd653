"""Cells of the Fleet table as tags: an included template costs ten times as much, and a fleet has hundreds of them."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.ui.fleet_cells import Cell

register = template.Library()


@register.simple_tag
def figure_cell(cell: Cell, absent: str = "no report") -> SafeString:
    """A figure with its change below, in the colour of its verdict; or why there is none."""
    if not cell.text:
        return format_html('<span class="dim">{}</span>', absent)
    changed = format_html('<span class="delta {}">{}</span>', cell.css, cell.change) if cell.css else cell.change
    below = format_html('<span class="sub">{}</span>', changed) if cell.change else ""
    return format_html('<span class="big">{}</span>{}', cell.text, below)

"""Template tags for verdicts, labels, states and versions. Each shape has a text next to it."""

from functools import lru_cache

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.versions.data_age import stale_minutes
from dashboard.regressions.models import RetainedVerdict, VerdictKind
from dashboard.ui.layout import icons
from dashboard.ui.pages.help.glossary import get_entry
from dashboard.ui.templatetags.format_filters import clock_time, relative_time

register = template.Library()

BADGES = {
    VerdictKind.ROLL_BACK: "rollback",
    VerdictKind.WATCH: "watch",
    VerdictKind.HEALTHY: "healthy",
    VerdictKind.NOT_ENOUGH_DATA: "nodata",
}
LABELS = {
    "REGRESSED": ("worse", "worse", "REGRESSED"),
    "IMPROVED": ("better", "better", "IMPROVED"),
    "NO_CHANGE": ("same", "same", "NO CHANGE"),
    "NOT_ENOUGH_DATA": ("none", "not_enough_data", "NOT ENOUGH DATA"),
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """A line icon on the 16 px grid."""
    return icons.draw_line_icon(name)


@register.simple_tag
def mark(name: str, css: str = "") -> SafeString:
    """A filled mark on the 12 px grid."""
    return icons.draw_mark(name, css)


@register.simple_tag
def placed_mark(name: str, x: int, y: int, size: int) -> SafeString:
    """A mark at a place within a drawing."""
    return icons.place_mark(name, x, y, size)


@register.simple_tag
def state_mark(what: str, state: str) -> SafeString:
    """The mark of a state of an alert, a delivery or a worker."""
    return icons.draw_mark(f"{what}-{state}")


@register.simple_tag
@lru_cache(maxsize=64)
def verdict_badge(kind: str, size: str = "") -> SafeString:
    """The badge of a verdict; an unknown kind is shown as its own text."""
    known = kind if kind in VerdictKind.values else VerdictKind.NOT_ENOUGH_DATA.value
    text = VerdictKind(kind).label if kind in VerdictKind.values else kind.replace("_", " ").upper()
    return format_html(
        '<span class="badge {} {}">{}{}</span>',
        BADGES[VerdictKind(known)],
        size,
        icons.draw_mark(known),
        text,
    )


@register.simple_tag
def last_known(outlived: RetainedVerdict | None) -> SafeString | str:
    """Marks a verdict as last known, with its time and the current result; empty for a current
    verdict."""
    if not outlived:
        return ""
    now = (
        VerdictKind(outlived.kind_now).label.lower()
        if outlived.kind_now in VerdictKind.values
        else outlived.kind_now
    )
    if outlived.silent:
        return format_html(
            '<span class="tag line known"><span>A-{} is open; last evaluated {}</span></span>',
            outlived.alert,
            now,
        )
    text = '<span class="tag line known"><span>last known {}; {} now; A-{} is open</span></span>'
    return format_html(text, clock_time(outlived.known_at), now, outlived.alert)


@register.simple_tag
def stale_data(deployment: object) -> SafeString | str:
    """Age of the data of a verdict if the data is stale; empty while data arrives."""
    if not isinstance(deployment, Deployment) or stale_minutes(deployment) is None:
        return ""
    text = '<span class="tag line stale"><span>stale: last data {}</span></span>'
    return format_html(text, relative_time(clock.at_minute(deployment.last_minute)))


@register.simple_tag
@lru_cache(maxsize=4096, typed=True)  # The cache key includes whether the name is marked as safe.
def version_mark(role: int, name: str = "") -> SafeString:
    """The shape of a version's role, and its name. Directional characters in the name do not affect
    the surrounding text."""
    if not name:
        return format_html('<span class="ver">{}</span>', icons.version_shape(role))
    return format_html('<span class="ver">{}<bdi>{}</bdi></span>', icons.version_shape(role), name)


@register.simple_tag
def evidence_label(label: str, drives: bool = False, caution: bool = False) -> SafeString:
    """REGRESSED, NO CHANGE, IMPROVED or NOT ENOUGH DATA; red only if it drives a ROLL BACK."""
    css, shape, text = LABELS.get(label.replace(" ", "_").upper(), LABELS["NOT_ENOUGH_DATA"])
    if css == "worse":
        css = "worse drives" if drives else "worse caution" if caution else css
    return format_html('<span class="label {}">{}{}</span>', css, icons.draw_mark(shape), text)


@register.simple_tag
def instance_state(state: str, text: str = "", badly: bool = False) -> SafeString:
    """The shape and the name of an instance's state, or a longer text that contains the name.
    `badly`: the instance ended with an error or was killed by a signal."""
    return format_html(
        '<span class="state">{}{}</span>',
        icons.draw_mark("failed" if badly else f"state-{state}"),
        text or state,
    )


@register.simple_tag
def explain(key: str, place: str = "") -> SafeString:
    """A help button that explains a term; `place` distinguishes two buttons of the same term on one
    page."""
    entry, id = get_entry(key), f"what-{key}{'-' if place else ''}{place}"
    return format_html(
        '<button type="button" class="q" popovertarget="{}" aria-label="About {}">?</button>'
        '<span class="what" id="{}" popover><b>{}</b> {}</span>',
        id,
        entry.title,
        id,
        entry.title,
        entry.text,
    )


@register.simple_tag
def copy_button(target: str, what: str = "") -> SafeString:
    """A button that copies the text of the element with this ID."""
    return format_html(
        '<button type="button" class="btn sm copy" data-copy="{}">{}<span '
        "data-label>Copy</span>{}</button>",
        target,
        icons.draw_line_icon("copy"),
        format_html('<span class="vh"> {}</span>', what) if what else "",
    )

"""Icons: each verdict, label, instance state and version role has its own shape, so that no
information depends on colour alone."""

from __future__ import annotations

from functools import lru_cache

from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe

_LINE = 'fill="none" stroke="currentColor"'
_ROUND = 'stroke-linecap="round" stroke-linejoin="round"'
_DASHED = f'<circle cx="6" cy="6" r="4.4" {_LINE} stroke-width="1.5" stroke-dasharray="2.6 2"/>'

MARKS = {
    "roll_back": f'<path d="M3 5h4.2a2.6 2.6 0 0 1 0 5.2H4.5M5.2 2.4 2.6 5l2.6 2.6" {_LINE} '
    f'stroke-width="1.7" {_ROUND}/>',
    "watch": f'<path d="M6 1.6 11 10.4H1z" {_LINE} stroke-width="1.5" stroke-linejoin="round"/>'
    '<path d="M6 4.8v2.4M6 8.7v.1" stroke="currentColor" stroke-width="1.4" '
    'stroke-linecap="round"/>',
    "not_enough_data": _DASHED,
    "healthy": f'<circle cx="6" cy="6" r="4.9" {_LINE} stroke-width="1.3"/>'
    f'<path d="m3.8 6.2 1.6 1.6 2.9-3.3" {_LINE} stroke-width="1.5" {_ROUND}/>',
    "worse": '<path d="M6 2 11 10H1z" fill="currentColor"/>',
    "same": '<path d="M2 4.3h8M2 7.7h8" stroke="currentColor" stroke-width="1.7" '
    'stroke-linecap="round"/>',
    "better": f'<path d="M6 10 1 2h10z" {_LINE} stroke-width="1.6" stroke-linejoin="round"/>',
    "new": '<path d="M6 1.5v9M1.5 6h9" stroke="currentColor" stroke-width="1.8" '
    'stroke-linecap="round"/>',
    "gone": '<path d="M1.5 6h9" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/>',
    "life-new": '<path d="M6 1.5v9M1.5 6h9" stroke="currentColor" stroke-width="1.8" '
    'stroke-linecap="round"/>',
    "life-gone": '<path d="M1.5 6h9" stroke="currentColor" '
    'stroke-width="1.8" stroke-linecap="round"/>',
    "life-ongoing": '<path d="M2 4.3h8M2 7.7h8" stroke="currentColor" stroke-width="1.7" '
    'stroke-linecap="round"/>',
    "life-back": f'<path d="M9.6 6a3.6 3.6 0 1 1-1.2-2.7M8.6.9v2.600H6" {_LINE} stroke-width="1.6" '
    f"{_ROUND}/>",
    "deployment": '<path d="M6 1 11 6 6 11 1 6z" fill="currentColor"/>',
    "done": f'<path d="m2.2 6.4 2.6 2.6 5-5.6" {_LINE} stroke-width="1.7" {_ROUND}/>',
    "mail": f'<path d="M1.5 2.8h9v6.4h-9zM1.8 3.2 6 6.6l4.2-3.4" {_LINE} stroke-width="1.3" '
    'stroke-linejoin="round"/>',
    "failed": f'<path d="m3 3 6 6M9 3 3 9" {_LINE} stroke-width="1.7" stroke-linecap="round"/>',
    "snoozed": f'<circle cx="6" cy="6" r="4.5" {_LINE} stroke-width="1.4"/>'
    f'<path d="M6 3.4V6l1.8 1.2" {_LINE} stroke-width="1.4" {_ROUND}/>',
    "note": f'<path d="M2 2h8v6H6.5L4 10.4V8H2z" {_LINE} stroke-width="1.4" '
    'stroke-linejoin="round"/>',
    "state-healthy": '<circle cx="6" cy="6" r="4.5" fill="currentColor"/>',
    "state-warming": f'<circle cx="6" cy="6" r="4.3" {_LINE} stroke-width="1.5"/>'
    '<path d="M6 1.7a4.3 4.3 0 0 1 0 8.6z" fill="currentColor"/>',
    "state-degraded": f'<path d="M6 1 11 6 6 11 1 6z" {_LINE} stroke-width="1.6"/>',
    "state-eager": f'<path d="M6 1.6 11 10.4H1z" {_LINE} '
    'stroke-width="1.6" stroke-linejoin="round"/>',
    "state-compiling": f'<circle cx="6" cy="6" r="4.3" {_LINE} '
    'stroke-width="1.5"/><circle cx="6" cy="6" '
    'r="1.7" fill="currentColor"/>',
    "state-hung": '<rect x="1.5" y="1.5" width="9" height="9" fill="currentColor"/>',
    "state-silent": f'<circle cx="6" cy="6" r="4.4" {_LINE} '
    'stroke-width="1.5" stroke-dasharray="2 1.9"/>',
    "state-starting": f'<circle cx="6" cy="6" r="4.3" {_LINE} stroke-width="1.5"/>'
    f'<path d="M6 3.600V6h2.200" {_LINE} stroke-width="1.4" {_ROUND}/>',
    "state-ended": '<rect x="2.2" y="2.2" width="7.6" height="7.6" '
    f'rx="1" {_LINE} stroke-width="1.5"/>',
    "state-blind": f'<circle cx="6" cy="6" r="4.4" {_LINE} stroke-width="1.5"/>'
    '<path d="m3 9 6-6" stroke="currentColor" stroke-width="1.5"/>',
}

MARKS |= {
    "model": '<rect x="1.8" y="1.8" width="8.4" height="8.4" '
    f'rx="1.6" {_LINE} stroke-width="1.4"/>',
    "finding": f'<circle cx="5.2" cy="5.2" r="3.4" {_LINE} stroke-width="1.4"/>'
    f'<path d="m7.8 7.8 2.7 2.7" {_LINE} stroke-width="1.4" {_ROUND}/>',
    "instance": f'<rect x="1.2" y="3" width="9.6" height="6" rx="1.2" {_LINE} stroke-width="1.4"/>'
    f'<path d="M3.4 6h.1M5.6 6h3" {_LINE} {_ROUND}/>',
    "document": f'<path d="M2.6 1.2h4.8l2 2v7.6H2.6z" {_LINE} stroke-width="1.4" '
    'stroke-linejoin="round"/>'
    f'<path d="M4.6 5.6h2.8M4.6 8h2.8" {_LINE} stroke-width="1.2" {_ROUND}/>',
    "more": f'<path d="m4.5 3 3 3-3 3" {_LINE} stroke-width="1.6" {_ROUND}/>',
    "enlarge": '<path d="M7.5 1.5h3v3M4.5 10.5h-3v-3M10.5 1.5 7 5M1.5 10.5 5 7" '
    f'{_LINE} stroke-width="1.4" {_ROUND}/>',
    "sort-down": f'<path d="M6 2v8M3 7l3 3 3-3" {_LINE} stroke-width="1.4" {_ROUND}/>',
    "right": f'<path d="m4.5 3 3 3-3 3" {_LINE} stroke-width="1.6" {_ROUND}/>',
    "sort-up": f'<path d="M6 10V2M3 5l3-3 3 3" {_LINE} stroke-width="1.4" {_ROUND}/>',
}

# States of alerts, notifications and workers: their shapes differ from those of healthy and silent
# instances.
MARKS |= {
    "alert-open": '<path d="M2.2 9c1-1 1.2-1.9 1.2-3.6a2.6 2.6 0 0 1 5.2 0c0 1.7.2 2.6 1.2 3.6z" '
    f'{_LINE} stroke-width="1.4" {_ROUND}/>'
    f'<path d="M5 10.8h2" {_LINE} stroke-width="1.4" {_ROUND}/>',
    "alert-acknowledged": f'<circle cx="6" cy="3.7" r="2.1" {_LINE} stroke-width="1.4"/>'
    f'<path d="M2 10.6a4 4 0 0 1 8 0" {_LINE} stroke-width="1.4" {_ROUND}/>',
    "alert-snoozed": MARKS["snoozed"],
    "alert-resolved": MARKS["done"],
    "delivery-delivered": '<path d="m.8 6.6 2.3 2.3 4.2-5M5.8 8.4l.6.5 '
    f'4.6-5" {_LINE} stroke-width="1.4" '
    f"{_ROUND}/>",
    "delivery-waiting": f'<path d="M3 1.5h6M3 10.5h6" {_LINE} stroke-width="1.3" {_ROUND}/>'
    f'<path d="M3.6 1.5c0 3 4.8 6 4.8 9M8.4 1.5c0 3-4.8 6-4.8 9" {_LINE} '
    f'stroke-width="1.3" {_ROUND}/>',
    "delivery-held": f'<path d="M4 2.5v7M8 2.5v7" {_LINE} stroke-width="1.8" {_ROUND}/>',
    "delivery-merged": '<path d="M2 2.5c0 4 4 1.5 4 7M10 2.5c0 4-4 '
    f'1.5-4 7" {_LINE} stroke-width="1.5" '
    f"{_ROUND}/>",
    "delivery-dead": MARKS["failed"],
    "worker-works": '<path d="M2 6h2l1.3-3.5L7 9.5 8.2 6H10" '
    f'{_LINE} stroke-width="1.4" {_ROUND}/>',
    "worker-idle": f'<path d="M3.5 2.5v7l5.5-3.5z" {_LINE} stroke-width="1.4" {_ROUND}/>',
    "worker-gone": f'<path d="M6 1.5v4.2M3.4 3.2a4.2 4.2 0 1 0 5.2 0" {_LINE} stroke-width="1.5" '
    f"{_ROUND}/>",
}

# Larger line icons on a 16 x 16 grid; app.css draws them with `svg.i`.
LINE_ICONS = {
    "down": '<path d="m4 6 4 4 4-4"/>',
    "copy": '<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 3.5v-1h-8v8h1"/>',
    "info": '<circle cx="8" cy="8" r="6"/><path d="M8 7.3v3.7M8 5v.1"/>',
    "caution": '<path d="M8 2.2 14.3 13H1.7zM8 6.3v3.2M8 11.3v.1"/>',
    "lock": '<rect x="3.5" y="7" width="9" height="6.5" rx="1.2"/><path d="M5.5 7V5a2.5 2.5 0 0 1 '
    '5 0v2"/>',
    "stop": '<path d="M5.5 2h5L14 5.5v5L10.5 14h-5L2 10.5v-5zM8 5v3.5M8 10.8v.1"/>',
    "tick": '<path d="m3 8.5 3.3 3.3L13 4.8"/>',
    "busy": '<path d="M8 2a6 6 0 1 0 6 6"/>',
    "search": '<circle cx="7" cy="7" r="4.5"/><path d="m10.5 10.5 3.500 3.500"/>',
    "close": '<path d="m4 4 8 8M12 4l-8 8"/>',
}

# Versions by role: 1 the baseline (grey square), 2 the evaluated version (blue circle), then others
# in order of deployment.
VERSION_SHAPES = (
    '<rect x="1.2" y="1.2" width="7" height="7"/>',
    '<circle cx="4.5" cy="4.5" r="4"/>',
    '<path d="M4.5.5 8.8 8.3H.2z"/>',
    '<path d="M4.5 0 9 4.5 4.5 9 0 4.5z"/>',
    '<path d="M3.2 0h2.600v3.2H9v2.600H5.8V9H3.2V5.8H0V3.2h3.2z"/>',
    '<path d="M.2.7h8.600L4.5 8.5z"/>',
)


@lru_cache(maxsize=256)
def draw_mark(name: str, css: str = "") -> SafeString:
    """A filled mark on a 12 x 12 grid. An unknown name draws the dashed ring for unknown states."""
    inner = mark_safe(MARKS.get(name, _DASHED))
    return format_html(
        '<svg viewBox="0 0 12 12" aria-hidden="true" class="{}">{}</svg>', css or "m", inner
    )


@lru_cache(maxsize=256)
def draw_line_icon(name: str) -> SafeString:
    """A line icon on a 16 x 16 grid."""
    return format_html(
        '<svg class="i" viewBox="0 0 16 16" aria-hidden="true">{}</svg>',
        mark_safe(LINE_ICONS[name]),
    )


@lru_cache(maxsize=256)
def version_shape(role: int) -> SafeString:
    """The shape and colour class of a version's role, 1 to 6."""
    role = min(max(role, 1), len(VERSION_SHAPES))
    return format_html(
        '<svg viewBox="0 0 9 9" class="f{}" aria-hidden="true">{}</svg>',
        role,
        mark_safe(VERSION_SHAPES[role - 1]),
    )

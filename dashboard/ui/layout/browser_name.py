"""Browser name: Firefox on Linux, from a User-Agent header."""

from __future__ import annotations

_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR", "Opera"),
    ("Firefox", "Firefox"),
    ("Chrome", "Chrome"),
    ("Safari", "Safari"),
)
_SYSTEMS = (
    ("Android", "Android"),
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Windows", "Windows"),
    ("Mac OS", "macOS"),
    ("Linux", "Linux"),
)


def browser_name(agent: str) -> str:
    """Returns a name such as "Firefox on Linux", or an empty string for an unknown browser.
    Browsers include the names of older browsers in their header, so the rarest name takes
    precedence."""
    name = next((said for part, said in _BROWSERS if part in agent), "")
    system = next((said for part, said in _SYSTEMS if part in agent), "")
    return f"{name} on {system}" if name and system else name

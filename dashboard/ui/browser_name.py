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
    """Firefox on Linux; a browser calls itself by the names of those before it, so the rarest name
    counts. Empty where none is known."""
    name = next((said for part, said in _BROWSERS if part in agent), "")
    system = next((said for part, said in _SYSTEMS if part in agent), "")
    return f"{name} on {system}" if name and system else name

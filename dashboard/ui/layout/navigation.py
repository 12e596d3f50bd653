"""Navigation of a project: the label, URL names and keyboard shortcut of each entry."""

from __future__ import annotations

from dataclasses import dataclass

from django.urls import reverse


@dataclass(frozen=True)
class Section:
    """One entry of the navigation. `names` are prefixes of the URL names that belong to it; `key`
    follows `g` on the keyboard. The bar shows four entries, the account menu the others."""

    key: str
    label: str
    name: str
    names: tuple[str, ...]
    in_bar: bool = True


SECTIONS = (
    Section(
        "f",
        "Fleet",
        "fleet",
        ("fleet", "model", "compare", "version", "baseline", "instance", "rank", "switch"),
    ),
    Section("a", "Alerts", "alerts", ("alert", "grades")),
    Section("n", "Findings", "findings", ("finding",)),
    Section(
        "e",
        "Settings",
        "judging",
        (
            "judging",
            "rule",
            "guide",
            "maintenance",
            "keys",
            "key_add",
            "key_remove",
            "member",
            "settings",
            "audit",
            "data",
            "budget",
            "setup",
            "command_key",
            "key_make",
            "channel",
        ),
    ),
    Section("s", "Setup", "setup", (), in_bar=False),
    Section("h", "Health", "health", ("health",), in_bar=False),
)


@dataclass(frozen=True)
class NavigationLink:
    """One navigation link. `current` is `page` on the page itself, `true` on a page below it, else
    empty."""

    key: str
    label: str
    url: str
    name: str
    current: str
    in_bar: bool


def build_navigation(slug: str, here: str) -> list[NavigationLink]:
    """The navigation of a project, seen from the URL named `here`."""
    return [_link(section, slug, here) for section in SECTIONS]


def _link(section: Section, slug: str, here: str) -> NavigationLink:
    current = "page" if here == section.name else "true" if here.startswith(section.names) else ""
    return NavigationLink(
        section.key,
        section.label,
        reverse(section.name, args=[slug]),
        section.name,
        current,
        section.in_bar,
    )

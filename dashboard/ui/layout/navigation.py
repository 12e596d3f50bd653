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
        (
            "fleet",
            "model",
            "compare",
            "version",
            "baseline",
            "instance",
            "rank",
            "switch",
            "compile_cost",
            "latency_map",
            "breakdown",
        ),
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

HELP = (
    ("fleet", "dashboard/pages", "fleet"),
    ("model", "dashboard/pages", "tabs-of-a-model"),
    ("version", "dashboard/pages", "tabs-of-a-model"),
    ("compare", "dashboard/pages", "compare"),
    ("instance", "dashboard/pages", "instances-and-ranks"),
    ("rank", "dashboard/pages", "instances-and-ranks"),
    ("finding", "dashboard/pages", "findings"),
    ("alert_grades", "dashboard/pages", "alert-quality"),
    ("alert", "dashboard/pages", "alerts"),
    ("switch", "dashboard/pages", "kill-switch"),
    ("judging", "dashboard/pages", "detection-settings"),
    ("rule", "dashboard/pages", "notifications"),
    ("guide", "dashboard/pages", "runbooks"),
    ("member", "dashboard/pages", "roles"),
    ("keys", "dashboard/security", ""),
    ("data", "dashboard/operations/settings", "settings-of-a-project"),
    ("setup", "dashboard/pages", "setup"),
    ("health", "dashboard/operations/troubleshooting", ""),
)
"""The document and heading that explain the pages whose URL name begins with the prefix; the first
prefix that fits counts."""


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


def build_help_link(here: str) -> str:
    """The address of the document that explains the page named `here`; else the index of help."""
    for prefix, document, heading in HELP:
        if here.startswith(prefix):
            address = reverse("help_document", args=[document])
            return f"{address}#s-{heading}" if heading else address
    return reverse("help")


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

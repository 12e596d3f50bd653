"""The rows of Settings > Data: a number of days a kind of fact, and what a project may report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboard.projects.cardinality_limits import COUNTED, limits_of
from dashboard.projects.models import Project
from dashboard.projects.rate_limit import rate_of, waiting_of
from dashboard.projects.retention import BOUNDS, WORDS, Retention, days_expected, retention_of

NAMES = {
    "instance_minutes": "Minutes of instances",
    "version_minutes": "Minutes of versions",
    "version_hours": "Hours of versions",
    "compile_events": "Compilations",
}
THINGS = {"environment": "Environments", "series": "Series", "version": "Versions", "instance": "Instances", "finding": "Findings"}


@dataclass
class Given:
    """What stands in the fields, which of it are days, and what is wrong with the rest."""

    text: dict[str, str]
    days: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DaysRow:
    """One field."""

    name: str
    label: str
    about: str
    value: str
    least: int
    most: int
    default: int
    error: str


@dataclass(frozen=True)
class DataPage:
    """The whole page."""

    rows: list[DaysRow]
    limits: list[tuple[str, int, str]]
    rate: float
    waiting: int


def data_page(project: Project, given: Given | None = None) -> DataPage:
    """From the project's settings alone; fields keep what was typed into them."""
    kept, defaults, limits = retention_of(project.settings).as_dict(), Retention().as_dict(), limits_of(project.settings).as_dict()
    rows = [
        DaysRow(
            name=name,
            label=label,
            about=WORDS[name],
            value=given.text.get(name, "") if given else str(kept[name]),
            least=BOUNDS[name][0],
            most=BOUNDS[name][1],
            default=defaults[name],
            error=given.errors.get(name, "") if given else "",
        )
        for name, label in NAMES.items()
    ]
    return DataPage(
        rows,
        [(THINGS[kind], number, COUNTED[kind]) for kind, number in limits.items()],
        rate_of(project.settings),
        waiting_of(project.settings),
    )


def days_wrong(name: str, given: str, expected: str) -> str:
    """What is wrong with a field, which is called as the page calls it."""
    return f"{NAMES[name]}: expected {expected}, not {given}."


def days_read(post: Mapping[str, str]) -> Given:
    """An empty field is the default."""
    given = Given({name: str(post.get(name, "")).strip() for name in NAMES})
    for name, text in given.text.items():
        if text and not (text.isascii() and text.isdecimal() and len(text) <= 6):
            given.errors[name] = days_wrong(name, f"“{text[:40]}”", days_expected(name))
        else:
            given.days[name] = int(text) if text else Retention().as_dict()[name]
    return given

"""Settings > Data: retention in days per kind of data, and the limits of a project."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from dashboard.projects.cardinality_limits import LIMIT_PERIODS, read_limits
from dashboard.projects.models import Project
from dashboard.projects.rate_limit import read_rate, read_waiting_limit
from dashboard.projects.retention import (
    RETENTION_BOUNDS_DAYS,
    RETENTION_LABELS,
    Retention,
    describe_day_bounds,
    read_retention,
)

NAMES = {
    "instance_minutes": "Minutes of instances",
    "version_minutes": "Minutes of versions",
    "version_hours": "Hours of versions",
    "compile_events": "Compilations",
}
THINGS = {
    "environment": "Environments",
    "series": "Series",
    "version": "Versions",
    "instance": "Instances",
    "finding": "Findings",
}


@dataclass
class DataInput:
    """Posted fields: the texts, the valid numbers of days, and an error for each invalid field."""

    text: dict[str, str]
    days: dict[str, int] = field(default_factory=dict)
    errors: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class DaysRow:
    """One retention field."""

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
    """All data of the page."""

    rows: list[DaysRow]
    limits: list[tuple[str, int, str]]
    rate: float
    waiting: int


def data_page(project: Project, given: DataInput | None = None) -> DataPage:
    """The page from the project's settings; after an error, the fields keep the posted texts."""
    kept, defaults, limits = (
        read_retention(project.settings).as_dict(),
        Retention().as_dict(),
        read_limits(project.settings).as_dict(),
    )
    rows = [
        DaysRow(
            name=name,
            label=label,
            about=RETENTION_LABELS[name],
            value=given.text.get(name, "") if given else str(kept[name]),
            least=RETENTION_BOUNDS_DAYS[name][0],
            most=RETENTION_BOUNDS_DAYS[name][1],
            default=defaults[name],
            error=given.errors.get(name, "") if given else "",
        )
        for name, label in NAMES.items()
    ]
    return DataPage(
        rows,
        [(THINGS[kind], number, LIMIT_PERIODS[kind]) for kind, number in limits.items()],
        read_rate(project.settings),
        read_waiting_limit(project.settings),
    )


def explain_days_error(name: str, given: str, expected: str) -> str:
    """The error of a field, with the label of the page."""
    return f"{NAMES[name]}: expected {expected}, not {given}."


def days_read(post: Mapping[str, str]) -> DataInput:
    """Parses the posted days; an empty field means the default."""
    given = DataInput({name: str(post.get(name, "")).strip() for name in NAMES})
    for name, text in given.text.items():
        if text and not (text.isascii() and text.isdecimal() and len(text) <= 6):
            given.errors[name] = explain_days_error(
                name, f"“{text[:40]}”", describe_day_bounds(name)
            )
        else:
            given.days[name] = int(text) if text else Retention().as_dict()[name]
    return given

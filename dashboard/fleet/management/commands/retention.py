"""`manage.py retention`: shows and changes the retention of a project's data, in days."""

from collections.abc import Iterator

from dashboard.projects.management.settings_command import SettingsCommand
from dashboard.projects.models import Project
from dashboard.projects.retention import (
    RETENTION_BOUNDS_DAYS,
    RETENTION_LABELS,
    Retention,
    read_retention,
)
from dashboard.projects.services import retention_set


class Command(SettingsCommand):
    """`manage.py retention --project ranking --set instance_minutes=14 version_hours=800`"""

    help = (
        "Shows or changes the retention of each project's data, in days. Verdicts, findings and "
        "alerts are retained indefinitely."
    )
    names, metavar, number, example = (
        RETENTION_BOUNDS_DAYS,
        "NAME=DAYS",
        "a whole number of days",
        "version_hours=400",
    )

    def change(self, project: Project, changes: dict[str, int]) -> None:
        """Store the changed retention."""
        retention_set(project=project, changes=changes, actor_name="retention")

    def lines(self, project: Project) -> Iterator[str]:
        """Return one line per setting, with its bounds and its label."""
        kept, usual = read_retention(project.settings).as_dict(), Retention().as_dict()
        for name, days in kept.items():
            least, most = RETENTION_BOUNDS_DAYS[name]
            note = "" if days == usual[name] else f", default {usual[name]}"
            yield f"{name:<17}{days:>5} days  ({least} to {most}{note})  {RETENTION_LABELS[name]}"

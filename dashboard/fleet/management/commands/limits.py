"""`manage.py limits`: shows and changes the cardinality limits of a project."""

from collections.abc import Iterator

from dashboard.projects.cardinality_limits import LIMIT_PERIODS, CardinalityLimits, read_limits
from dashboard.projects.management.settings_command import SettingsCommand
from dashboard.projects.models import Project
from dashboard.projects.services import limits_set


class Command(SettingsCommand):
    """`manage.py limits --project ranking --set version=400 series=10000`"""

    help = (
        "Shows or changes the cardinality limits of a project. Entities beyond a limit are "
        "counted under `other`."
    )
    names, example = LIMIT_PERIODS, "version=400"

    def change(self, project: Project, changes: dict[str, int]) -> None:
        """Store the changed limits."""
        limits_set(project=project, changes=changes, actor_name="limits")

    def lines(self, project: Project) -> Iterator[str]:
        """Return one line per kind, with the default where the limit differs."""
        for name, number in read_limits(project.settings).as_dict().items():
            usual = getattr(CardinalityLimits(), name)
            note = "" if number == usual else f"  (default {usual:,})"
            yield f"{name:<12}{number:>9,} {LIMIT_PERIODS[name]}{note}"

"""`manage.py rate`: how many reports a second each project may send, and how to change it."""

from collections.abc import Iterator

from dashboard.projects.management.settings_command import SettingsCommand
from dashboard.projects.models import Project
from dashboard.projects.rate import RATE_SETTING, REPORTS_PER_SECOND, rate_of
from dashboard.projects.services import rate_set


class Command(SettingsCommand):
    """`manage.py rate --project ranking --set reports_per_second=200`"""

    help = "Shows or changes how many reports a second a project may send to each web process. Above it agents hear 429 and wait."
    names, example = (RATE_SETTING,), f"{RATE_SETTING}=200"

    def change(self, project: Project, changes: dict[str, int]) -> None:
        """Another rate; web processes know it within a second."""
        rate_set(project=project, changes=changes, actor_name="rate")

    def lines(self, project: Project) -> Iterator[str]:
        """The rate, with what is usual where it differs."""
        rate = rate_of(project.settings)
        yield f"{RATE_SETTING}{rate:>9,.15g}" + ("" if rate == REPORTS_PER_SECOND else f"  (usually {REPORTS_PER_SECOND:,.0f})")

"""Rate command: `manage.py rate` shows or changes the quota of each project: reports per second and
queued reports."""

from collections.abc import Iterator

from dashboard.projects.management.settings_command import SettingsCommand
from dashboard.projects.models import Project
from dashboard.projects.rate_limit import RATE_SETTING, WAITING_SETTING, read_quota
from dashboard.projects.services import quota_set


class Command(SettingsCommand):
    """Example: `manage.py rate --project ranking --set reports_per_second=200`."""

    help = (
        "Shows or changes the quota of a project: reports per second to each web process, and "
        "the maximum number of queued reports. Above the quota, agents receive 429 and wait."
    )
    names, example = (RATE_SETTING, WAITING_SETTING), f"{RATE_SETTING}=200"

    def change(self, project: Project, changes: dict[str, int]) -> None:
        """Sets the quota; web processes apply it within a second."""
        quota_set(project=project, changes=changes, actor_name="rate")

    def lines(self, project: Project) -> Iterator[str]:
        """The quota in force, with the default where it differs."""
        usual = read_quota({})
        for name, number in read_quota(project.settings).items():
            yield f"{name:<18}{number:>9,.15g}" + (
                "" if number == usual[name] else f"  (default {usual[name]:,.0f})"
            )

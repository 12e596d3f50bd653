"""`manage.py retention`: how long each project keeps what it counted, and how to keep it for another time."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.projects.models import Project
from dashboard.projects.retention import BOUNDS, WORDS, Retention, RetentionError, retention_of
from dashboard.projects.services import retention_set


class Command(BaseCommand):
    """`manage.py retention --project ranking --set instance_minutes=14 version_hours=800`"""

    help = "Shows how many days each project keeps what, or changes it. Verdicts, findings and alerts are kept for ever."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Without --project every project is shown."""
        parser.add_argument("--project", metavar="SLUG", help="the project's short name, as it stands in its address")
        parser.add_argument("--set", nargs="+", metavar="NAME=DAYS", default=[], help=f"of {', '.join(BOUNDS)}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Says what is kept, after the change if there is one."""
        projects = Project.objects.order_by("slug")
        if options["project"]:
            projects = projects.filter(slug=options["project"])
            if not projects:
                raise CommandError(f"There is no project {options['project']!r}.")
        if options["set"]:
            if not options["project"]:
                raise CommandError("--set needs --project: which project keeps it for another time?")
            try:
                retention_set(project=projects[0], changes=_changes(options["set"]), actor_name="retention")
            except RetentionError as error:
                raise CommandError(str(error)) from error
        for project in projects.all():
            self._say(project)

    def _say(self, project: Project) -> None:
        kept, usual = retention_of(project.settings).as_dict(), Retention().as_dict()
        self.stdout.write(project.slug)
        for name, days in kept.items():
            least, most = BOUNDS[name]
            told = "" if days == usual[name] else f", usually {usual[name]}"
            self.stdout.write(f"  {name:<17}{days:>5} days  ({least} to {most}{told})  {WORDS[name]}")


def _changes(words: list[str]) -> dict[str, int]:
    changes = {}
    for word in words:
        name, _, days = word.partition("=")
        if not days.isascii() or not days.isdecimal() or len(days) > 6:
            raise RetentionError(f"{word} is not understood, expected a name and a whole number of days such as version_hours=400.")
        changes[name] = int(days)
    return changes

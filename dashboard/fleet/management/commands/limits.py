"""`manage.py limits`: how many different things each project may report, and how to change it."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from dashboard.projects.limits import COUNTED, LimitError, Limits, limits_of
from dashboard.projects.models import Project
from dashboard.projects.services import limits_set


class Command(BaseCommand):
    """`manage.py limits --project ranking --set version=400 series=10000`"""

    help = "Shows or changes how many series, versions, instances and findings a project may have. What is beyond is counted under `other`."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Without --project every project is shown."""
        parser.add_argument("--project", metavar="SLUG", help="the project's short name, as it stands in its address")
        parser.add_argument("--set", nargs="+", metavar="NAME=NUMBER", default=[], help=f"of {', '.join(COUNTED)}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Says what the limits are, after the change if there is one."""
        projects = Project.objects.order_by("slug")
        if options["project"]:
            projects = projects.filter(slug=options["project"])
            if not projects:
                raise CommandError(f"There is no project {options['project']!r}.")
        if options["set"]:
            if not options["project"]:
                raise CommandError("--set needs --project: which project gets another limit?")
            try:
                limits_set(project=projects[0], changes=_changes(options["set"]), actor_name="limits")
            except LimitError as error:
                raise CommandError(str(error)) from error
        for project in projects.all():
            self.stdout.write(project.slug)
            for name, number in limits_of(project.settings).as_dict().items():
                usual = getattr(Limits(), name)
                told = "" if number == usual else f"  (usually {usual:,})"
                self.stdout.write(f"  {name:<10}{number:>9,} {COUNTED[name]}{told}")


def _changes(words: list[str]) -> dict[str, int]:
    changes = {}
    for word in words:
        name, _, number = word.partition("=")
        if not number.isascii() or not number.isdecimal() or len(number) > 9:
            raise LimitError(f"{word} is not understood, expected a name and a whole number such as version=400.")
        changes[name] = int(number)
    return changes

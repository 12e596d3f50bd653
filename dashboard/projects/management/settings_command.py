"""Base of the commands that show and change a project's numbers: `--project` and `--set
NAME=NUMBER`."""

from abc import ABC, abstractmethod
from argparse import ArgumentParser
from collections.abc import Collection, Iterator
from typing import Any

from django.core.management.base import CommandError

from dashboard.common.management.operator_command import OperatorCommand
from dashboard.projects.models import Project

MAX_DIGITS = 9


class SettingsCommand(OperatorCommand, ABC):
    """Command that lists and changes numbers of projects. A subclass defines the names, the change
    and the output."""

    names: Collection[str]
    example: str
    """Example of an assignment, such as version=400."""

    metavar = "NAME=NUMBER"
    number = "a whole number"

    @abstractmethod
    def change(self, project: Project, changes: dict[str, int]) -> None:
        """Applies the changes. Raises ValueError with a sentence."""

    @abstractmethod
    def lines(self, project: Project) -> Iterator[str]:
        """Yields the output lines for the current numbers."""

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Adds `--project` and `--set`. Without `--project`, every project is shown."""
        parser.add_argument(
            "--project",
            metavar="SLUG",
            help="the project's short name, as in its URL",
        )
        parser.add_argument(
            "--set", nargs="+", metavar=self.metavar, default=[], help=f"of {', '.join(self.names)}"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Applies the changes, if any, and prints the numbers."""
        projects = Project.objects.order_by("slug")
        if options["project"]:
            projects = projects.filter(slug=options["project"])
            if not projects:
                raise CommandError(f"There is no project {options['project']!r}.")
        if options["set"]:
            if not options["project"]:
                raise CommandError("--set requires --project: name the project.")
            try:
                self.change(projects[0], self._changes(options["set"]))
            except ValueError as error:
                raise CommandError(str(error)) from error
        for project in projects.all():
            self.stdout.write(project.slug)
            for line in self.lines(project):
                self.stdout.write(f"  {line}")

    def _changes(self, words: list[str]) -> dict[str, int]:
        changes = {}
        for word in words:
            name, _, number = word.partition("=")
            if not number.isascii() or not number.isdecimal() or len(number) > MAX_DIGITS:
                raise ValueError(
                    f"{word} is not valid, expected a name and {self.number} such as "
                    f"{self.example}."
                )
            changes[name] = int(number)
        return changes

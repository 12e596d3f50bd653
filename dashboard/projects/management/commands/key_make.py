"""Key command: `manage.py key_make --kind api --name prometheus` creates a key, for example for
Prometheus to read /metrics."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from dashboard.common.management.operator_command import OperatorCommand
from dashboard.projects.models import Project
from dashboard.projects.services import key_create


class Command(OperatorCommand):
    """Creates a key and prints it once."""

    help = (
        "Creates a key that reads (api), sends reports (ing) or records deployments (dep), and "
        "prints the key once."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--project", help="The project's short name; optional if there is only one project."
        )
        parser.add_argument(
            "--kind",
            choices=("api", "ing", "dep"),
            default="api",
            help="api (default), ing or dep.",
        )
        parser.add_argument(
            "--name", default="", help="The purpose of the key, such as prometheus."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        slug = options["project"]
        found = list((Project.objects.filter(slug=slug) if slug else Project.objects.all())[:2])
        if len(found) != 1:
            raise CommandError(
                f"There is no project {slug}."
                if slug
                else "Set --project: there is more than one project."
            )
        _, text = key_create(
            project=found[0], kind=options["kind"], name=options["name"], actor_name="key_make"
        )
        self.stdout.write(text)

"""Setup command: creates a project with its first key, and a person who may sign in. Prints the
secrets once."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import CommandError, CommandParser

from dashboard.common.management.operator_command import OperatorCommand
from dashboard.projects.bootstrap import project_setup


class Command(OperatorCommand):
    """Example: `manage.py setup_project --name Ranking --user ada`."""

    help = __doc__

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--name",
            default="Default",
            help="The project's name; an existing project is not changed.",
        )
        parser.add_argument(
            "--user", help="The project's admin; created with a new password if unknown."
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            setup = project_setup(name=options["name"], username=options["user"])
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        self.stdout.write(f"project:  {setup.project.slug}")
        if setup.user is not None:
            self.stdout.write(f"user:     {setup.user.get_username()}")
            self.stdout.write(f"password: {setup.password or '(as before)'}")
        self.stdout.write(f"key:      {setup.key or '(as before; make another on the Setup page)'}")

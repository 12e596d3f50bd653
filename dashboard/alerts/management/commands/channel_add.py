"""`manage.py channel_add slack https://hooks.slack.com/... --project search`: a channel for alerts,
from the command line."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.alerts.channels import CHANNELS
from dashboard.alerts.services import channel_create, channel_test
from dashboard.projects.models import Project


class Command(BaseCommand):
    """Adds a channel, and with --test owes it a test message."""

    help = "Adds a channel that alerts are sent to."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=sorted(CHANNELS))
        parser.add_argument("url", help="The webhook's address.")
        parser.add_argument(
            "--project", help="The project's short name; may be left out when there is only one."
        )
        parser.add_argument(
            "--name", default="alerts", help="What people call it, such as #ranking-alerts."
        )
        parser.add_argument("--test", action="store_true", help="Send a test message.")

    def handle(self, *args: Any, **options: Any) -> None:
        project = self._project(options["project"])
        try:
            channel = channel_create(
                project=project,
                kind=options["kind"],
                name=options["name"],
                address=options["url"],
                actor_name="channel_add",
            )
        except ValueError as error:
            raise CommandError(str(error)) from error
        self.stdout.write(
            f"Alerts of {project.name} go to the {CHANNELS[channel.kind].label} channel "
            f"{channel.name}."
        )
        if channel.secret:
            self.stdout.write(f"Its signing secret, shown once: {channel.secret}")
        if options["test"]:
            channel_test(channel=channel, actor_name="channel_add")
            self.stdout.write("A test message is on its way.")

    def _project(self, slug: str | None) -> Project:
        projects = Project.objects.filter(slug=slug) if slug else Project.objects.all()
        found = list(projects[:2])
        if len(found) != 1:
            raise CommandError(
                f"--project: there is no project {slug}."
                if slug
                else "--project: say which project."
            )
        return found[0]

"""`manage.py channel_add slack https://hooks.slack.com/... --project search`: adds a notification
channel from the command line."""

from typing import Any

from django.core.management.base import CommandError, CommandParser

from dashboard.alerts.channels import CHANNELS
from dashboard.alerts.services import channel_create, channel_test
from dashboard.common.management.operator_command import OperatorCommand
from dashboard.projects.models import Project


class Command(OperatorCommand):
    """Adds a channel, and with `--test` queues a test message."""

    help = "Add a notification channel for alerts."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("kind", choices=sorted(CHANNELS))
        parser.add_argument("url", help="Address of the webhook.")
        parser.add_argument(
            "--project", help="Slug of the project; optional if there is only one project."
        )
        parser.add_argument(
            "--name", default="alerts", help="Name of the channel, such as #ranking-alerts."
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
            f"Alerts for {project.name} will be sent to the {CHANNELS[channel.kind].label} "
            f"channel {channel.name}."
        )
        if channel.secret:
            self.stdout.write(f"Signing secret (shown once): {channel.secret}")
        if options["test"]:
            channel_test(channel=channel, actor_name="channel_add")
            self.stdout.write("Test notification queued.")

    def _project(self, slug: str | None) -> Project:
        projects = Project.objects.filter(slug=slug) if slug else Project.objects.all()
        found = list(projects[:2])
        if len(found) != 1:
            raise CommandError(
                f"--project: project {slug} not found."
                if slug
                else "--project: required unless there is exactly one project."
            )
        return found[0]

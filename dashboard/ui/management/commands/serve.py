"""`manage.py serve`: the embedded dashboard, everything in one process, until Ctrl-C."""

import os
import signal
import sys
import threading
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.common.bind_port import PortUnavailableError, port_claim, raise_descriptor_limit
from dashboard.environment.groups import is_loopback, local_host, local_url
from dashboard.environment.settings import SettingError
from dashboard.projects.bootstrap import project_setup
from dashboard.single_process import EmbeddedServer
from dashboard.wsgi import application


class Command(BaseCommand):
    """Serves on 127.0.0.1; other addresses are refused until a user with a password exists."""

    help = __doc__ or ""
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--host",
            default=settings.ENV.listen,
            help=f"the address to listen on (default {settings.ENV.listen})",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if local_url(settings.ENV.listen, settings.ENV.port) == settings.BASE_URL:
            settings.BASE_URL = local_url(options["host"], settings.ENV.port)
            settings.ALLOWED_HOSTS.append(local_host(options["host"]))
        if not is_loopback(options["host"]):
            settings.ALLOW_HTTP = settings.ENV.allow_http
        server = embedded_start(host=options["host"])
        self.say_where()
        embedded_run(server)

    def say_where(self) -> None:
        """Prints the address and, at the first start, a user, a project and a key, with secrets
        that are shown only once."""
        self.stdout.write(f"\n  open      {settings.BASE_URL}")
        if not get_user_model().objects.exists():
            setup = project_setup(name="Default", username="admin")
            self.stdout.write(f"  sign in   admin / {setup.password}")
            self.stdout.write(f"  key       {setup.key}")
            self.stdout.write(
                "  both are shown only once; the Setup page shows how to configure the job"
            )
        self.stdout.write("  stop      Ctrl-C\n\n", ending="")
        self.stdout.flush()


def embedded_start(*, host: str) -> EmbeddedServer:
    """Claims the port, migrates the database and starts all parts."""
    if not settings.EMBEDDED:
        raise CommandError(
            "COMPILEWATCH_MODE is full: start web and worker separately "
            "(dashboard/docs/operations/install.md)."
        )
    raise_descriptor_limit()
    try:
        listener = port_claim(host=host, port=settings.ENV.port)
    except PortUnavailableError as error:
        raise SettingError(str(error)) from error
    call_command("migrate", verbosity=0, interactive=False)
    if not is_loopback(host) and not get_user_model().objects.exists():
        raise CommandError(
            f"Listening on {host} opens the dashboard to other hosts, but no user has a password "
            "yet; run manage.py setup_project first."
        )
    server = EmbeddedServer(application=application, listener=listener)
    server.start()
    return server


def embedded_run(server: EmbeddedServer, *, stopping: threading.Event | None = None) -> None:
    """Waits for Ctrl-C or SIGTERM, then stops all parts within 3 s."""
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # A second signal may arrive within the handler of the first. The handler must therefore not
        # take a lock, as an event would.
        signal.signal(number, lambda number, _frame: asked.append(number))
    while not asked and not server.failed.wait(0.2):
        pass
    if stopping is not None:
        stopping.set()
    server.stop()
    sys.stdout.flush()
    # Pool threads of Celery would keep the interpreter running; all acknowledged reports are
    # already on disk.
    os._exit(1 if server.failed.is_set() else 0)

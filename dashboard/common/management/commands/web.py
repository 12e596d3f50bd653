"""Web command: `manage.py web` runs the web process of the full stack under granian.

The process ends within seconds of SIGTERM. SIGHUP replaces its workers.
"""

import logging
import os
import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from dashboard.common.bind_port import (
    MAX_CONNECTIONS,
    REQUEST_HEAD_TIMEOUT_S,
    PortUnavailableError,
    port_probe,
    raise_descriptor_limit,
)
from dashboard.common.fatal_database_errors import find_database_refusal
from dashboard.environment.settings import ROOT, SettingError

logger = logging.getLogger(__name__)
LOGS = ROOT / "dashboard/common/server_log"
"""Logging configuration of the server, one file for each value of COMPILEWATCH_LOG."""
MOST_WORKERS = 4
OPTIONS = {
    "interface": "asginl",
    "http": "1",
    "backlog": MAX_CONNECTIONS,
    "backpressure": MAX_CONNECTIONS,
    "http1-header-read-timeout": REQUEST_HEAD_TIMEOUT_S * 1000,
    "http1-buffer-size": 32 << 10,
    "respawn-interval": 1,
    "workers-kill-timeout": 10,
    "log-level": "warning",
}


class Command(BaseCommand):
    """Replaces this process with the server, so the started process receives the signals."""

    help = __doc__ or ""
    requires_system_checks = []

    def add_arguments(self, parser: CommandParser) -> None:
        cores = len(os.sched_getaffinity(0))
        parser.add_argument(
            "--host",
            default=settings.ENV.listen,
            help=f"the address to listen on (default {settings.ENV.listen})",
        )
        parser.add_argument(
            "--workers",
            type=int,
            default=min(cores, MOST_WORKERS),
            help="number of processes (default: one per core, at most 4)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if settings.EMBEDDED:
            raise CommandError(
                "COMPILEWATCH_MODE is embedded, where one process does everything: start it with "
                "manage.py serve."
            )
        if refusal := find_database_refusal():
            raise SettingError(refusal)
        host, port = options["host"], settings.ENV.port
        try:
            # Granian accepts addresses only, and reports a port conflict as a crash.
            host = port_probe(host=host, port=port)
        except PortUnavailableError as error:
            raise SettingError(str(error)) from error
        command = words(
            application="dashboard.asgi:application",
            host=host,
            port=port,
            workers=options["workers"],
        )
        where = f"{host} port {port}, {settings.BASE_URL} in links"
        logger.info("web listens on %s, with %d processes", where, options["workers"])
        raise_descriptor_limit()
        os.execv(command[0], command)


def words(*, application: str, host: str, port: int, workers: int) -> list[str]:
    """The command line of the server."""
    chosen = {
        **OPTIONS,
        "host": host,
        "port": port,
        "workers": workers,
        "working-dir": ROOT,
        "log-config": LOGS / f"{settings.ENV.log}.json",
    }
    flags = ["--no-ws", "--respawn-failed-workers"]
    return [
        sys.executable,
        "-m",
        "granian",
        *(f"--{name}={value}" for name, value in chosen.items()),
        *flags,
        application,
    ]

"""The Celery application: tasks say "drain what the tables say", so losing the broker loses no work."""

import os
import socket
from typing import Any

from celery import Celery, bootsteps, signals
from django.conf import settings

from dashboard.common.fatal_database_errors import refusal_ends
from dashboard.common.gc_tuning import garbage_seldom
from dashboard.common.heartbeat import Heart
from dashboard.common.redis_sockets import channels_close, inherited_close
from dashboard.common.redis_status import BROKER, place
from dashboard.environment.settings import env_check

env_check()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

channels_close()
app = Celery("compilewatch")
app.config_from_object("django.conf:settings", namespace="CELERY")
# In embedded mode the tasks run in threads of the web process, which would otherwise meet Celery's default application.
app.set_default()
app.autodiscover_tasks()


def broker_trouble() -> str:
    """Why Redis does not answer, empty if it does or there is none; the web process never asks it, so workers tell."""
    return "" if settings.EMBEDDED or BROKER.probe() is not None else place()


class Beating(bootsteps.StartStopStep):
    """A worker says that it lives, from its first process: the children that run tasks may be busy."""

    def start(self, worker: Any) -> None:
        """Called once the worker is up."""
        self._heart = Heart(name=worker.hostname, kind="worker", broker=broker_trouble)
        self._heart.start()

    def stop(self, worker: Any) -> None:
        """Called when the worker ends."""
        self._heart.stop()


app.steps["worker"].add(Beating)


@signals.beat_init.connect
def beat_lives(**_: Any) -> None:
    """Beat says that it lives."""
    garbage_seldom()
    refusal_ends()
    Heart(name=f"beat@{socket.gethostname()}", kind="beat", broker=broker_trouble).start()


@signals.worker_init.connect
def worker_begins(**_: Any) -> None:
    """A worker has a timer of its own, so that it needs neither beat nor Redis; the processes that it forks are as it is."""
    garbage_seldom()
    if not settings.EMBEDDED:
        refusal_ends()
        from dashboard.fallback_scheduler import sweeper_start  # noqa: PLC0415  # Django is set up only now

        sweeper_start(app)


@signals.beat_init.connect
def beat_begins(**_: Any) -> None:
    """Beat says when Redis is away and when it is back."""
    if not settings.EMBEDDED:
        from dashboard.fallback_scheduler import Prober  # noqa: PLC0415  # Django is set up only now

        Prober().start()


@signals.worker_process_init.connect
def child_begins(**_: Any) -> None:
    """A process that runs tasks has no use for the connections of the one that forked it."""
    inherited_close()

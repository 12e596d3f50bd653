"""Celery application. Tasks drain the tables, so losing the broker loses no work."""

import os
import socket
from typing import Any

from celery import Celery, bootsteps, signals
from django.conf import settings

from dashboard.common.fatal_database_errors import exit_on_refusal
from dashboard.common.gc_tuning import tune_garbage_collection
from dashboard.common.heartbeat import HeartbeatThread
from dashboard.common.redis_sockets import close_inherited_sockets, install_redis_transport
from dashboard.common.redis_status import BROKER, broker_address
from dashboard.environment.settings import env_check

env_check()
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")

install_redis_transport()
app = Celery("compilewatch")
app.config_from_object("django.conf:settings", namespace="CELERY")
# In embedded mode the tasks run in threads of the web process. Without this call those threads
# would use Celery's default application.
app.set_default()
app.autodiscover_tasks()


def find_broker_error() -> str:
    """Returns the broker's address if Redis does not answer, else an empty string.

    Workers and beat report this, because the web process never contacts Redis.
    """
    return "" if settings.EMBEDDED or BROKER.probe() is not None else broker_address()


class HeartbeatStep(bootsteps.StartStopStep):
    """Heartbeat of a worker, sent from its main process: the children that run tasks may be
    busy."""

    def start(self, worker: Any) -> None:
        """Starts the heartbeat once the worker is up."""
        self._heart = HeartbeatThread(name=worker.hostname, kind="worker", broker=find_broker_error)
        self._heart.start()

    def stop(self, worker: Any) -> None:
        """Stops the heartbeat when the worker ends."""
        self._heart.stop()


app.steps["worker"].add(HeartbeatStep)


@signals.beat_init.connect
def start_beat_heartbeat(**_: Any) -> None:
    """Starts the heartbeat of beat."""
    tune_garbage_collection()
    exit_on_refusal()
    HeartbeatThread(
        name=f"beat@{socket.gethostname()}", kind="beat", broker=find_broker_error
    ).start()


@signals.worker_init.connect
def prepare_worker(**_: Any) -> None:
    """Starts the fallback scheduler of a worker, which then needs neither beat nor Redis.

    Forked processes inherit the settings of the garbage collector.
    """
    tune_garbage_collection()
    if not settings.EMBEDDED:
        exit_on_refusal()
        from dashboard.fallback_scheduler import start_fallback_scheduler  # noqa: PLC0415  # Django is set up only now

        start_fallback_scheduler(app)


@signals.beat_init.connect
def start_broker_prober(**_: Any) -> None:
    """Starts the thread of beat that logs when Redis fails and when Redis is back."""
    if not settings.EMBEDDED:
        from dashboard.fallback_scheduler import BrokerProber  # noqa: PLC0415  # Django is set up only now

        BrokerProber().start()


@signals.worker_process_init.connect
def close_parent_sockets(**_: Any) -> None:
    """Closes the connections that a task process inherits from its parent."""
    close_inherited_sockets()

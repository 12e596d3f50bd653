"""Celery application. Tasks drain the tables, so losing the broker loses no work."""

import logging
import os
from typing import Any

from celery import Celery, bootsteps, signals
from django.conf import settings

from dashboard.common.fatal_database_errors import exit_on_refusal
from dashboard.common.gc_tuning import tune_garbage_collection
from dashboard.common.heartbeat import HeartbeatThread
from dashboard.common.redis_sockets import close_inherited_sockets, install_redis_transport
from dashboard.common.redis_status import BROKER, broker_address
from dashboard.environment.settings import env_check

logger = logging.getLogger(__name__)
STAGE_TIMEOUT_S = 15.0
"""Seconds that a worker waits at its end for a stage in its main process."""

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

    Workers report this, because the web process never contacts Redis.
    """
    return "" if settings.EMBEDDED or BROKER.probe() is not None else broker_address()


class HeartbeatStep(bootsteps.StartStopStep):
    """Heartbeat of a worker, sent from its main process: the children that run tasks may be
    busy."""

    def start(self, worker: Any) -> None:
        """Starts the heartbeat once the worker is up."""
        self._heart = HeartbeatThread(name=worker.hostname, broker=find_broker_error)
        self._heart.start()

    def stop(self, worker: Any) -> None:
        """Stops the heartbeat when the worker ends."""
        self._heart.stop()


class SchedulerStep(bootsteps.StartStopStep):
    """Scheduler of a worker: in its main process, once the pool has forked its children."""

    requires = ("celery.worker.components:Pool",)

    def start(self, worker: Any) -> None:
        """Starts the scheduler."""
        from dashboard.scheduler import Scheduler  # noqa: PLC0415  # Django is set up only now

        self._scheduler = Scheduler(app)
        self._scheduler.start()

    def close(self, worker: Any) -> None:
        """Starts no further stage once the worker is asked to end."""
        self._scheduler.stop()

    def stop(self, worker: Any) -> None:
        """Waits for the stage that runs in the main process."""
        self._scheduler.stop(wait=STAGE_TIMEOUT_S)


app.steps["worker"].add(HeartbeatStep)
app.steps["worker"].add(SchedulerStep)


@signals.worker_init.connect
def prepare_worker(**_: Any) -> None:
    """Sets the garbage collector of a worker, which forked processes inherit, and ends a worker
    that the database refuses."""
    tune_garbage_collection()
    if not settings.EMBEDDED:
        exit_on_refusal()


@signals.beat_init.connect
def warn_of_beat(**_: Any) -> None:
    """Logs that beat has no task to send: it was needed up to the previous release."""
    logger.warning("beat is no longer needed, because workers schedule the stages; stop beat.")


@signals.worker_process_init.connect
def close_parent_sockets(**_: Any) -> None:
    """Closes the connections that a task process inherits from its parent."""
    close_inherited_sockets()

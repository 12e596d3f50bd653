"""The dashboard's settings with the clock of a soak, and a thread that reports the memory blocks of
the process."""

from dashboard.common import clock
from dashboard.settings import *  # noqa: F403 - the settings are all of the dashboard's
from tests.bench.soak_clock import clock_of_this_process
from tests.bench.soak_held import start_reports
from tests.bench.soak_pace import set_intervals  # noqa: F401 - receives a signal of Celery

clock.unix = clock_of_this_process()
start_reports()

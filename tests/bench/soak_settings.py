"""The dashboard's settings with the clock of a soak."""

from dashboard.common import clock
from dashboard.settings import *  # noqa: F403 - the settings are all of the dashboard's
from tests.bench.soak_clock import clock_of_this_process

clock.unix = clock_of_this_process()

"""The dashboard's settings with crash points that can be armed at runtime."""

import os
from pathlib import Path

from dashboard.settings import *  # noqa: F403 - the settings are all of the dashboard's
from tests.faults.armed import Armed

CRASH = Armed(Path(os.environ["COMPILEWATCH_TEST_ARMED"]))

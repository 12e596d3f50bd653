"""A job with the agent and without torch: `python -m tests.flow.small_job SECONDS`; settings come
from the environment."""

import os
import sys
import time

import compilewatch

if __name__ == "__main__":
    assert compilewatch.init(
        model="ranker", version="1", interval=float(os.environ.get("COMPILEWATCH_INTERVAL", "0.5"))
    )
    ends = time.monotonic() + float(sys.argv[1])
    while time.monotonic() < ends:
        with compilewatch.region("forward"):
            time.sleep(0.02)
    compilewatch.shutdown()

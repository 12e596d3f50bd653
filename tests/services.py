"""`python -m tests.services COMMAND...` runs a command with PostgreSQL and Redis: running servers
if available, else its own servers, which no other test run uses and which stop with the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import psycopg
import redis

from tests.faults.cluster import Cluster
from tests.faults.private_redis import PrivateRedis
from tests.flow.stack import POSTGRESQL, REDIS_URL
from tests.machine import PARTS

# Tests create and drop hundreds of databases; tests that kill or copy a server start their own
# server with fsync.
UNSYNCED = ("fsync=off", "full_page_writes=off", "max_connections=200")


def postgresql_answers() -> bool:
    """True if PostgreSQL responds at the tests' address and accepts the login."""
    try:
        psycopg.connect(dbname="postgres", connect_timeout=5, **POSTGRESQL).close()
    except psycopg.Error:
        return False
    return True


def redis_answers() -> bool:
    """True if Redis responds at the tests' address."""
    try:
        with redis.Redis.from_url(REDIS_URL, socket_timeout=5) as connection:
            return bool(connection.ping())
    except redis.RedisError:
        return False


def servers_start(own: ExitStack) -> dict[str, str]:
    """Environment variables for the started servers; the servers end with `own`."""
    said = {}
    if not postgresql_answers() and PARTS["PostgreSQL's programs"].here():
        folder = own.enter_context(
            tempfile.TemporaryDirectory(prefix="compilewatch-cluster-", ignore_cleanup_errors=True)
        )
        cluster = Cluster(settings=UNSYNCED, folder=Path(folder))
        own.callback(cluster.close)
        cluster.start()
        said |= {f"PG{name.upper()}": value for name, value in cluster.address.items()}
        print(f"compilewatch: PostgreSQL of this run listens on port {cluster.port}", flush=True)
    if not redis_answers() and PARTS["Redis's program"].here():
        server = PrivateRedis(
            Path(own.enter_context(tempfile.TemporaryDirectory(prefix="compilewatch-redis-")))
        )
        own.callback(server.close)
        said["COMPILEWATCH_TEST_REDIS"] = server.url
        print(f"compilewatch: Redis of this run listens on port {server.port}", flush=True)
    return said


def command_run(words: list[str], environment: dict[str, str]) -> int:
    """The command's exit status. Signals go to the command, which cleans up while the servers still
    run."""
    command = subprocess.Popen(words, env=environment)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to both
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: command.send_signal(number))
    status = command.wait()
    return status if status >= 0 else 128 - status


def main() -> int:
    """The command's exit status; 3 if servers did not start or end, because pytest uses 1 for
    failed tests."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: sys.exit(128 + number))
    try:
        with ExitStack() as own:
            return command_run(sys.argv[1:], os.environ | servers_start(own))
    except (OSError, subprocess.SubprocessError, AssertionError, LookupError) as error:
        print(
            f"compilewatch: PostgreSQL and Redis of this run failed: {type(error).__name__}: "
            f"{error}",
            file=sys.stderr,
        )
        return 3


if __name__ == "__main__":
    sys.exit(main())

"""`python -m tests.services COMMAND...` runs a command beside PostgreSQL and Redis: those that answer already, else ones of its own, which
end with it and of which no other test run knows."""

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

# Tests make and drop hundreds of databases; those that kill or copy a server start one of their own, which syncs.
UNSYNCED = ("fsync=off", "full_page_writes=off", "max_connections=200")


def postgresql_answers() -> bool:
    """Whether one is where the tests look for it and lets them in."""
    try:
        psycopg.connect(dbname="postgres", connect_timeout=5, **POSTGRESQL).close()
    except psycopg.Error:
        return False
    return True


def redis_answers() -> bool:
    """Whether one is where the tests look for it."""
    try:
        with redis.Redis.from_url(REDIS_URL, socket_timeout=5) as connection:
            return bool(connection.ping())
    except redis.RedisError:
        return False


def main() -> int:
    """The command's status."""
    environment = dict(os.environ)
    signal.signal(signal.SIGTERM, lambda number, _frame: sys.exit(128 + number))
    with ExitStack() as own:
        if not postgresql_answers() and PARTS["PostgreSQL"].here():
            cluster = Cluster(settings=UNSYNCED)
            own.callback(cluster.close)
            cluster.start()
            environment |= {f"PG{name.upper()}": value for name, value in cluster.address.items()}
            print(f"compilewatch: PostgreSQL of this run's own listens on port {cluster.port}", flush=True)
        if not redis_answers() and PARTS["Redis"].here():
            server = PrivateRedis(Path(own.enter_context(tempfile.TemporaryDirectory(prefix="compilewatch-redis-"))))
            own.callback(server.close)
            environment["COMPILEWATCH_TEST_REDIS"] = server.url.rpartition("/")[0]
            print(f"compilewatch: Redis of this run's own listens on port {server.port}", flush=True)
        return subprocess.run(sys.argv[1:], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

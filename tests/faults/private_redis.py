"""A Redis for one test, which may empty, stop and kill it without effect on other tests."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import redis

from tests.flow.stack import free_port, wait_for
from tests.machine import need


class PrivateRedis:
    """Runs until it is closed and keeps nothing on disk."""

    def __init__(self, folder: Path) -> None:
        self.port, self._folder = free_port(), folder
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Starts Redis, empty."""
        need("Redis's program")
        words = [
            "--port",
            str(self.port),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
            str(self._folder),
        ]
        nowhere = subprocess.DEVNULL
        self._process = subprocess.Popen(
            ["redis-server", *words], stdout=nowhere, stderr=nowhere, start_new_session=True
        )
        wait_for("Redis responds", self.answers, seconds=60, every=0.02)

    def answers(self) -> bool:
        """True if Redis accepts commands."""
        with (
            contextlib.suppress(redis.RedisError),
            redis.Redis.from_url(self.url, socket_timeout=5) as connection,
        ):
            return bool(connection.ping())
        return False

    def flush(self) -> None:
        """Deletes all data."""
        with (
            contextlib.suppress(redis.RedisError),
            redis.Redis.from_url(self.url, socket_timeout=5) as connection,
        ):
            connection.flushall()

    def kill(self) -> None:
        """SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(60)
        self._process = None

    def freeze(self) -> None:
        """Halts Redis: connections stay open without responses."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Continues after `freeze`."""
        assert self._process is not None
        os.kill(self._process.pid, signal.SIGCONT)

    def close(self) -> None:
        """Ends Redis."""
        if self._process is not None:
            self.kill()

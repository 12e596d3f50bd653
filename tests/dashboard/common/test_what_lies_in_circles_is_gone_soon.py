"""Objects in reference cycles are collected within one interval, in a process and in its children:
such objects may keep a socket open.

Freed memory returns to the operating system."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[3]
PROCESS = """
import contextlib, os, socket, sys, time
import psycopg
from dashboard.common import gc_tuning

def sockets():
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return found

class Circle:
    def __init__(self):
        self.own, self.socket = self, socket.socket()

def leave():
    before = sockets()
    for _ in range(4):
        Circle()
    with contextlib.suppress(psycopg.OperationalError):
        psycopg.connect(host="127.0.0.1", port=int(sys.argv[1]), connect_timeout=2)
    assert sockets() > before, "nothing was left"
    until = time.monotonic() + 20
    while sockets() > before and time.monotonic() < until:
        time.sleep(0.05)
    return sockets() - before

gc_tuning.FULL_COLLECTION_INTERVAL_S = 0.2
gc_tuning.tune_garbage_collection()
child = os.fork()
if not child:
    os._exit(leave())
print(leave(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_connection_that_timed_out_leaves_no_socket() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        command = [sys.executable, "-c", PROCESS, str(silent.getsockname()[1])]
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["0", "0"]


ROOM = """
import time
import psutil
from dashboard.common import gc_tuning

def resident():
    return psutil.Process().memory_info().rss >> 20

before = resident()
rows = [bytearray(4000) for _ in range(20_000)]
kept = rows[::100]  # between freed rows, so the C library alone returns no memory
del rows
after = resident()
assert after - before > 60, (before, after)
gc_tuning.FULL_COLLECTION_INTERVAL_S = 0.2
gc_tuning.tune_garbage_collection()
until = time.monotonic() + 20
while resident() - before > 20 and time.monotonic() < until:
    time.sleep(0.05)
print(before, after, resident())
"""


def test_memory_between_kept_objects_is_returned() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ROOM], cwd=REPOSITORY, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    before, _, left = map(int, done.stdout.split())
    assert left - before <= 20, done.stdout

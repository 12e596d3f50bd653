"""SIGTERM ends a process as without the agent, and the open window is sent first; a handler of the
job is not replaced and runs first."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

START = """
import os, signal, sys, threading, time
import compilewatch
compilewatch.init(model="m", interval=200)
compilewatch.agent.AGENT.worker.wait_until_loaded()
call = compilewatch.watch(lambda: None, name="forward")
for _ in range(40):
    call()
term = lambda: os.kill(os.getpid(), signal.SIGTERM)
"""
LOST_AND_RAISED_AGAIN = """
mine = signal.signal(signal.SIGTERM, lambda *_: None)  # as uvicorn does
term()
signal.signal(signal.SIGTERM, mine)
signal.raise_signal(signal.SIGTERM)
"""
ENDS = {
    "the default": "term(); time.sleep(60)",
    "raised again by a server": LOST_AND_RAISED_AGAIN,
    "twice": "term(); term(); time.sleep(60)",
    "from a thread": "threading.Thread(target=term).start(); time.sleep(60)",
    "in a forked child": """
if os.fork():
    os.wait()
    term()
for _ in range(2):
    call()
term()
""",
    "while the main thread stays in C": """
threading.Timer(0.2, term).start()
import ctypes
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
libc.pthread_mutex_lock(mutex)
libc.pthread_mutex_lock(mutex)  # blocks without end, and no signal interrupts the wait
""",
}
KEPT = START.replace(
    "import compilewatch\n",
    "import compilewatch\nsignal.signal(signal.SIGTERM, lambda *_: sys.exit(5))\n",
    1,
)
DEFAULT = """
handler = signal.getsignal(signal.SIGTERM)
assert handler == signal.SIG_DFL and handler in (None, signal.SIG_DFL) and handler is not signal.SIG_DFL
files = lambda: len(os.listdir("/proc/self/fd"))
child = os.fork()
if not child:
    os._exit(0 if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL else 9)
assert os.waitpid(child, 0)[1] == 0
before = files()
compilewatch.shutdown()
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL and signal.set_wakeup_fd(-1) == -1
while threading.active_count() > 1:
    time.sleep(0.01)
print(before - files())
"""
CHAINED = """
default = signal.getsignal(signal.SIGTERM)
def mine(number, frame):
    if callable(default):
        default(number, frame)
    print("in order", flush=True)
signal.signal(signal.SIGTERM, mine)
term()
call()
"""

TRIO = """
import trio
assert signal.set_wakeup_fd(-1) == -1
term()
time.sleep(60)
"""


@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
def test_every_call_arrives_and_the_signal_ends_it(dashboard: Dashboard, ending: str) -> None:
    done = run(START + ending, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")
    assert dashboard.calls("forward") == (42 if "fork" in ending else 40)
    endings = [
        fact.data for report in dashboard.reports() for fact in report.facts if fact.kind == "ended"
    ]
    assert endings == [{"signal": "SIGTERM"}] * (2 if "fork" in ending else 1)


@pytest.mark.parametrize("early", [True, False], ids=["imported before", "imported after"])
def test_trio_finds_no_other_listener_and_raises_no_warning(
    dashboard: Dashboard, tmp_path: Path, early: bool
) -> None:
    (tmp_path / "trio.py").touch()
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); "
        + ("import trio" if early else "")
        + START
        + TRIO
    )
    done = run(program, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (-signal.SIGTERM, "")
    assert dashboard.calls("forward") == 40


def test_a_handler_of_the_job_is_the_only_one(dashboard: Dashboard) -> None:
    done = run(KEPT + "term(); time.sleep(60)", ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (5, "")
    assert dashboard.calls("forward") == 40


def test_a_handler_that_the_job_sets_later_decides_the_end(dashboard: Dashboard) -> None:
    done = run(START + CHAINED, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stdout, done.stderr) == (0, "in order\n", "")
    assert dashboard.calls("forward") == 41


def test_the_visible_handler_is_the_default_and_nothing_remains_after_the_agent(
    dashboard: Dashboard,
) -> None:
    done = run(START + DEFAULT, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    assert int(done.stdout) >= 2


REFUSED = """
import compilewatch.runtime.sigterm as module
def refuse(*_):
    raise RuntimeError("no thread")
module._thread.start_new_thread = refuse
term()
time.sleep(60)
"""
HELD = (
    "with compilewatch.recording.recorder.RECORDER._collect_lock:\n    term()\n    time.sleep(60)"
)


@pytest.mark.parametrize(
    "ending",
    ["term()\ntime.sleep(60)", REFUSED, HELD],
    ids=["no dashboard", "no thread", "in our own lock"],
)
def test_a_window_that_cannot_be_sent_delays_nothing(ending: str) -> None:
    done = run(START + ending, limit=30, ENDPOINT="http://127.0.0.1:9", API_KEY=KEY)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGTERM, "", "")

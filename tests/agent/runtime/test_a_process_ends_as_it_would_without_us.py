"""For every way in which a process ends, and on every installed Python, its exit code and output
are the same as without the agent."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest

from tests.agent.conftest import KEY
from tests.agent.programs import environment
from tests.agent.pythons import AGENT, PYTHONS
from tests.agent.server import Dashboard
from tests.faults.size import FULL, sized

BARE = "import os, signal, sys, threading, time, zlib\n{start}\nfor _ in range(1000):\n    call()\n"
START = (
    "import compilewatch; compilewatch.init(model='m', interval=200); call = "
    "compilewatch.watch(lambda: None, name='forward')"
)
ENDS = {
    "the end of the program": "",
    "sys.exit": "sys.exit(3)",
    "sys.exit with a text": "sys.exit('this is why')",
    "an exception": "raise ValueError('mine')",
    "an exception while another is handled": "try:\n    1 / 0\nfinally:\n    "
    "raise ValueError('mine')",
    "an interrupt": "raise KeyboardInterrupt",
    "an interrupt by another class": "class Own(KeyboardInterrupt): pass\nraise Own",
    "an interrupt that is caught": "try:\n    raise KeyboardInterrupt\nexcept "
    "KeyboardInterrupt:\n    sys.exit(5)",
    "a thread that goes on": "threading.Thread(target=lambda: "
    "(time.sleep(0.1), print('thread'))).start()",
    "an exception in a thread": "threading.Thread(target=lambda: 1 / 0, name='mine').start()",
    "an exit function that fails": "import atexit; atexit.register(lambda: 1 / 0)",
    "a closed stderr": "sys.stderr.close(); os.close(2)",
}
SUDDEN = {
    "os._exit": "os._exit(4)",
    "SIGTERM": "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
    "SIGTERM in the middle of C code": (
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()\nwhile "
        "True:\n    zlib.compress(bytes(1 << 26), 9)"
    ),
    "SIGKILL": "os.kill(os.getpid(), signal.SIGKILL)",
    "abort": "os.abort()",
}
ENDLESS = """
import compilewatch.export.http.connection as module
for limit in ("CONNECT_SECONDS", "READ_SECONDS", "TOTAL_SECONDS"):
    setattr(module, limit, 1000.0)
"""
"""A sender that waits much longer than the test, so that an exit that waits for the sender fails
the test."""

PATIENT = "import compilewatch.agent as module; module.EXIT_SECONDS = 60.0"
"""On a busy machine, the one second of an exit may end before the agent's thread has loaded the
modules that send, and such a short process loses its only window. Tests of what arrives are not
tests of the duration of an exit."""

FEW = [("silent", "an exception"), ("trickling", "the end of the program"), ("away", "sys.exit")]
UNANSWERED = (
    [(server, end) for server in ("silent", "trickling", "away") for end in ENDS] if FULL else FEW
)

every_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS.keys())


def ended(python: str, program: str, endpoint: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a program."""
    settings = {**environment(ENDPOINT=endpoint, API_KEY=KEY), "PYTHONPATH": str(AGENT)}
    done = subprocess.run(
        [python, "-c", program],
        env=settings,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout, re.sub(r"0x[0-9a-f]+", "0x", done.stderr)


def with_and_without(
    python: str, ending: str, endpoint: str, more: str = ""
) -> tuple[tuple[int, str, str], tuple[int, str, str]]:
    started = BARE.format(start=f"{START}; exec({more!r})") + ending
    return ended(python, started, endpoint), bare(python, ending)


@cache
def bare(python: str, ending: str) -> tuple[int, str, str]:
    """The result without the agent."""
    return ended(python, BARE.format(start="call = lambda: None") + ending, "")


@every_python
@pytest.mark.parametrize("ending", ENDS.values(), ids=ENDS.keys())
def test_a_process_ends_the_same_and_everything_is_sent(
    dashboard: Dashboard, python: str, ending: str
) -> None:
    ours, theirs = with_and_without(python, ending, dashboard.endpoint, PATIENT)
    assert ours == theirs
    assert dashboard.calls("forward") == 1000


@every_python
@pytest.mark.parametrize("ending", SUDDEN.values(), ids=SUDDEN.keys())
def test_a_sudden_end_stays_sudden(dashboard: Dashboard, python: str, ending: str) -> None:
    ours, theirs = with_and_without(python, ending, dashboard.endpoint)
    assert ours == theirs


@every_python
@pytest.mark.parametrize(("server", "end"), UNANSWERED)
def test_a_dashboard_that_does_not_answer_changes_nothing(
    request: pytest.FixtureRequest, python: str, server: str, end: str
) -> None:
    for _ in range(sized(1, 25)):
        ours, theirs = with_and_without(python, ENDS[end], request.getfixturevalue(server), ENDLESS)
        assert ours == theirs


@every_python
def test_an_endless_name_look_up_changes_nothing(python: str) -> None:
    hangs = "import socket, time; socket.getaddrinfo = lambda *_, **__: time.sleep(1000)"
    ours, theirs = with_and_without(python, "sys.exit(3)", "https://dashboard.invalid", hangs)
    assert ours == theirs


@every_python
def test_the_second_of_two_exits_finds_nothing_to_do(dashboard: Dashboard, python: str) -> None:
    ours, theirs = with_and_without(
        python,
        "compilewatch.shutdown() if 'compilewatch' in dir() else None; call()",
        dashboard.endpoint,
        PATIENT,
    )
    assert ours == theirs
    assert dashboard.calls("forward") == 1000


SUBINTERPRETER = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
one = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create(isolated=False)
interpreters.run_string(one, '''
import compilewatch
started = compilewatch.init(model="m")
print(started, compilewatch.watch(len)("four"))
''')
interpreters.destroy(one)
print("alive")
"""


@every_python
def test_a_subinterpreter_has_no_agent_and_ends_well(dashboard: Dashboard, python: str) -> None:
    code, output, said = ended(python, SUBINTERPRETER, dashboard.endpoint)
    assert (code, output) == (0, "False 4\nalive\n")
    assert said.startswith("compilewatch: off: this is a subinterpreter") and said.count("\n") == 1


@pytest.fixture
def away() -> Iterator[str]:
    """A port that no process listens on, reserved against other processes."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that accepts connections and never sends a byte."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def trickling() -> Iterator[str]:
    """A server whose header never ends: the agent's thread always has something to read."""
    over = threading.Event()

    def trickle(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
            while not over.wait(0.001):
                connection.sendall(b"x")

    def serve() -> None:
        while not over.is_set():
            with suppress(OSError):
                threading.Thread(target=trickle, args=(listener.accept()[0],), daemon=True).start()

    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(64)
        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        with socket.create_connection(listener.getsockname()):
            pass


PRESSED = """
import sys, time
{start}
print("ready", flush=True)
time.sleep(30)
"""


@pytest.mark.parametrize("way", ["a file", "a module", "compilewatch run"])
@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.5])
def test_control_c_ends_the_process_by_the_signal(
    tmp_path: Path, dashboard: Dashboard, way: str, seconds: float
) -> None:
    codes = []
    for start in ("", START):
        (tmp_path / "pressed.py").write_text(PRESSED.format(start=start))
        words = {"a file": ["pressed.py"], "a module": ["-m", "pressed"]}.get(way)
        if words is None:
            words = (
                ["-m", "compilewatch", "run", "--", "python", "pressed.py"]
                if start
                else ["pressed.py"]
            )
        settings = {
            **environment(ENDPOINT=dashboard.endpoint, API_KEY=KEY),
            "PYTHONPATH": f"{AGENT}:{tmp_path}",
        }
        job = subprocess.Popen(
            [sys.executable, *words],
            cwd=tmp_path,
            env=settings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        assert job.stdout is not None and job.stdout.readline() == b"ready\n"
        time.sleep(seconds)
        job.send_signal(signal.SIGINT)
        _, said = job.communicate(timeout=60)
        codes.append((job.returncode, said.decode().splitlines()[-1]))
    assert codes[0] == codes[1] == (-signal.SIGINT, "KeyboardInterrupt")

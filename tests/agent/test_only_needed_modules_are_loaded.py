"""Imports of the agent: its own thread loads TLS, HTTP client and hashes before a fork can happen;
the job's thread loads none of them."""

from __future__ import annotations

import json

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

PROGRAM = """
import json, sys, threading, time
class Finder:
    found = {}
    def find_spec(self, name, path=None, target=None):
        self.found.setdefault(name, threading.current_thread().name)
sys.meta_path.insert(0, Finder())
before = set(sys.modules)
import compilewatch
assert compilewatch.init(model="m", interval=0.05)
call = compilewatch.watch(lambda: None, name="forward")
worker = compilewatch.agent.AGENT.worker
worker.wait_until_loaded()
settled = set(Finder.found)
call()
outbox = worker.reporter.outbox
while worker.reporter._seq < 2 or len(outbox):
    time.sleep(0.01)
loaded = {name: Finder.found[name] for name in set(sys.modules) - before if name in Finder.found}
print(json.dumps([loaded, sorted(set(Finder.found) - settled)]))
"""
HEAVY = {
    "ssl",
    "_ssl",
    "_hashlib",
    "hashlib",
    "http.client",
    "email.parser",
    "email.utils",
    "socket",
    "encodings.idna",
}
"""Modules that only the agent's thread may load."""


def loaded(waits_for: str, **settings: str) -> tuple[dict[str, str], list[str]]:
    """Each module that the agent loaded, with the loading thread; and the modules that were
    imported after a fork could happen."""
    done = run(PROGRAM.replace("< 2 or len(outbox)", waits_for), API_KEY=KEY, **settings)
    assert done.returncode == 0, done.stderr
    threads, late = json.loads(done.stdout)
    return threads, late


def check(threads: dict[str, str]) -> None:
    assert {name: threads[name] for name in HEAVY if threads.get(name) != "compilewatch"} == {}


def test_the_agents_thread_loads_the_modules_that_send(dashboard: Dashboard) -> None:
    threads, late = loaded("< 2 or len(outbox)", ENDPOINT=dashboard.endpoint)
    check(threads)
    assert late == []
    assert dashboard.calls("forward") == 1


def test_https_loads_no_other_module_at_its_first_request() -> None:
    threads, late = loaded(
        "< 1 or not worker.reporter.sender.failures", ENDPOINT="https://127.0.0.1:9"
    )
    check(threads)
    assert late == []

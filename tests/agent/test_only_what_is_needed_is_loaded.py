"""A job that sends over plain http loads neither OpenSSL nor what Python would bring with its own HTTP client."""

from __future__ import annotations

import json

from compilewatch.identity.sha256 import sha256_hex

from tests.agent.conftest import KEY
from tests.agent.programs import run
from tests.agent.server import Dashboard

PROGRAM = """
import json, sys, time
before = set(sys.modules)
import compilewatch
assert compilewatch.init(model="m", interval=0.05)
call = compilewatch.watch(lambda: None, name="forward")
while compilewatch.agent.CLIENT.worker.instance is None:
    time.sleep(0.01)
call()
outbox = compilewatch.agent.CLIENT.worker.instance.outbox
sequence = lambda: compilewatch.agent.CLIENT.worker.instance._seq
while sequence() < 2 or len(outbox):
    time.sleep(0.01)
print(json.dumps(sorted(set(sys.modules) - before)))
"""
HEAVY = {"ssl", "_ssl", "_hashlib", "http.client", "email", "tempfile", "datetime", "gzip"}


def test_plain_http_loads_no_openssl(dashboard: Dashboard) -> None:
    done = run(PROGRAM, ENDPOINT=dashboard.endpoint, API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert not HEAVY & set(json.loads(done.stdout))
    assert dashboard.calls("forward") == 1


def test_https_has_loaded_it_before_the_first_request() -> None:
    done = run(PROGRAM.replace("< 2 or len(outbox)", "< 1"), ENDPOINT="https://127.0.0.1:9", API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert {"ssl", "compilewatch.export.http.tls"} <= set(json.loads(done.stdout))


def test_a_hash_is_the_one_that_everybody_knows() -> None:
    assert sha256_hex(b"abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

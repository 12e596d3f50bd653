"""If the TLS handshake with the dashboard fails or never ends, calls and the end of the job do not
wait, the fault is counted and logged once with the setting to check, and every window arrives once
a good server is reachable."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path

import compilewatch
import pytest
from compilewatch import agent
from compilewatch.export.advice import CERTIFICATE, TLS
from compilewatch.export.http import connection

from tests.agent.conftest import KEY
from tests.agent.export.http.handshakes import (
    WITH_A_CERTIFICATE,
    WITHOUT_A_CERTIFICATE,
    encrypted,
    spoiled,
)
from tests.agent.identity.test_children_of_every_kind_report_once import SWEEP
from tests.agent.programs import run
from tests.agent.server import Dashboard, assert_sent_once
from tests.dashboard.common.test_outbound_certificates import DAY, NOW, certificate
from tests.dashboard.common.wire_server import Handler, wire_server

pytestmark = pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1:DeprecationWarning")
CALLS, EXIT_SECONDS, MARGIN = 1000, 1.0, 10
JOB = """
import json, time, compilewatch
from compilewatch import agent as client; from compilewatch.export.http import connection; from compilewatch.export import sender

sender.FIRST_WAIT, sender.LONGEST_WAIT = 0.02, 0.04
connection.READ_SECONDS = 0.3
compilewatch.init(model="m", interval=0.1)
call = compilewatch.watch(lambda: None, name="forward")
client.AGENT.worker.wait_until_loaded()
found, calls = client.AGENT.worker.reporter.sender, 0
while found.failures < sender.SILENT_FAILURES + 4:
    call()
    calls += 1
    time.sleep(0.001)
began = time.monotonic()
compilewatch.shutdown()
print(json.dumps([calls, time.monotonic() - began, found.failures, sum(found.refusals.values())]))
"""


class Changing:
    """A server whose behaviour changes later, at the same port."""

    def __init__(self, first: Handler) -> None:
        self.handler = first

    def __call__(self, connection: socket.socket) -> None:
        self.handler(connection)


@pytest.mark.parametrize("kind", [*WITHOUT_A_CERTIFICATE, *WITH_A_CERTIFICATE])
def test_pending_windows_arrive_once_a_good_server_is_reachable(
    kind: str, dashboard: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, trusted = spoiled(kind, tmp_path, dashboard.port)
    changing, spool = Changing(handler), tmp_path / "spool"
    with wire_server(changing) as server:
        settings = {
            "ENDPOINT": f"https://localhost:{server.port}",
            "API_KEY": KEY,
            "SPOOL": str(spool),
        }
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        done = run(JOB, **settings)
        assert done.returncode == 0, done.stderr
        calls, seconds, failures, counted = json.loads(done.stdout)
        assert seconds < EXIT_SECONDS * MARGIN
        assert failures == counted > 4
        advice = (
            CERTIFICATE
            if kind in ("expired", "signed by no authority", "for another host")
            else TLS
        )
        lines = done.stderr.splitlines()
        [line] = [line for line in lines if line.endswith(advice)]
        assert line.startswith(
            "compilewatch: the reports of this process do not reach the dashboard ("
        )
        assert line.endswith(f"); they are kept and retried; {advice}")
        # On a busy machine a handshake can also exceed its 0.3 s.
        assert all(other.endswith(TLS) for other in lines if other != line)
        assert dashboard.requests == []
        good = certificate(tmp_path, "localhost", NOW + DAY)
        monkeypatch.setenv("SSL_CERT_FILE", str(good))
        changing.handler = encrypted(good, dashboard.port)
        swept = run(SWEEP, str(spool), **settings)
        assert (swept.returncode, swept.stderr) == (0, "")
    assert dashboard.calls("forward") == calls
    assert_sent_once(dashboard)


def test_calls_continue_during_a_handshake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "READ_SECONDS", 600.0)
    monkeypatch.setattr(connection, "TOTAL_SECONDS", 600.0)
    begun, over = threading.Event(), threading.Event()

    def hold(connection: socket.socket) -> None:
        begun.set()
        while connection.recv(65536):
            pass
        over.set()

    with wire_server(hold) as server:
        settings = {
            "endpoint": f"https://localhost:{server.port}",
            "api_key": KEY,
            "spool": str(tmp_path),
            "interval": 0.05,
        }
        assert agent.init(model="m", **settings)
        assert begun.wait(60)
        call = compilewatch.watch(lambda: None, name="forward")
        for _ in range(CALLS):
            call()
        assert not over.is_set()
        agent.shutdown()
        assert over.wait(60)  # the end of the job ends the handshake too
    [left] = tmp_path.rglob("*.spool")
    assert b'"calls":' in left.read_bytes()

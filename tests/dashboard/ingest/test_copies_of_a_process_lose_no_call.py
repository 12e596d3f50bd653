"""Two real processes start with one instance id, as copies of an image with saved state do: every
call of both is stored."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from dashboard.ingest.batch import report_read
from dashboard.ingest.models import InboxRow
from tests.agent.programs import environment
from tests.dashboard.ingest.conftest import Endpoint

pytestmark = pytest.mark.django_db(transaction=True)

PROGRAM = """
import json, time
from compilewatch.identity import identity
own, ids = identity.instance_id, ["0123456789abcdefghjkmnpqrs"]
identity.instance_id = lambda: ids.pop() if ids else own()
import compilewatch
compilewatch.init(model="ranker", version="1")
calls, until = 0, time.monotonic() + 6
while time.monotonic() < until:
    with compilewatch.region("copied"):
        calls += 1
    time.sleep(0.01)
compilewatch.shutdown()
print(json.dumps(calls))
"""


def test_every_call_of_two_copies_is_stored(endpoint: Endpoint, tmp_path: Path) -> None:
    settings = environment(
        ENDPOINT=f"http://127.0.0.1:{endpoint.port}",
        API_KEY=endpoint.key,
        INTERVAL="0.5",
        SPOOL="off",
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM],
            env=settings,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    calls = [json.loads(process.communicate(timeout=120)[0]) for process in started]
    rows = list(InboxRow.objects.all())
    stored = sum(region.calls for row in rows for region in report_read(bytes(row.report)).regions)
    assert stored == sum(calls)
    assert len({row.instance_id for row in rows}) == 2

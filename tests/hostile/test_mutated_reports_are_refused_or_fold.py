"""Reports corrupted at random: never a 5xx, never stored but unfoldable, and the next good report
is accepted.

COMPILEWATCH_TEST_MUTANTS sets their number; `make fuzz` sends a million.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException

import pytest
from compilewatch.wire.messages import MAX_WIRE_BYTES
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.flow.stack import wait_for
from tests.hostile.mutations import mutant
from tests.hostile.schema_cases import full
from tests.hostile.target import LIVENESS, PATH, Target, processes

MUTANTS = int(os.environ.get("COMPILEWATCH_TEST_MUTANTS", "8000"))
IN_ONE_EXAMPLE = 50
ANSWERS = {200, 400, 413, 426, 429}
BUSY, COME_BACK = 503, 10
"""A busy server answers 503 and is retried up to this number of times, as an agent would; any other
5xx is a failure."""

pytestmark = pytest.mark.timeout(max(600, MUTANTS // 20))


class Connections(threading.local):
    """One connection per thread, reopened when the server has closed it."""

    def __init__(self, target: Target) -> None:
        self._port, self._connection = (
            target.stack.port,
            HTTPConnection("127.0.0.1", target.stack.port, timeout=LIVENESS),
        )
        self._headers = {
            "Authorization": f"Bearer {target.key}",
            "Content-Type": "application/json",
        }

    def send(self, body: bytes, packed: bool) -> tuple[int, bytes]:
        """Status and body of the last response; a busy server is asked again."""
        for _ in range(COME_BACK):
            status, said = self._send_once(body, packed)
            if status != BUSY or b'"code":"busy"' not in said:
                break
            time.sleep(1)
        return status, said

    def _send_once(self, body: bytes, packed: bool) -> tuple[int, bytes]:
        """Status and body of the response; status 0 if two connections ended without one."""
        headers = self._headers | ({"Content-Encoding": "gzip"} if packed else {})
        for _ in range(2):
            try:
                self._connection.request("POST", PATH, body, headers)
                answer = self._connection.getresponse()
                return answer.status, answer.read()
            except (HTTPException, OSError):
                # A server may close a connection after it refused an unread body; an agent opens a
                # new one.
                self._connection.close()
        return 0, b""


def test_a_spoiled_report_is_refused_or_stored_never_a_failure(target: Target) -> None:
    seen: Counter[int] = Counter()
    connections = Connections(target)
    alive = {process.pid for process in processes(target.stack)}

    @given(st.integers(0, 2**64 - 1))
    @settings(
        max_examples=max(1, MUTANTS // IN_ONE_EXAMPLE),
        database=None,
        derandomize="COMPILEWATCH_TEST_MUTANTS" not in os.environ,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    def send(seed: int) -> None:
        rnd = random.Random(seed)
        target.number = rnd.randrange(5000)
        good = full(target)
        mutants = []
        for nth in range(IN_ONE_EXAMPLE):
            good["reports"][0]["seq"] = [seed % 2**40 + nth + 1] * 2
            mutants.append(mutant(rnd, good))
        # A stored report waits for a commit; concurrent reports share one.
        for nth, (status, said) in enumerate(
            pool.map(connections.send, *zip(*mutants, strict=True))
        ):
            seen[status] += 1
            # If the head alone is refused, the body is not read: a client that keeps writing may
            # meet a closed connection before the response.
            unread = status == 0 and len(mutants[nth][0]) > MAX_WIRE_BYTES
            assert status in ANSWERS or unread, (seed, nth, status, said[:300])

    with ThreadPoolExecutor(8) as pool:
        send()
    assert alive <= {process.pid for process in processes(target.stack)}
    print(f"\n{seen.total():,} spoiled reports: {dict(sorted(seen.items()))}")
    assert seen[200] > seen.total() // 20 and seen[400] > seen.total() // 20


def test_stored_reports_fold_and_the_next_good_report_is_accepted(target: Target) -> None:
    target.number = 2_000_000
    assert target.post(target.data()).data["acked"] == [[1, 1]]
    wait_for("everything is folded", target.stack.folded, seconds=max(120, MUTANTS / 200))
    assert target.stack.rows("SELECT error FROM ingest_poison") == []
    assert "Traceback" not in target.stack.logs()

"""A job with the agent of an earlier release and a ledger as in `tests.faults.job`: `python -m
tests.faults.earlier_job LEDGER --version V`, with the agent of that release on the path. Runs until
it is stopped."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import compilewatch
from compilewatch import client, sender, transport, worker
from compilewatch.wire import report

sys.modules["compilewatch.wire.messages"] = (
    report  # the ledger imports it by its name in this release
)

from tests.faults.ledger import Ledger  # noqa: E402


def main() -> None:
    """Calls a watched function in small bursts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("ledger", type=Path)
    parser.add_argument("--version", required=True)
    parser.add_argument("--pause", type=float, default=0.002)
    given = parser.parse_args()
    ledger = Ledger(given.ledger)
    observe(ledger)
    # As impatient as the jobs of this release in a test.
    sender.FIRST_WAIT, sender.LONGEST_WAIT, sender.LEAST_RETRY_AFTER, sender.MOST_RETRY_AFTER = (
        0.1,
        3.0,
        0.05,
        0.2,
    )
    worker.TICK_SECONDS = 0.2
    assert compilewatch.init(model="faults", version=given.version, interval=0.2)
    call = compilewatch.watch(lambda: None, name="step")
    while True:
        calls = random.randint(1, 20)
        ledger.write("begin", calls=calls)
        for _ in range(calls):
            call()
        ledger.write("done", calls=calls)
        time.sleep(given.pause)


def observe(ledger: Ledger) -> None:
    """Records windows when they are queued, and acknowledgements before the agent applies them."""
    add, send = worker.Outbox.add, transport.HttpTransport.send

    def adding(self: Any, report: Any) -> None:
        running: Any = client.CLIENT.worker
        ledger.window(running.identity.id, report)
        add(self, report)

    def sending(self: Any, body: bytes) -> Any:
        answer = send(self, body)
        if answer.ack is not None:
            ledger.write(
                "acked", instance=json.loads(body)["instance"]["id"], ranges=answer.ack.acked
            )
        return answer

    worker.Outbox.add = adding  # type: ignore[method-assign]
    transport.HttpTransport.send = sending  # type: ignore[method-assign]


if __name__ == "__main__":
    main()

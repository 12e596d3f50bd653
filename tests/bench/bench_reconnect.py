"""Simultaneous return of thousands of agents: `python -m tests.bench.bench_reconnect [--agents
10000] [--outage 300]`.

The outage is simulated: the back-off of each agent determines the time of its next attempt. From
the return on, time is real. Each agent opens its own connection, sends all windows of the outage in
one request, and retries as the response and its back-off require. Every acknowledged window must be
folded exactly once."""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import random
import time
from collections import Counter
from typing import Any

from compilewatch.export.outbox import Outbox
from compilewatch.export.sender import Sender as Backoff
from compilewatch.export.transport import FileTransport
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Device, Gauges, Report

from tests.bench.line import Line
from tests.bench.load_reports import WINDOW, Sender, length_of, regions_of

ANSWERED_WITHIN = 8.0
FOLDED_WITHIN = 600.0


class Agent:
    """One agent after the outage; times are seconds after the return."""

    def __init__(self, number: int, rnd: random.Random, outage: float) -> None:
        self._sender, self._windows = Sender(number, 1), int(outage / WINDOW)
        # The agent never sends; only its back-off is used.
        self._backoff = Backoff(FileTransport(""), Outbox(), chance=rnd.random)
        self.next = rnd.random() * WINDOW - outage
        while self.next < 0:
            self._backoff.failures += 1
            self.next += self._backoff._wait("")
        self.acked_at = 0.0

    def body(self, reports: list[dict[str, Any]]) -> bytes:
        """All windows of the agent as one request."""
        now, last = time.time(), self._windows
        windows = [
            {
                **report,
                "seq": [n + 1, n + 1],
                "window": [now - WINDOW * (last - n), now - WINDOW * (last - n - 1)],
            }
            for n, report in enumerate(reports[:last])
        ]
        return gzip.compress(
            json.dumps(
                {"v": 1, "sent": now, "instance": self._sender.identity, "reports": windows}
            ).encode(),
            1,
        )

    def wait(self, retry_after: str) -> float:
        """Seconds until the next attempt after a failed one."""
        self._backoff.failures += 1
        return self._backoff._wait(retry_after)


class Crowd:
    """All agents and the responses that they received."""

    def __init__(self, line: Line, agents: int, outage: float, seed: int) -> None:
        rnd = random.Random(seed)
        self.line, self.agents = line, [Agent(number, rnd, outage) for number in range(agents)]
        gauges = Gauges(
            [Device(index=0, allocated=30 << 30, peak=34 << 30, reserved=36 << 30)],
            host_rss=5 << 30,
        )
        self.reports = [
            encode(Report((1, 1), (0.0, 0.0), regions=regions_of(n), gauges=gauges))
            for n in range(int(outage / WINDOW))
        ]
        self.head = (
            "POST /api/v1/reports HTTP/1.1\r\nHost: "
            f"127.0.0.1:{line.port}\r\nAuthorization: Bearer {line.key}\r\n"
            "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
        )
        self.answers: Counter[str] = Counter()
        self.per_second: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.begin = 0.0

    async def come_back(self) -> None:
        """Runs every agent until its windows are acknowledged."""
        self.begin = time.perf_counter()
        await asyncio.gather(*(self._one(agent) for agent in self.agents))

    async def _one(self, agent: Agent) -> None:
        while True:
            await asyncio.sleep(max(0.0, agent.next - self._now()))
            self.per_second[int(self._now())] += 1
            sent = self._now()
            try:
                status, retry_after = await asyncio.wait_for(
                    self._post(agent.body(self.reports)), ANSWERED_WITHIN
                )
            except OSError as error:
                status, retry_after = type(error).__name__, ""
            self.answers[status] += 1
            if status == "200":
                self.latencies.append(self._now() - sent)
                agent.acked_at = self._now()
                return
            agent.next = self._now() + agent.wait(retry_after)

    async def _post(self, body: bytes) -> tuple[str, str]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.line.port)
        try:
            writer.write(f"{self.head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(length_of(head))
        except asyncio.IncompleteReadError as error:
            raise ConnectionResetError from error
        finally:
            writer.close()
        waits = [
            line[12:].strip().decode()
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"retry-after:")
        ]
        return head[9:12].decode(), waits[0] if waits else ""

    def _now(self) -> float:
        return time.perf_counter() - self.begin

    def summary(self) -> str:
        """Summary of the requests, responses and latencies."""
        done = sorted(agent.acked_at for agent in self.agents)
        latencies = sorted(self.latencies)
        return (
            f"{len(done)} agents, {sum(self.answers.values())} requests, at most "
            f"{max(self.per_second.values())} in a second;"
            f" acknowledged: half after {done[len(done) // 2]:.0f} s, all after {done[-1]:.0f} s;"
            f" response p50 {1e3 * latencies[len(latencies) // 2]:.0f} ms, p99 "
            f"{1e3 * latencies[int(0.99 * len(latencies))]:.0f} ms;"
            f" responses {dict(self.answers)}"
        )


def folded(line: Line, windows: int) -> str:
    """Time from the last response until everything was folded, and the number of folded windows."""
    begin = time.perf_counter()
    while (
        line.rows("SELECT 1 FROM ingest_inbox LIMIT 1")
        and time.perf_counter() - begin < FOLDED_WITHIN
    ):
        time.sleep(0.5)
    [[count]] = line.rows("SELECT coalesce(sum(windows), 0) FROM process_minute")
    return (
        f"{count} of {windows} windows folded, the last {time.perf_counter() - begin:.0f} s "
        "after the last response"
    )


def main() -> None:
    """Prints one line for the agents and one for the fold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--database", default="postgresql", choices=["postgresql", "sqlite"])
    parser.add_argument("--agents", type=int, default=10_000)
    parser.add_argument("--outage", type=float, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    line = Line(options.database)
    try:
        crowd = Crowd(line, options.agents, options.outage, options.seed)
        line.serve("embedded" if options.database == "sqlite" else "granian")
        if options.database == "postgresql":
            line.worker()
        asyncio.run(crowd.come_back())
        print(crowd.summary(), flush=True)
        print(folded(line, options.agents * int(options.outage / WINDOW)), flush=True)
    finally:
        line.close()


if __name__ == "__main__":
    main()

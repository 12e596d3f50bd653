"""Closed-loop load on a report endpoint: each connection sends report after report like an agent, with gzip and
rising sequence numbers.

usage: python -m tests.bench.load_reports http://127.0.0.1:8000/api/v1/reports --key KEY [--connections 32] [--instances 320]
       [--seconds 10] [--rate R] [--ledger FILE]
Loopback only. `--rate` limits the sum of all connections (reports/s). A response counts only if it is 200 and its body
acknowledges the sent range; an unacknowledged report is sent again. The common part of a body is compressed once, and the
part that differs between reports follows as a stored block, so that the generator takes little CPU of the shared machine."""

from __future__ import annotations

import argparse
import functools
import heapq
import json
import random
import select
import socket
import sys
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Device, Gauges, Identity, Region, Report
from compilewatch.wire.sketch import Sketch

PAUSE_WHEN_REFUSED = 0.2
PAUSE_WHEN_DOWN = 0.05
ANSWERED_WITHIN = 15.0
WINDOW = 10.0
DIFFERENT = 50
"""Reports with different measurements; the instances share them."""


@functools.cache
def regions_of(seed: int) -> list[Region]:
    """Two shape buckets of one region, with wall time and GPU time each."""
    rnd = random.Random(seed)
    return [
        Region(
            name="forward",
            bucket=bucket,
            calls=1000,
            items=8000.0,
            compiled=1000,
            sampled=1000,
            latency=Sketch.of(rnd.lognormvariate(-4.7, 0.2) for _ in range(1000)),
            gpu=Sketch.of(rnd.lognormvariate(-4.8, 0.2) for _ in range(100)),
        )
        for bucket in ("2^12", "2^14")
    ]


def identity_of(instance: str, index: int, rnd: random.Random) -> dict[str, Any]:
    """The identity of one of eight ranks of a job, as JSON."""
    identity = Identity(
        id=instance,
        started=time.time() - 600,
        model=f"load-{index % 20}",
        version=f"v{index // 20 % 3}",
        environment="bench",
        job=f"job-{index // 8}",
        rank=index % 8,
        world_size=8,
        host=f"host-{index // 8}",
        gpu="NVIDIA H200",
        gpu_count=8,
        driver="580.159.04",
        torch="2.11.0+cu130",
        triton="3.6.0",
        cuda="13.0",
        python="3.12.3",
        agent="0.1.0",
        capabilities=dict.fromkeys(
            ("compilations", "recompile_limit", "compiled_calls", "gpu_time", "memory"), ("yes", "")
        ),
        components={
            name: f"{rnd.getrandbits(64):016x}"
            for name in ("env", "dynamo_config", "inductor_config")
        },
    )
    found: dict[str, Any] = encode(identity)
    return found


class Sender:
    """One instance: its identity, its next sequence number, and its acknowledged numbers."""

    def __init__(self, index: int, seed: int) -> None:
        rnd = random.Random(seed * 100_003 + index)
        self.id = f"{rnd.getrandbits(100):026x}"
        self.seq, self.acked = 1, 0
        self.identity = identity_of(self.id, index, rnd)
        device = Device(
            index=0, allocated=30 << 30, peak=34 << 30, reserved=36 << 30, utilisation=0.9
        )
        report = encode(
            Report(
                (1, 1),
                (0.0, 0.0),
                regions=regions_of(index % DIFFERENT),
                gauges=Gauges([device], host_rss=5 << 30),
            )
        )
        del report["seq"], report["window"]
        bulk = json.dumps(
            {"v": 1, "instance": self.identity, "reports": [report]}, separators=(",", ":")
        )[: -len("}]}")].encode()
        packer = zlib.compressobj(6, wbits=31)
        self._bulk = packer.compress(bulk) + packer.flush(zlib.Z_FULL_FLUSH)
        self._sum, self._size = zlib.crc32(bulk), len(bulk)

    def body(self) -> bytes:
        """The request with the next report, as gzip."""
        now = time.time()
        tail = b',"seq":[%d,%d],"window":[%.3f,%.3f]}],"sent":%.3f}' % (
            self.seq,
            self.seq,
            now - WINDOW,
            now,
            now,
        )
        length = len(tail)
        stored = (
            b"\x01" + length.to_bytes(2, "little") + (length ^ 0xFFFF).to_bytes(2, "little") + tail
        )
        return (
            self._bulk
            + stored
            + zlib.crc32(tail, self._sum).to_bytes(4, "little")
            + (self._size + length).to_bytes(4, "little")
        )

    def note(self, answer: bytes) -> bool:
        """True if the response acknowledges the sent report; the next report is then due."""
        done = b'"acked":[[%d,%d]]' % (self.seq, self.seq) in answer
        if done:
            self.acked, self.seq = self.seq, self.seq + 1
        return done


@dataclass
class Tally:
    """Counts of the responses."""

    latencies: list[float] = field(default_factory=list)
    acked: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    broken: int = 0
    bytes_sent: int = 0


class Connection:
    """One connection and the instances that take turns on it."""

    def __init__(
        self, address: tuple[str, int], head: str, senders: list[Sender], tally: Tally
    ) -> None:
        self._address, self._head, self._senders, self._tally = address, head, senders, tally
        self._turn = 0
        self._socket: socket.socket | None = None
        self._answer = b""
        self.sent_at = self.due_at = 0.0

    def send(self, poll: select.epoll, by_number: dict[int, Connection]) -> bool:
        """Sends the next report; False if the server does not accept it."""
        body = self._senders[self._turn].body()
        try:
            if self._socket is None:
                self._socket = socket.create_connection(self._address, timeout=ANSWERED_WITHIN)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                poll.register(self._socket, select.EPOLLIN)
                by_number[self._socket.fileno()] = self
            self.sent_at = time.perf_counter()
            self._socket.sendall(f"{self._head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        except OSError:
            self.drop(by_number)
            return False
        self._tally.bytes_sent += len(body)
        return True

    def receive(self, by_number: dict[int, Connection]) -> float | None:
        """Seconds to pause before the next report; None while the response is incomplete."""
        assert self._socket is not None
        try:
            part = self._socket.recv(65536)
        except OSError:
            part = b""
        if not part:
            self._tally.broken += 1
            self.drop(by_number)
            return PAUSE_WHEN_DOWN
        self._answer += part
        head, gap, body = self._answer.partition(b"\r\n\r\n")
        if not gap or len(body) < length_of(head):
            return None
        self._answer = b""
        return self._judge(int(head[9:12]), body, b"connection: close" in head.lower(), by_number)

    def _judge(
        self, status: int, body: bytes, closed: bool, by_number: dict[int, Connection]
    ) -> float:
        self._tally.latencies.append(time.perf_counter() - self.sent_at)
        if closed:
            self.drop(by_number)
        if status == 200 and self._senders[self._turn].note(body):
            self._tally.acked += 1
            self._turn = (self._turn + 1) % len(self._senders)
            return 0.0
        self._tally.refused[status] += 1
        return PAUSE_WHEN_REFUSED

    def drop(self, by_number: dict[int, Connection]) -> None:
        """Closes the connection; the next report opens a new one."""
        if self._socket is not None:
            by_number.pop(self._socket.fileno(), None)
            self._socket.close()
        self._socket, self._answer = None, b""


def length_of(head: bytes) -> int:
    """The content length in the head of a response."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line[15:])
    return 0


def load(connections: list[Connection], *, seconds: float, rate: float) -> float:
    """Drives all connections until the end, waits for the last responses, and returns the duration.

    A late sender does not delay its next report, so the offered load equals the rate even if
    responses are slow."""
    poll, by_number = select.epoll(), dict[int, Connection]()
    begin = time.perf_counter()
    end, gap = begin + seconds, len(connections) / rate if rate else 0.0
    due = [(begin + random.random() * gap, number) for number in range(len(connections))]
    place = {id(connection): number for number, connection in enumerate(connections)}
    heapq.heapify(due)
    while (now := time.perf_counter()) < end or (by_number and now < end + 1.0):
        while due and due[0][0] <= now < end:
            planned, number = heapq.heappop(due)
            connections[number].due_at = planned
            if not connections[number].send(poll, by_number):
                heapq.heappush(due, (now + PAUSE_WHEN_DOWN, number))
        wait = min(0.5, max(0.0, due[0][0] - now)) if due and now < end else 0.05
        ready = poll.poll(wait)
        if not ready and now >= end:
            break
        for descriptor, _ in ready:
            connection = by_number.get(descriptor)
            if connection is None or (pause := connection.receive(by_number)) is None:
                continue
            after = time.perf_counter()
            heapq.heappush(
                due, (max(after + pause, connection.due_at + gap), place[id(connection)])
            )
    return min(time.perf_counter(), end) - begin


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url")
    parser.add_argument("--key", required=True)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument(
        "--instances", type=int, default=0, help="number of instances (default: one per connection)"
    )
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument(
        "--ledger",
        help="write the id and the highest acknowledged number of each instance as JSON",
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


def summarize(tally: Tally, took: float, own: float) -> dict[str, Any]:
    """Results of the run; `took` is wall time and `own` is processor time of the generator, both in
    seconds."""
    latencies = sorted(tally.latencies) or [0.0]
    p50, p99, slowest = (
        1e3 * latencies[min(len(latencies) - 1, int(q * len(latencies)))] for q in (0.5, 0.99, 1.0)
    )
    return {
        "acknowledged": tally.acked,
        "rate": tally.acked / took,
        "refused": dict(tally.refused),
        "broken": tally.broken,
        "p50": p50,
        "p99": p99,
        "slowest": slowest,
        "bytes": tally.bytes_sent // max(1, len(latencies)),
        "processor": own,
    }


def main() -> None:
    """Loads the endpoint and prints one line."""
    options = parsed()
    url = urlsplit(options.url)
    if url.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise SystemExit("only loopback addresses are allowed")
    tally = Tally()
    senders = [
        Sender(index, options.seed) for index in range(max(options.connections, options.instances))
    ]
    head = (
        f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {options.key}\r\n"
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
    )
    address = (url.hostname, url.port or 80)
    connections = [
        Connection(address, head, senders[n :: options.connections], tally)
        for n in range(options.connections)
    ]
    processor = time.process_time()
    took = load(connections, seconds=options.seconds, rate=options.rate)
    own = time.process_time() - processor
    if options.ledger:
        with open(options.ledger, "w") as file:  # noqa: PTH123  # a path from the caller
            json.dump({sender.id: sender.acked for sender in senders}, file)
    figures = summarize(tally, took, own)
    if options.json:
        print(json.dumps(figures))
        return
    print(
        f"acknowledged {figures['rate']:.0f}/s  refused {figures['refused'] or 'none'}  "
        f"broken {tally.broken}"
        f"  p50 {figures['p50']:.1f} ms  p99 {figures['p99']:.1f} ms  max "
        f"{figures['slowest']:.1f} ms"
        f"  {figures['bytes']} B/report, generator {own / max(1, tally.acked) * 1e6:.0f} us/report"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    main()

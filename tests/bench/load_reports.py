"""Closed-loop load on a report endpoint: N connections, one instance each, gzip bodies, rising sequence numbers.

usage: python -m tests.bench.load_reports http://127.0.0.1:8000/api/v1/reports --key KEY [--connections 32] [--seconds 10] [--rate R]
Loopback only. `--rate` limits the sum of all connections (reports/s). An answer counts only if it is 200 and its body
acknowledges the range that was sent. Prints acknowledged/s, refusals by status, latency p50, p99 and max, bytes per report."""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, urlsplit

from compilewatch.wire.codec import encode
from compilewatch.wire.report import Device, Gauges, Identity, Losses, Region, Report, Request
from compilewatch.wire.sketch import Sketch

SEQ_PLACE = "[987654321, 987654321]"
PAUSE_WHEN_REFUSED = 0.2


@dataclass
class Tally:
    """What came back."""

    latencies: list[float] = field(default_factory=list)
    acked: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    bytes_sent: int = 0


def request_text(index: int, seed: int) -> str:
    """The JSON of one instance's request, with a place for the sequence number."""
    rnd = random.Random(seed * 100_003 + index)
    now = time.time()
    regions = [
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
    device = Device(index=0, allocated=30 << 30, peak=34 << 30, reserved=36 << 30, utilisation=0.9)
    report = Report(
        seq=(987654321, 987654321), window=(now - 10, now), regions=regions, gauges=Gauges([device], host_rss=5 << 30), losses=Losses()
    )
    identity = Identity(
        id=f"{rnd.getrandbits(100):026x}",
        started=now - 600,
        model=f"load-{index % 20}",
        version=f"v{index % 3}",
        environment="bench",
        job=f"job-{index // 8}",
        rank=index % 8,
        world_size=8,
        host=f"host-{index // 8}",
        gpu="NVIDIA H200",
        torch="2.11.0",
    )
    return json.dumps(encode(Request(v=1, sent=now, instance=identity, reports=[report])))


def body_bytes(text: str, seq: int) -> bytes:
    """The request with its sequence number, compressed as the agent does."""
    packer = zlib.compressobj(1, wbits=31)
    return packer.compress(text.replace(SEQ_PLACE, f"[{seq}, {seq}]").encode()) + packer.flush()


async def one_connection(index: int, options: argparse.Namespace, url: SplitResult, end: float, tally: Tally) -> None:
    """Sends reports one after the other until the end."""
    reader, writer = await asyncio.open_connection(url.hostname, url.port or 80)
    text = request_text(index, options.seed)
    head = (
        f"POST {url.path} HTTP/1.1\r\nHost: {url.netloc}\r\nAuthorization: Bearer {options.key}\r\n"
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
    )
    gap = options.connections / options.rate if options.rate else 0.0
    due = time.perf_counter() + random.random() * gap
    seq = 0
    while (now := time.perf_counter()) < end:
        if due > now:
            await asyncio.sleep(due - now)
        due = max(due + gap, now) if gap else 0.0
        seq += 1
        data = body_bytes(text, seq)
        start = time.perf_counter()
        writer.write(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
        status, answer = await read_answer(reader)
        tally.latencies.append(time.perf_counter() - start)
        tally.bytes_sent += len(data)
        if status == 200 and [seq, seq] in answer.get("acked", []):
            tally.acked += 1
        else:
            tally.refused[status] += 1
            await asyncio.sleep(PAUSE_WHEN_REFUSED)
    writer.close()


async def read_answer(reader: asyncio.StreamReader) -> tuple[int, dict[str, Any]]:
    """Status and JSON of one answer."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
    length = next((int(line.partition(b":")[2]) for line in head if line.startswith(b"content-length")), 0)
    return int(head[0].split(b" ", 2)[1]), json.loads(await reader.readexactly(length))


async def load(options: argparse.Namespace, url: SplitResult) -> str:
    """Runs all connections and says what came of it."""
    tally, begin = Tally(), time.perf_counter()
    await asyncio.gather(*(one_connection(i, options, url, begin + options.seconds, tally) for i in range(options.connections)))
    took, latencies = time.perf_counter() - begin, sorted(tally.latencies)
    p50, p99, slowest = (1e3 * latencies[min(len(latencies) - 1, int(q * len(latencies)))] for q in (0.5, 0.99, 1.0))
    return (
        f"acknowledged {tally.acked / took:.0f}/s  refused {dict(tally.refused) or 'none'}"
        f"  p50 {p50:.1f} ms  p99 {p99:.1f} ms  max {slowest:.1f} ms  {tally.bytes_sent // len(latencies)} B/report"
    )


def main() -> None:
    """Reads the command line and prints one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url")
    parser.add_argument("--key", required=True)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=0)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()
    url = urlsplit(options.url)
    if url.hostname not in ("127.0.0.1", "localhost", "::1"):
        raise SystemExit("loopback only")
    print(asyncio.run(load(options, url)))


if __name__ == "__main__":
    main()

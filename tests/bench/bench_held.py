"""Resources of the agent compared with a bare process: memory after each step, after an hour, and
after a day with a dead server, and the processor time of the agent's thread. Memory is the resident
set size (RSS) that the system reports, not the agent's own accounting."""

from __future__ import annotations

import ssl
import sys
import tempfile
from pathlib import Path

from tests.agent.export.http.handshakes import encrypted
from tests.bench.peer_server import PeerServer
from tests.bench.process import answer, environment, start
from tests.bench.table import Row, show
from tests.dashboard.common.test_outbound_certificates import DAY as CERTIFICATE_DAYS
from tests.dashboard.common.test_outbound_certificates import NOW, certificate
from tests.dashboard.common.wire_server import wire_server

MEMORY_MIB, GROWTH_MIB, SHARE = 24.0, 4.0, 0.1
SECONDS = 30.0

RATES = {0: "no calls", 10_000: "10,000 calls/s"}

RSS = """
import gc, json, sys, time
def rss():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / (1 << 20)
"""
HELD = """
bare = rss()
import compilewatch
imported = rss()
compilewatch.init(model="bench", endpoint=sys.argv[1], api_key="k", interval=0.05)
while compilewatch.agent.AGENT.worker.reporter is None:
    time.sleep(0.01)
started = rss()
calls = [compilewatch.watch(lambda x=None: x, name=f"region {n}") for n in range(20)]
instance = compilewatch.agent.AGENT.worker.reporter
while instance._seq < 360:
    for call in calls:
        call()
    time.sleep(0.001)
print(json.dumps({"import": imported - bare, "init": started - bare, "hour": rss() - bare}))
"""
OPENTELEMETRY = """
bare = rss()
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
imported = rss()
reader = PeriodicExportingMetricReader(OTLPMetricExporter(sys.argv[1] + "/v1/metrics"), export_interval_millis=3_600_000)
meter = MeterProvider(metric_readers=[reader], shutdown_on_exit=False).get_meter("bench")
started = rss()
histograms = [meter.create_histogram(f"region_{n}") for n in range(20)]
for _ in range(360):
    for histogram in histograms:
        histogram.record(0.001)
    reader.collect()
print(json.dumps({"import": imported - bare, "init": started - bare, "hour": rss() - bare}))
import os
sys.stdout.flush()
os._exit(0)
"""
DAY = """
import random, time
ahead, real, wall = [0.0], time.monotonic, time.time
time.monotonic = lambda: real() + ahead[0]
time.time = lambda: wall() + ahead[0]
import compilewatch.recording.recorder as home
from compilewatch.config import load
from compilewatch.reporter import Reporter
from compilewatch.sources.registry import InstalledSources
recorder = home.RECORDER
recorder.start()
instance = Reporter(load({"model": "bench", "endpoint": sys.argv[1], "api_key": "k"}), recorder, InstalledSources(recorder), time.time())
import compilewatch
calls = [compilewatch.watch(lambda x=None: x, name=f"region {n}") for n in range(20)]
attempts, chance = 0, random.Random(1)
def window(number):
    for call in calls:
        for _ in range(10):
            call()
    for _ in range(3):
        recorder.record_finding("guard", f"size of {chance.randrange(1000)} differs", "model.py:7")
    ahead[0] += 10.0
    instance.close_window()
    if instance.sender.due():
        instance.send()
        return 1
    return 0
for number in range(60):
    attempts += window(number)
begun = rss()
peak = begun
for number in range(8640):
    attempts += window(number)
    peak = max(peak, rss()) if number % 240 == 0 else peak
print(json.dumps({"growth": max(peak, rss()) - begun, "attempts": attempts, "held": instance.outbox.size_bytes / (1 << 20)}))
"""
SHARE_OF = """
import json, sys, threading, time
import compilewatch
compilewatch.init(model="bench", endpoint=sys.argv[1], api_key="k")
call, rate, seconds = compilewatch.watch(lambda: None, name="forward"), int(sys.argv[2]), float(sys.argv[3])
time.sleep(12.0)
mine = next(one for one in threading.enumerate() if one.name == "compilewatch")
clock = time.pthread_getcpuclockid(mine.ident)
before, began = time.clock_gettime(clock), time.monotonic()
while (left := began + seconds - time.monotonic()) > 0:
    for _ in range(rate // 100):
        call()
    time.sleep(min(left, 0.01 if rate else 1.0))
used, took = time.clock_gettime(clock) - before, time.monotonic() - began
print(json.dumps({"share": used / took * 100, "window": used / took * 10_000}))
"""
PEER_SHARE = """
import json, sys, threading, time
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
known = set(threading.enumerate())
reader = PeriodicExportingMetricReader(OTLPMetricExporter(sys.argv[1] + "/v1/metrics"), export_interval_millis=10_000)
meter = MeterProvider(metric_readers=[reader], shutdown_on_exit=False).get_meter("bench")
call, rate, seconds = meter.create_histogram("forward").record, int(sys.argv[2]), float(sys.argv[3])
call(0.001)
time.sleep(12.0)
clock = time.pthread_getcpuclockid((set(threading.enumerate()) - known).pop().ident)
before, began = time.clock_gettime(clock), time.monotonic()
while (left := began + seconds - time.monotonic()) > 0:
    for _ in range(rate // 100):
        call(0.001)
    time.sleep(min(left, 0.01 if rate else 1.0))
used, took = time.clock_gettime(clock) - before, time.monotonic() - began
print(json.dumps({"share": used / took * 100, "window": used / took * 10_000}))
sys.stdout.flush()
import os
os._exit(0)
"""


SHARES = {"ours": SHARE_OF, "peer": PEER_SHARE}
PEER = "OpenTelemetry metrics"


def shares(url: str) -> list[Row]:
    """Processor time of the thread. All processes run at once, since each mostly sleeps."""
    running = {
        (who, rate): start(SHARES[who], url, str(rate), str(SECONDS))
        for who in SHARES
        for rate in RATES
    }
    found = {key: answer(process) for key, process in running.items()}
    rows = []
    for rate, what in RATES.items():
        ours, peer = found["ours", rate], found["peer", rate]
        rows.append(
            Row(f"processor time per window, {what}", "ms", ours["window"], peer["window"], PEER)
        )
        rows.append(Row(f"share of a core, {what}", "%", ours["share"], peer["share"], PEER, SHARE))
    return rows


def memory(url: str) -> list[Row]:
    """Memory of a process beyond its size before the first import."""
    ours, peer = answer(start(RSS + HELD, url)), answer(start(RSS + OPENTELEMETRY, url))
    steps = {"import": "imported", "init": "started", "hour": "after 360 windows"}
    rows = [
        Row(f"memory over a bare process, {text}", "MiB", ours[key], peer[key], PEER, MEMORY_MIB)
        for key, text in steps.items()
    ]
    beside_torch = answer(start(RSS + "import torch\n" + HELD, url))
    secure = memory_over_https(int(url.rpartition(":")[2]))
    return [
        *rows,
        *(
            Row(f"memory over a bare process, https, {text}", "MiB", secure[key], goal=MEMORY_MIB)
            for key, text in steps.items()
        ),
        *(
            Row(f"memory over a process with torch, {text}", "MiB", beside_torch[key])
            for key, text in steps.items()
        ),
    ]


def memory_over_https(port: int) -> dict[str, float]:
    """The same steps over https, with the certificates of this system loaded."""
    with tempfile.TemporaryDirectory() as name:
        own, trusted = (
            certificate(Path(name), "localhost", NOW + CERTIFICATE_DAYS),
            Path(name) / "trusted.pem",
        )
        system = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
        trusted.write_bytes(Path(system).read_bytes() + own.read_bytes())
        with wire_server(encrypted(own, port)) as front:
            environ = environment(SPOOL="off") | {"SSL_CERT_FILE": str(trusted)}
            return answer(start(RSS + HELD, f"https://localhost:{front.port}", environ=environ))


def day() -> list[Row]:
    """A simulated day with a fast clock and a dead server."""
    found = answer(start(RSS + DAY, "http://127.0.0.1:9"))
    return [
        Row(
            f"24 h, dead server ({found['attempts']} attempts): growth",
            "MiB",
            found["growth"],
            goal=GROWTH_MIB,
        )
    ]


def main() -> int:
    """Prints the tables; 1 if a goal is missed."""
    server = PeerServer()
    server.up()
    missed = [show(memory(server.url)), show(shares(server.url))]
    server.away()
    return max(*missed, show(day()))


if __name__ == "__main__":
    sys.exit(main())

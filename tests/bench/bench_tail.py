"""The slowest of ten million calls on eight threads while the dashboard accepts connections without
a response: bare, watched, watched without the agent's thread, and with prometheus_client. Each
variant runs in its own process, alternately."""

from __future__ import annotations

import socket
import sys

from tests.bench.process import answer, environment, start
from tests.bench.table import Row, show

CALLS, THREADS = 10_000_000, 8

LOOP = """
import json, sys, threading, time
from array import array
def no_op():
    pass
way, calls, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
call = no_op
if way.startswith("watch"):
    import compilewatch
    assert compilewatch.init(model="bench", endpoint=sys.argv[4], api_key="k")
    call = compilewatch.watch(no_op, name="forward")
    time.sleep(1.0)
    if way == "watch, no thread":
        compilewatch.agent.AGENT.worker.stop(5.0)
elif way == "prometheus_client":
    from tests.bench.peers import prometheus, timed
    call = timed(no_op, prometheus())
taken = [array("q", bytes(8 * (calls // count))) for _ in range(count)]
def run(mine):
    clock = time.perf_counter_ns
    for number in range(len(mine)):
        began = clock()
        call()
        mine[number] = clock() - began
threads = [threading.Thread(target=run, args=(mine,)) for mine in taken]
began = time.perf_counter()
for one in threads: one.start()
for one in threads: one.join()
took = time.perf_counter() - began
import numpy
every = numpy.concatenate([numpy.frombuffer(mine, dtype="q") for mine in taken])
p50, p999 = (float(value) for value in numpy.quantile(every, [0.5, 0.999]))
print(json.dumps({"p50": p50 / 1e3, "p999": p999 / 1e3, "max": float(every.max()) / 1e6, "seconds": took}))
sys.stdout.flush()
import os
os._exit(0)
"""
WAYS = ("bare", "watch", "watch, no thread", "prometheus_client")


def main() -> int:
    """Prints the table. The bare results also include the contention between the threads of a
    process."""
    with socket.socket() as hole:
        hole.bind(("127.0.0.1", 0))
        hole.listen(64)
        endpoint = f"http://127.0.0.1:{hole.getsockname()[1]}"
        found = {}
        for way in WAYS:
            words = (way, str(CALLS), str(THREADS), endpoint)
            found[way] = answer(start(LOOP, *words, environ=environment(SPOOL="off")))
    peer, rows = found["prometheus_client"], []
    for way in WAYS[:-1]:
        for figure, unit in (("p50", "us"), ("p999", "us"), ("max", "ms")):
            # The slowest call is a thread that waited for the interpreter lock; either variant may
            # have it by chance.
            goals = {"goal_ratio": 1.0} if way == "watch" and figure != "max" else {}
            shown = {"p50": "median", "p999": "99.9%", "max": "slowest"}[figure]
            rows.append(
                Row(
                    f"8 threads, {way}: {shown}",
                    unit,
                    found[way][figure],
                    peer[figure],
                    "prometheus_client",
                    **goals,
                )
            )
    return show(rows)


if __name__ == "__main__":
    sys.exit(main())

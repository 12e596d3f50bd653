"""A sender without the agent: creates reports in plain JSON, over past minutes and hours, and
writes the counts of each report to a file before it sends the report; `python -m
tests.faults.plain_sender NOTES ENDPOINT KEY VERSION SEED WINDOWS`.

Imports nothing of the product: the counts are computed independently."""

from __future__ import annotations

import http.client
import json
import os
import random
import string
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

INSTANCES = 3
PLACES = (("step", ""), ("step", "2^12"), ("encode", "2^9"))
SKETCHES = ("latency", "gpu", "warmup", "stalled")
KINDS = ("first", "recompile", "recompile", "cuda_graph")
MILLISECONDS = (15_000, 20_000, 30_000, 60_000)
PATIENCE_SECONDS, PAUSE_SECONDS = 180.0, 0.05


class Process:
    """One instance: its windows follow each other from a past moment on, and often end at the end
    of a minute or an hour."""

    def __init__(self, chance: random.Random, version: str) -> None:
        self._chance, self._version, self._seq = chance, version, 0
        self.id = "".join(chance.choices(string.ascii_lowercase + string.digits, k=26))
        self._at = (int(time.time()) // 60 - chance.randrange(700, 3000)) * 60_000
        self.identity = {
            "id": self.id,
            "started": self._at / 1000 - 60,
            "model": "faults",
            "version": version,
        }

    def window(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The next report and its note."""
        chance, start = self._chance, self._at
        long = chance.random() < 0.05
        end = start + (
            chance.randrange(61_000, 900_000)
            if long
            else chance.choice(MILLISECONDS) + chance.choice((0, 0, 0, -3001, 1))
        )
        self._at = end + chance.choice((0, 0, 0, 0, 45_000, 1_800_000))
        seq = [self._seq + 1, self._seq + 1 + (chance.random() < 0.1)]
        self._seq = seq[1]
        report: dict[str, Any] = {
            "seq": seq,
            "window": [start / 1000, end / 1000],
            "regions": [],
            "compiles": [],
        }
        note: dict[str, Any] = {
            "instance": self.id,
            "version": self._version,
            "seq": seq,
            "start": start,
            "end": end,
            "compiles": {},
        }
        note |= {"regions": {}, "process": Counter()}
        for name, bucket in chance.sample(PLACES, chance.randint(1, len(PLACES))):
            region, counts = self._region()
            report["regions"].append({"name": name, "bucket": bucket, **region})
            note["regions"][f"{name}|{bucket}"] = counts
        for number in range(chance.choice((0, 0, 1, 1, 2, 5))):
            self._compile(f"{seq[0]}/{number}", chance.randrange(start, end + 1), report, note)
        return report, note

    def _region(self) -> tuple[dict[str, Any], Counter[str]]:
        chance = self._chance
        calls = chance.choice((0, 1, 7, 250, 12_345)) + chance.randrange(50)
        numbers = {
            "calls": calls,
            "errors": chance.randint(0, calls),
            "compiled": chance.randint(0, calls),
            "sampled": calls,
        }
        numbers |= {"partial": chance.randrange(9), "unknown": chance.randrange(9)}
        eager = {"limit": chance.randrange(5), "no_graph": chance.randrange(5)}
        counts = Counter(numbers) + Counter(
            {f"eager_{cause}": count for cause, count in eager.items()}
        )
        region: dict[str, Any] = {**numbers, "eager_by": eager}
        for name in SKETCHES[: chance.randint(1, len(SKETCHES))]:
            region[name], values = self._sketch(name, calls)
            counts.update(values)
        return region, counts

    def _sketch(self, name: str, calls: int) -> tuple[dict[str, Any], Counter[str]]:
        """Counts per bin; bin i covers 2^(i/32) to 2^((i+1)/32) seconds."""
        chance, first = self._chance, self._chance.randrange(-300, 200)
        bins = [chance.randint(0, max(1, calls // 20)) for _ in range(chance.randint(1, 12))]
        bins[0] = bins[0] or 1
        bins[-1] = bins[-1] or 1
        if sum(bins) > calls:
            return {
                "scale": 5,
                "count": 0,
                "sum": 0.0,
                "min": 0.0,
                "max": 0.0,
                "offset": 0,
                "bins": [],
            }, Counter()
        low, high = 2 ** ((first + 0.5) / 32), 2 ** ((first + len(bins) - 0.5) / 32)
        numbers = {
            "scale": 5,
            "count": sum(bins),
            "sum": low * sum(bins),
            "min": low,
            "max": high,
            "offset": first,
            "bins": bins,
        }
        values = Counter(
            {f"{name} bin {first + place}": filled for place, filled in enumerate(bins)}
        )
        return numbers, values + Counter({name: sum(bins)})

    def _compile(self, name: str, at: int, report: dict[str, Any], note: dict[str, Any]) -> None:
        kind, outcome, asked = (
            self._chance.choice(KINDS),
            self._chance.choice(("ok", "ok", "raised")),
            self._chance.random() < 0.5,
        )
        report["compiles"].append(
            {
                "at": at / 1000,
                "id": name,
                "kind": kind,
                "outcome": outcome,
                "in_request": asked,
                "frame": "step",
            }
        )
        note["compiles"][name] = at
        if kind == "cuda_graph":
            note["process"]["recordings"] += 1
            return
        note["process"] += Counter(
            compiles=1,
            recompiles=int(kind == "recompile"),
            compile_failures=int(outcome == "raised"),
            request_compiles=int(asked),
        )


def main(notes: str, endpoint: str, key: str, version: str, seed: str, windows: str) -> None:
    """Sends this number of windows, some repeatedly and out of order; returns when all are
    acknowledged."""
    chance = random.Random(seed)
    file = os.open(notes, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    senders = [Process(chance, version) for _ in range(INSTANCES)]
    waiting: dict[str, list[dict[str, Any]]] = {sender.id: [] for sender in senders}
    sent: dict[str, list[dict[str, Any]]] = {sender.id: [] for sender in senders}
    left, deadline = int(windows), time.monotonic() + PATIENCE_SECONDS
    while left or any(waiting.values()):
        assert time.monotonic() < deadline, "some windows were not acknowledged in time"
        sender = chance.choice(senders)
        for _ in range(min(left, chance.randrange(4))):
            report, note = sender.window()
            write(file, "window", **note)
            waiting[sender.id].append(report)
            left -= 1
        new, old = waiting[sender.id], sent[sender.id]
        batch = chance.sample(new, min(len(new), 8)) or chance.sample(old, min(len(old), 3))
        acked = (
            post(
                endpoint,
                key,
                {"v": 1, "sent": time.time(), "instance": sender.identity, "reports": batch},
            )
            if batch
            else []
        )
        for report in batch:
            if any(first <= report["seq"][0] and report["seq"][1] <= last for first, last in acked):
                write(file, "acked", instance=sender.id, seq=report["seq"])
                sent[sender.id].append(report)
        waiting[sender.id] = [report for report in new if report not in old]
        time.sleep(PAUSE_SECONDS)


def write(file: int, kind: str, **data: object) -> None:
    """Writes one line before the sender continues."""
    os.write(file, json.dumps({"kind": kind, **data}).encode() + b"\n")


def post(endpoint: str, key: str, request: dict[str, Any]) -> list[list[int]]:
    """The ranges that the dashboard acknowledged: none without a valid response. A permanent
    refusal ends the sender."""
    connection = http.client.HTTPConnection(endpoint.removeprefix("http://"), timeout=20)
    try:
        headers = {
            "Authorization": f"Bearer {key}",
            "Content-Type": "application/json",
            "Connection": "close",
        }
        connection.request("POST", "/api/v1/reports", json.dumps(request), headers)
        answer = json.loads(connection.getresponse().read())
    except (OSError, http.client.HTTPException, ValueError):
        return []
    finally:
        connection.close()
    assert not answer.get("rejected") and answer.get("code") in (
        None,
        "busy",
        "too_many",
        "unavailable",
    ), answer
    return list(answer.get("acked", []))


if __name__ == "__main__":
    Path(sys.argv[1]).touch()
    main(*sys.argv[1:])

"""Time from a regression in the data to the notification: `python -m tests.bench.bench_alert_delay
[--runs 3]`, about five minutes per run.

The full stack runs as separate processes (web, worker, PostgreSQL, Redis). A stub of
Slack receives the notification. A simulated model has two versions with three instances each that
report every 10 s. Half an hour of equal data is sent at once; after that, time is real. From a
whole minute on, part of the newer version's calls runs eager and slower. The project requires two
regressed minutes before ROLL BACK, so the hold time ends with the second one. The benchmark
measures from that moment until the notification arrives. The 30 s in which the last reports of a
minute may arrive are included."""

from __future__ import annotations

import argparse
import json
import tempfile
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import tests.environment  # noqa: F401  # selects the Redis
from dashboard.demo.sender import (
    LIVE_WINDOW_S,
    Endpoint,
    batch_reports,
    build_live_reports,
    build_past_reports,
)
from dashboard.demo.simulated_fleet import (
    Fault,
    Rollout,
    SimulatedInstance,
    build_fleet,
    build_instances,
)
from tests.bench.table import Row, show
from tests.flow.receiver import Receiver
from tests.flow.stack import Stack, host_port, wait_for

GOAL = 60.0
ALIKE, HOLD = 30, 2
FAULT = Fault(slower=1.31, eager=0.28)
SETTINGS = {
    "watch_minutes": HOLD,
    "p50.hold_minutes": HOLD,
    "p99.hold_minutes": HOLD,
    "eager.hold_minutes": HOLD,
}
CHOOSE = """
from dashboard.projects.models import Project
from dashboard.regressions.judging_settings import detection_settings_set
detection_settings_set(project=Project.objects.get(), values={values!r}, actor_name="bench")
"""


@dataclass(frozen=True)
class Delay:
    """One run, times in Unix seconds. `first` is the first minute that the judge rates as
    regressed, `metric` is the metric behind the verdict."""

    fault: float
    first: int
    metric: str
    received: float

    @property
    def hold_end(self) -> float:
        """End of the last minute that the verdict requires."""
        return (self.first + HOLD) * 60.0

    @property
    def delay(self) -> float:
        """Seconds from the end of the hold time to the notification."""
        return self.received - self.hold_end

    def row(self) -> str:
        """The run as one line."""
        minute, end, came = (
            time.strftime("%H:%M:%S", time.gmtime(at))
            for at in (self.first * 60, self.hold_end, self.received)
        )
        seen = (
            "the first minute of the fault"
            if self.first * 60 == self.fault
            else f"{self.first - self.fault / 60:.0f} min after the fault began"
        )
        return (
            f"first regressed minute {minute} ({self.metric}; {seen})  hold time ends {end}  "
            f"notification {came}  after {self.delay:.1f} s"
        )


class Sending(threading.Thread):
    """Sends reports of every instance of the model, one window per 10 s, until it is stopped."""

    def __init__(
        self, fleet: list[SimulatedInstance], endpoint: Endpoint, start_minute: int
    ) -> None:
        super().__init__(daemon=True)
        self._fleet, self._endpoint, self._start_minute = fleet, endpoint, start_minute
        self._sent = start_minute * 60.0
        self.fault_at = float("inf")
        self.stopping = threading.Event()

    def run(self) -> None:
        """Sends late windows too, so that no minute has a gap."""
        while not self.stopping.is_set():
            until = time.time() // LIVE_WINDOW_S * LIVE_WINDOW_S
            if self._sent < self.fault_at < until:
                self._send(self.fault_at)
            self._send(until)
            self.stopping.wait(LIVE_WINDOW_S - time.time() % LIVE_WINDOW_S + 0.2)

    def _send(self, until: float) -> None:
        for instance in self._fleet:
            if self._sent >= self.fault_at and instance.rollout.version == "2":
                instance.rollout = replace(instance.rollout, fault=FAULT)
            for batch in batch_reports(
                build_live_reports(
                    instance, start_minute=self._start_minute, since=self._sent, until=until
                )
            ):
                self._endpoint.send(instance, batch)
        self._sent = max(self._sent, until)


def run(folder: Path) -> Delay:
    """Runs one fleet from its history to the notification."""
    receiver = Receiver()
    stack = Stack(database="postgresql", folder=folder, outbound=host_port(receiver.url))
    sending = None
    try:
        stack.start(channel=receiver.url)
        stack.manage("shell", "-c", CHOOSE.format(values=SETTINGS))
        model = replace(
            build_fleet(judged_minutes=0)[0],
            rollouts=(Rollout("1", 3, ALIKE + 10), Rollout("2", 3, ALIKE)),
        )
        start_minute = int(time.time() // 60)
        every, endpoint = (
            build_instances((model,), start_minute=start_minute),
            Endpoint(port=stack.port, key=stack.key),
        )
        for instance in every:
            for batch in batch_reports(build_past_reports(instance, start_minute=start_minute)):
                endpoint.send(instance, batch)
        sending = Sending(every, endpoint, start_minute)
        sending.start()
        wait_for(
            "the first verdict is stored",
            lambda: stack.rows("SELECT 1 FROM verdict WHERE baseline_id IS NOT NULL"),
            seconds=180,
        )
        sending.fault_at = (time.time() // 60 + 1) * 60.0
        wait_for("the notification arrives", lambda: receiver.times, seconds=900, every=0.05)
        [[evidence]] = stack.rows(
            "SELECT evidence FROM verdict WHERE kind = 'roll_back' ORDER BY id LIMIT 1"
        )
        rows = (evidence if isinstance(evidence, dict) else json.loads(evidence))["evidence"]
        first, metric = min((row["since"], row["metric"]) for row in rows if row["drives"])
        return Delay(sending.fault_at, first, metric, receiver.times[0])
    except AssertionError as error:
        raise SystemExit(f"{error}\n{stack.logs()}") from error
    finally:
        if sending is not None:
            sending.stopping.set()
            sending.join()
        stack.close()
        receiver.close()


def main() -> int:
    """Prints one line per run, and the longest delay; 1 if the longest delay misses the goal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    runs = []
    for _ in range(parser.parse_args().runs):
        with tempfile.TemporaryDirectory(prefix="compilewatch-bench-") as folder:
            runs.append(run(Path(folder)))
        print(runs[-1].row(), flush=True)
    return show(
        [
            Row(
                "end of the hold time to the notification, longest",
                "s",
                max(run.delay for run in runs),
                goal=GOAL,
            )
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())

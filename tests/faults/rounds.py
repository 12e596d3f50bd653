"""One round of random faults: real agents report during a schedule of faults; after a pause, the
dashboard must hold the data that they recorded."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.dashboard.alerts.slack_server import StandIn
from tests.faults.account import account_of
from tests.faults.armed import arm, disarm
from tests.faults.books import instances_check
from tests.faults.jobs import Jobs
from tests.faults.line import Holdings
from tests.faults.plain_sender import PATIENCE_SECONDS
from tests.faults.proxy import FaultProxy
from tests.faults.results import LedgerError
from tests.faults.schedule import SECONDS, Agent, Event, Schedule, schedule_of
from tests.faults.whole_line import WORKERS, WholeLine
from tests.flow.stack import wait_for

MESSAGES = 3
WINDOWS = 40
"""Windows that each sender without an agent sends."""
QUEUE_DELIVERY = """
INSERT INTO alert_delivery (project_id, channel_id, kind, message_id, facts, state, attempts, next_attempt_at, last_answer, created_at)
SELECT project_id, channel_id, kind, '{name}', facts, 'waiting', 0, created_at, '', created_at FROM alert_delivery ORDER BY id LIMIT 1
"""
# A lease lasts a minute and a second attempt waits five seconds: too long for a round.
TIME_PASSES = (
    "UPDATE alert_delivery SET leased_until = NULL, next_attempt_at = created_at WHERE state = "
    "'waiting' AND message_id LIKE '{name}%'"
)


@dataclass
class Round:
    """A round in progress; `fired` counts the faults by name."""

    line: WholeLine
    hook: StandIn
    number: int
    folder: Path
    fired: Counter[str] = field(default_factory=Counter)
    ends: list[int] = field(default_factory=list)
    """Exit status of each sender without an agent."""

    def run(self) -> dict[str, int | float]:
        """Applies the faults, waits and checks; returns the results."""
        began = time.monotonic()
        schedule = schedule_of(self.number, self.line.database)
        proxy = FaultProxy(self.line.port, self.number)
        jobs = Jobs(self.folder, proxy.endpoint, self.line.key, f"round-{self.number}")
        try:
            proxy.plan = schedule.network
            self._disturb(schedule, jobs)
            self.fired.update(disarm(self.line.armed))
            self.line.settle()
            settled = time.monotonic()
            self.fired.update(
                {
                    f"network {name}": count
                    for name, count in proxy.counts.items()
                    if name != "clean"
                }
            )
            proxy.calm()
            if list(jobs.spools.rglob("*.spool")):
                jobs.sweep()
            return {**self._check(jobs, settled), "seconds": round(time.monotonic() - began, 1)}
        finally:
            proxy.close()
            jobs.end()

    def _disturb(self, schedule: Schedule, jobs: Jobs) -> None:
        for point, passes in schedule.armed.items():
            arm(self.line.armed, point, passes)
        began = time.monotonic()
        self._queue_deliveries()
        processes = [
            jobs.start(*agent.options, spool="" if agent.spool else "/proc/nowhere")
            for agent in schedule.agents
        ]
        senders = [
            jobs.start_plain(f"{self.number} {place}", WINDOWS)
            for place in range(len(schedule.plain))
        ]
        work = [
            threading.Thread(target=self._strike, args=(event, began)) for event in schedule.events
        ]
        work += [
            threading.Thread(target=self._end_of_agent, args=(agent, process, began))
            for agent, process in zip(schedule.agents, processes, strict=True)
        ]
        work += [
            threading.Thread(target=self._end_of_sender, args=(killed_at, process, began))
            for killed_at, process in zip(schedule.plain, senders, strict=True)
        ]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()

    def _queue_deliveries(self) -> None:
        for number in range(MESSAGES):
            self.line.rows_write(QUEUE_DELIVERY.format(name=f"round-{self.number}-{number}"))

    def _end_of_agent(self, agent: Agent, process: subprocess.Popen[str], began: float) -> None:
        if agent.killed_at:
            time.sleep(max(0.0, began + agent.killed_at - time.monotonic()))
            process.send_signal(signal.SIGKILL)
            self.fired["agent killed"] += 1
        code = process.wait(SECONDS + 120)
        if agent.point and code == (0 if agent.point == "forked" else -signal.SIGKILL):
            self.fired[agent.point] += 1

    def _end_of_sender(
        self, killed_at: float, process: subprocess.Popen[str], began: float
    ) -> None:
        if killed_at:
            time.sleep(max(0.0, began + killed_at - time.monotonic()))
            process.send_signal(signal.SIGKILL)
            self.fired["sender killed"] += 1
        self.ends.append(process.wait(PATIENCE_SECONDS + 60))

    def _strike(self, event: Event, began: float) -> None:
        time.sleep(max(0.0, began + event.at - time.monotonic()))
        self.fired[event.kind] += 1
        worker = WORKERS[int(event.chance * len(WORKERS))]
        name, _, how = event.kind.partition(" ")
        if name in ("redis", "postgresql"):
            self._strike_server(name, how, event.lasts)
        elif how == "head killed":
            self.line.strike_head(worker if name == "worker" else name)
        elif how == "child killed":
            self.line.strike_child(worker if name == "worker" else name, event.chance * 7 % 1)
        else:
            self.line.strike(worker if name == "worker" else name)

    def _strike_server(self, name: str, how: str, lasts: float) -> None:
        server = self.line.redis if name == "redis" else self.line.postgresql
        assert server is not None
        with self.line.one_at_a_time[name]:
            if self.line.redis and how == "flushed":
                self.line.redis.flush()
            elif self.line.redis and how == "frozen":
                self.line.redis.freeze()
                time.sleep(lasts)
                self.line.redis.thaw()
            else:
                server.kill()
                time.sleep(lasts)
                server.start()

    def _check(self, jobs: Jobs, settled: float) -> dict[str, int | float]:
        holdings = Holdings(self.line)
        wait_for("all reports are folded", self.line.folded, seconds=120, every=0.05)
        folded_after = time.monotonic() - settled
        found = holdings.check(jobs.version, jobs.ours(), jobs.recorded())
        instances_check(self.line, holdings, jobs.ours())
        account = account_of(self.line.rows, self.line.database, self.folder)
        if account.problems:
            raise LedgerError("; ".join(account.problems), {"runs": 1, **found, **account.figures})
        assert set(self.ends) <= {0, -signal.SIGKILL}, "\n".join(
            log.read_text() for log in self.folder.glob("*.log")
        )
        assert self.line.rows("SELECT count(*) FROM ingest_fold_attempt") == [(0,)]
        acked = {
            (instance, number)
            for job in jobs.recorded()
            for instance, numbers in job.acked.items()
            for number in numbers
        }
        assert found["lost that were on disk"] == 0
        return {
            **found,
            **account.figures,
            "acknowledged": len(acked),
            "longest until folded": round(folded_after, 1),
            **self._messages(),
        }

    def _messages(self) -> dict[str, int]:
        """Every notification arrived; a notification arrives twice only if a worker died between
        sending and marking it."""
        name = f"round-{self.number}-"

        def delivered() -> bool:
            self.line.rows_write(TIME_PASSES.format(name=name))
            states = self.line.rows(
                f"SELECT state FROM alert_delivery WHERE message_id LIKE '{name}%'"
            )
            return [state for (state,) in states] == ["delivered"] * MESSAGES

        wait_for("all notifications are delivered", delivered, seconds=120, every=1.0)
        times = Counter(
            headers["webhook-id"]
            for headers in self.hook.headers
            if headers["webhook-id"].startswith(name)
        )
        assert len(times) == MESSAGES
        return {"messages": MESSAGES, "messages twice": sum(times.values()) - MESSAGES}

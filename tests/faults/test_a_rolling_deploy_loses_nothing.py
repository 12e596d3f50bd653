"""A new release is deployed while agents of both releases report: for every combination of agent,
server and schema, no acknowledged report is lost, nothing is counted twice, and no agent receives a
response that makes it drop a window."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.books import instances_check
from tests.faults.jobs import Jobs
from tests.faults.line import Holdings
from tests.faults.prober import Prober
from tests.faults.results import AddResult
from tests.faults.rolling import Rolling
from tests.faults.size import FULL, sized
from tests.flow.stack import REPOSITORY, wait_for

pytestmark = pytest.mark.timeout(1800)
SELDOM = ("--pause", "0.05")


@pytest.fixture
def rolling(tmp_path: Path) -> Iterator[Rolling]:
    """The running earlier release."""
    running = Rolling(tmp_path)
    try:
        running.manage("migrate", "--verbosity=0")
        running.key = re.search(r"cw_ing_\w+", running.manage("setup_project", "--name", "Flow"))[0]  # type: ignore[index]
        for role in running.roles:
            running.start_role(role)
        yield running
    except BaseException:
        print(running.logs())
        raise
    finally:
        running.close()


class Agents:
    """Jobs with the agents of both releases, and a prober; all report to one web process."""

    def __init__(self, rolling: Rolling, role: str, folder: Path, seed: int) -> None:
        folder.mkdir()
        port = rolling.ports[role]
        self.jobs = Jobs(folder, f"http://127.0.0.1:{port}", rolling.key, f"{role}-{seed}")
        self.prober = Prober(rolling, f"prober-{role}-{seed}", port=port, pause=0.1)
        wait_for(f"{role} responds", lambda: rolling.answers(role), seconds=300)
        for _ in range(sized(1, 3)):
            # The number of windows does not depend on the call rate of a job; a low rate leaves the
            # CPU to the servers.
            self.jobs.start("--impatient", *SELDOM)
            self.jobs.start(*SELDOM, earlier=rolling.earlier)

    def closed(self) -> Iterator[tuple[str, set[int]]]:
        """Every window that has ended."""
        for job in self.jobs.recorded():
            for instance, windows in job.windows.items():
                yield instance, set(windows)


def every_agent_is_accepted(holdings: Holdings, instances: int) -> None:
    """Waits until the server of every agent accepts a window that the agent sent from now on."""
    before = {instance: len(held.numbers) for instance, held in holdings.senders().items()}

    def accepted() -> bool:
        now = holdings.senders()
        # One window may have been in flight.
        return len(now) == instances and all(
            len(held.numbers) >= before.get(instance, 0) + 2 for instance, held in now.items()
        )

    wait_for("a window of every agent is accepted", accepted, seconds=300)


def wait_until_folded(rolling: Rolling) -> None:
    [(newest,)] = rolling.rows("SELECT coalesce(max(id), 0) FROM ingest_inbox")
    wait_for(
        "the waiting reports are folded",
        lambda: not rolling.rows(f"SELECT 1 FROM ingest_inbox WHERE id <= {newest} LIMIT 1"),
        seconds=300,
    )


def deploy(rolling: Rolling, how: signal.Signals, step: Callable[[], None]) -> None:
    """Deploys in the order of the guide, except that the earlier workers return after the
    migration, as after a deploy that is rolled back."""
    step()
    for role in ("worker", "beat"):
        rolling.stop(role, how)
    rolling.manage_of(REPOSITORY, "migrate", "--verbosity=0")
    for role in ("worker", "beat"):
        rolling.start_role(role)
    step()
    wait_until_folded(rolling)
    for role in ("web-1", "worker", "web-2"):
        rolling.replace(role, how)
        if role == "worker":
            rolling.stop("beat", how)
        step()
    wait_until_folded(rolling)


def every_window_arrives(fleet: list[Agents], holdings: Holdings) -> None:
    """Waits for the windows that are closed until now; a dropped window would never arrive."""
    closed = [one for agents in fleet for one in agents.closed()]

    def arrived() -> bool:
        senders = holdings.senders()
        return all(
            instance in senders and numbers <= senders[instance].numbers
            for instance, numbers in closed
        )

    wait_for("every window arrives", arrived, seconds=300)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL] if FULL else [signal.SIGTERM])
def test_under_load(
    how: signal.Signals, rolling: Rolling, seed: int, tmp_path: Path, add_result: AddResult
) -> None:
    holdings = Holdings(rolling)
    fleet = [Agents(rolling, role, tmp_path / f"agents-{role}", seed) for role in rolling.ports]
    began = time.monotonic()
    try:
        with ExitStack() as stack:
            for agents in fleet:
                stack.enter_context(agents.prober)
            deploy(
                rolling,
                how,
                lambda: every_agent_is_accepted(
                    holdings, sum(len(agents.jobs.running) + 1 for agents in fleet)
                ),
            )
            every_window_arrives(fleet, holdings)
    finally:
        for agents in fleet:
            agents.jobs.end()
    took = time.monotonic() - began
    seen = [answer for agents in fleet for answer in agents.prober.answers]
    assert all(answer.status in (0, 200) or answer.busy for answer in seen), {
        answer.status for answer in seen
    }
    broken, busy = sum(not answer.status for answer in seen), sum(answer.busy for answer in seen)
    add_result(
        "36",
        ended_by=how.name,
        answers=len(seen),
        broken_off=broken,
        answers_503=busy,
        longest_deploy_s=round(took, 1),
    )
    for agents in fleet:
        agents.prober.check()
        found = holdings.check(agents.jobs.version, agents.jobs.ours(), agents.jobs.recorded())
        instances_check(rolling, holdings, agents.jobs.ours())
        assert found["shown missing"] == 0
        add_result("36", **found)

"""Real servers and jobs are replaced by a next version: the dashboard's counts of each version
equal the clients' counts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agent.frameworks import test_celery_loses_no_call_when_it_stops as celery
from tests.agent.frameworks import test_gunicorn_loses_no_call_when_it_stops as gunicorn
from tests.agent.frameworks import test_litserve_loses_no_call_when_it_stops as litserve
from tests.agent.frameworks import test_ray_serve_loses_no_call_when_it_stops as ray
from tests.agent.frameworks import test_torchrun_loses_no_call_when_it_stops as torchrun
from tests.agent.frameworks import test_uvicorn_loses_no_call_when_it_stops as uvicorn
from tests.agent.frameworks.services import serving
from tests.agent.integrations import test_lightning_and_trainer_steps_are_counted as steps
from tests.agent.programs import environment
from tests.flow.stack import Stack, wait_for

pytestmark = pytest.mark.timeout(900)

GUNICORN = (
    "-m",
    "gunicorn",
    "job:app",
    "--workers",
    "2",
    "--bind",
    "127.0.0.1:PORT",
    "--log-level",
    "error",
)
CALLS = """
SELECT model_version.name, instance.pid, sum(region_minute.calls) FROM region_minute
JOIN instance ON instance.id = region_minute.instance_id JOIN model_version ON model_version.id = instance.version_id
JOIN series ON series.id = region_minute.series_id WHERE series.region IN ('forward', 'step') GROUP BY 1, 2
"""
TOTALS = """
SELECT model_version.name, sum(version_hour.calls) FROM version_hour JOIN series ON series.id = series_id
JOIN model_version ON model_version.id = series.version_id WHERE series.region IN ('forward', 'step') GROUP BY 1
"""
Counts = list[int]
"""Calls of each process of a version, in order."""


@dataclass
class Board:
    """The dashboard as an agent accesses it."""

    endpoint: str
    key: str
    folder: Path

    def settings(self, version: str) -> dict[str, str]:
        return {"API_KEY": self.key, "VERSION": version}

    def place(self, version: str) -> Path:
        (folder := self.folder / version.replace(" ", "-")).mkdir()
        return folder


@pytest.fixture
def board(stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return Board(f"http://127.0.0.1:{stack.port}", stack.key, tmp_path)


def servers_roll(
    board: Board, name: str, job: str, words: tuple[str, ...], body: bytes | None, ends: int
) -> dict[str, Counts]:
    """The next version starts while the earlier one serves. Both receive calls, then the earlier
    one ends, and the next one receives further calls."""
    old, new = f"{name} 1", f"{name} 2"
    with (
        serving(board.place(old), board, job, *words, **board.settings(old)) as earlier,
        serving(board.place(new), board, job, *words, **board.settings(new)) as later,
    ):
        first, second = earlier.ask(20, body), later.ask(10, body)
        first += earlier.ask(15, body)
        earlier.stop(ends)
        second += later.ask(20, body)
        later.stop(ends)
    return {old: sorted(first.values()), new: sorted(second.values())}


def celery_serves(board: Board, version: str) -> Counts:
    folder = board.place(version)
    (folder / "queue").mkdir()
    (folder / "results").mkdir()
    with serving(folder, board, celery.JOB, *celery.CELERY, **board.settings(version)) as server:
        asked = celery.ask(folder)
        server.stop()
    return sorted(asked.values())


def ray_serves(board: Board, version: str) -> Counts:
    asked: Counter[str] = Counter(
        json.loads(program_runs(board, version, ray.JOB).partition("ASKED ")[2])
    )
    return sorted(asked.values())


def torchrun_trains(board: Board, version: str) -> Counts:
    folder = board.place(version)
    with serving(
        folder, board, torchrun.JOB, *torchrun.TORCHRUN, "stays", **board.settings(version)
    ) as launcher:
        wait_for(
            "both ranks are ready",
            lambda: all((folder / f"ready{rank}").exists() for rank in range(2)),
            seconds=100,
        )
        launcher.stop()
    return [40, 40]


def lightning_trains(board: Board, version: str) -> Counts:
    return [json.loads(program_runs(board, version, steps.LIGHTNING).partition("STEPS ")[2])]


def trainer_trains(board: Board, version: str) -> Counts:
    return [json.loads(program_runs(board, version, steps.TRAINER).partition("STEPS ")[2])]


def program_runs(board: Board, version: str, program: str) -> str:
    """The output of a program that ends on its own."""
    folder = board.place(version)
    (folder / "job.py").write_text(program)
    variables = {
        **environment(ENDPOINT=board.endpoint, **board.settings(version)),
        "RAY_USAGE_STATS_ENABLED": "0",
    }
    words = [sys.executable, "job.py", str(folder)]
    return subprocess.run(
        words, cwd=folder, env=variables, stdout=subprocess.PIPE, text=True, check=True, timeout=200
    ).stdout


def two_servers_roll(board: Board) -> dict[str, Counts]:
    words = (*uvicorn.UVICORN, "--workers", "2")
    return {
        **servers_roll(board, "uvicorn", uvicorn.JOB, words, None, signal.SIGTERM),
        **servers_roll(board, "gunicorn", gunicorn.JOB, GUNICORN, None, signal.SIGTERM),
    }


def other_frameworks_roll(board: Board) -> dict[str, Counts]:
    jobs: dict[str, Callable[[Board, str], Counts]] = {
        "Celery": celery_serves,
        "Ray Serve": ray_serves,
        "torchrun": torchrun_trains,
        "Lightning": lightning_trains,
        "Trainer": trainer_trains,
    }
    return {
        **servers_roll(board, "LitServe", litserve.JOB, ("job.py",), b"{}", signal.SIGINT),
        **{
            f"{name} {number}": run(board, f"{name} {number}")
            for name, run in jobs.items()
            for number in (1, 2)
        },
    }


@pytest.mark.parametrize(
    "roll",
    [
        pytest.param(two_servers_roll, id="two servers"),
        pytest.param(
            other_frameworks_roll, id="other frameworks", marks=pytest.mark.frameworks_only
        ),
    ],
)
def test_the_clients_count_what_the_dashboard_counts(
    stack: Stack, board: Board, roll: Callable[[Board], dict[str, Counts]]
) -> None:
    expected = roll(board)
    wait_for("everything is folded", stack.folded, seconds=60)
    counted: dict[str, Counts] = {}
    for version, _, calls in stack.rows(CALLS):
        counted.setdefault(version, []).append(int(calls))
    assert {version: sorted(calls) for version, calls in counted.items()} == expected
    assert {version: int(calls) for version, calls in stack.rows(TOTALS)} == {
        version: sum(calls) for version, calls in expected.items()
    }

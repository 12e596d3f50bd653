"""Reports acknowledged per second, compared with MLflow's `log-batch` of 20 metrics on the same
PostgreSQL: `python -m tests.bench.bench_mlflow`.

Both run alternately in one run, with medians over several rounds, the same number of connections,
and the load generator on the same machine. MLflow is large, so the first run installs it into its
own environment below `.var/bench` (or `--mlflow FOLDER`)."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from tests.bench.line import REPOSITORY, Line
from tests.flow.stack import POSTGRESQL, free_port

GOAL = 25
VERSION = "3.*"
DATABASE = "compilewatch_bench_mlflow"
METRICS = 20


@dataclass
class Mlflow:
    """A tracking server with two workers on its own PostgreSQL database."""

    folder: Path
    port: int

    def start(self) -> subprocess.Popen[bytes]:
        """Installs MLflow if it is missing, starts it and waits until it responds."""
        binary = self.folder / "bin" / "mlflow"
        if not binary.exists():
            subprocess.run([sys.executable, "-m", "venv", str(self.folder)], check=True)
            pip = [
                str(self.folder / "bin" / "pip"),
                "install",
                "--quiet",
                f"mlflow=={VERSION}",
                "psycopg[binary]",
            ]
            subprocess.run(pip, check=True)
        with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE}")
            connection.execute(f"CREATE DATABASE {DATABASE}")
        store = "postgresql://{user}@{host}:{port}/".format(**POSTGRESQL) + DATABASE
        command = [
            str(binary),
            "server",
            "--backend-store-uri",
            store,
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
            "--workers",
            "2",
        ]
        environment = {**os.environ, "PATH": f"{binary.parent}:{os.environ['PATH']}"}
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for _ in range(240):
            try:
                if self.ask(self.connection(), "GET", "/health", None)[0] == 200:
                    return process
            except OSError:
                time.sleep(0.5)
        raise SystemExit("MLflow does not respond")

    def connection(self) -> http.client.HTTPConnection:
        """A keep-alive connection."""
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)

    def ask(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any
    ) -> tuple[int, bytes]:
        """Status and body of a response."""
        connection.request(
            method,
            path,
            json.dumps(body) if body is not None else None,
            {"Content-Type": "application/json"},
        )
        answer = connection.getresponse()
        return answer.status, answer.read()

    def load(self, *, seconds: float, connections: int) -> tuple[float, float]:
        """Batches accepted per second, and the 99th percentile of the response times in ms; each
        connection logs to its own run."""
        taken: list[float] = []
        until = time.monotonic() + seconds
        threads = [
            threading.Thread(target=self._log, args=(taken, until)) for _ in range(connections)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(taken) / seconds, sorted(taken)[
            int(0.99 * len(taken))
        ] * 1e3 if taken else float("inf")

    def _log(self, taken: list[float], until: float) -> None:
        connection = self.connection()
        made = self.ask(
            connection,
            "POST",
            "/api/2.0/mlflow/runs/create",
            {"experiment_id": "0", "start_time": int(time.time() * 1e3)},
        )
        run = json.loads(made[1])["run"]["info"]["run_id"]
        step = 0
        while time.monotonic() < until:
            now, step = int(time.time() * 1e3), step + 1
            metrics = [
                {"key": f"metric {n}", "value": 0.1 * n, "timestamp": now, "step": step}
                for n in range(METRICS)
            ]
            began = time.monotonic()
            status, _ = self.ask(
                connection,
                "POST",
                "/api/2.0/mlflow/runs/log-batch",
                {"run_id": run, "metrics": metrics},
            )
            if status == 200:
                taken.append(time.monotonic() - began)


def main() -> int:
    """Prints both rates and their ratio; 1 if the goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mlflow", type=Path, default=REPOSITORY / ".var" / "bench" / "mlflow")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--connections", type=int, default=32)
    options = parser.parse_args()
    mlflow = Mlflow(options.mlflow, free_port())
    theirs, line = mlflow.start(), Line("postgresql")
    ours: list[tuple[float, float]] = []
    peers: list[tuple[float, float]] = []
    try:
        line.serve("granian")
        mlflow.load(seconds=options.seconds, connections=4)  # the first requests take seconds
        for _ in range(options.rounds):
            found = line.load(seconds=options.seconds, connections=options.connections)
            ours.append((found["rate"], found["p99"]))
            peers.append(mlflow.load(seconds=options.seconds, connections=options.connections))
    finally:
        line.close()
        os.killpg(theirs.pid, 15)
        theirs.wait()
        with psycopg.connect(dbname="postgres", autocommit=True, **POSTGRESQL) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {DATABASE} WITH (FORCE)")
    for name, rounds in (
        ("reports, compilewatch", ours),
        (f"log-batch of {METRICS} metrics, MLflow", peers),
    ):
        print(
            f"{name:34} {median(rate for rate, _ in rounds):7.0f}/s  p99 "
            f"{median(p99 for _, p99 in rounds):7.1f} ms"
        )
    ratio = median(rate for rate, _ in ours) / median(rate for rate, _ in peers)
    print(f"ratio {ratio:.0f} x (goal {GOAL} x)")
    return 0 if ratio >= GOAL else 1


if __name__ == "__main__":
    sys.exit(main())

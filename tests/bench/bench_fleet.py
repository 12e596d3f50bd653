"""Response time of the Fleet page: `python -m tests.bench.bench_fleet --models 41 500`.

Each model has two live versions on two GPU types, 24 hours of data, four instances and a verdict
with the evidence of eight metrics. Requests the page, its part that updates, each order and the
compile cost. COMPILEWATCH_TEST_DATABASE selects SQLite (default) or PostgreSQL."""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

import tests.environment  # noqa: F401  # settings must be in place before Django reads them

GOALS_MS = {41: 80, 500: 150}
GPUS = ("NVIDIA H200", "NVIDIA H100", "NVIDIA L40S", "NVIDIA L4")
METRICS = ("p50", "p99", "gpu_p50", "gpu_p99", "compile_time", "gpu_memory", "host_memory", "cache")
KINDS = ("healthy",) * 36 + ("watch",) * 3 + ("roll_back", "not_enough_data")
ADDRESSES = {
    "page": "",
    "part": "",
    "page 2": "?page=2",
    "filter": "?q=gpu:H100",
    "group by GPU": "?group=gpu",
    "sort by p50": "?sort=-p50",
    "sort by cold start": "?sort=-cold",
    "compile cost": "compile-cost/",
}


def create_fleet(models: int) -> Any:
    """A project with this many models."""
    from dashboard.projects.services import project_create
    from tests.dashboard.ui import stories
    from tests.dashboard.ui.factory import Shape, model

    project = project_create(name="Bench", slug=f"bench-{models}")
    for number in range(models):
        p50, kind = 0.002 * (1 + number % 40), KINDS[number % len(KINDS)]
        change = 0.3 if kind == "roll_back" else 0.01 * (number % 5 - 2)
        made = model(
            project,
            f"model-{number:03d}",
            [
                Shape("2026.11.2", p50, 60, 9000, instances=2),
                Shape("2026.11.3", p50 * (1 + change), 60, 700, instances=2, cold=20 + number % 90),
            ],
            every=60,
            gpu=GPUS[number % len(GPUS)],
        )
        stories.verdict(
            made,
            kind,
            f"p50 of model-{number:03d} changed by {change:.0%} on 2 of 2 instances.",
            [_evidence(metric, p50, change) for metric in METRICS],
            minutes_ago=90 + number,
        )
    return project


def _evidence(metric: str, p50: float, change: float) -> dict[str, Any]:
    from tests.dashboard.ui import stories

    dots = [
        {
            "instance": f"gpu-{number:02d}/0",
            "arm": arm,
            "stratum": "NVIDIA H200, reduce-overhead, torch.compile, 1",
            "bucket": "2^12",
            "value": p50 * (1 + number / 100),
            "n": 130,
        }
        for number in range(16)
        for arm in ("baseline", "candidate")
    ]
    return stories.p50(p50, change, "NO CHANGE") | {"metric": metric, "dots": dots}


def measure(
    client: Any, address: str, times: int, headers: dict[str, str]
) -> tuple[float, float, int]:
    """The 95th percentiles of response and processor time in ms, and the number of queries."""
    from django.db import connection

    counted = []

    def count(execute: Any, *given: Any) -> Any:
        counted.append(1)
        return execute(*given)

    with connection.execute_wrapper(count):
        assert client.get(address, headers=headers).status_code == 200, address
    took, spent = [], []
    for _ in range(times):
        began, used = time.perf_counter(), time.process_time()
        client.get(address, headers=headers)
        took.append((time.perf_counter() - began) * 1e3)
        spent.append((time.process_time() - used) * 1e3)
    last = [statistics.quantiles(values, n=20)[-1] for values in (took, spent)]
    return last[0], last[1], len(counted)


def print_times(client: Any, root: str, models: int, options: argparse.Namespace) -> bool:
    """Measures each address; True if a 95th percentile of processor time misses its goal."""
    goal = GOALS_MS.get(models, max(GOALS_MS.values()))
    missed = False
    for name in options.only:
        headers = {"HX-Request": "true"} if name == "part" else {}
        took, spent, queries = measure(client, root + ADDRESSES[name], options.times, headers)
        missed = missed or spent > goal
        print(
            f"  {name:20} p95 {took:6.0f} ms, processor {spent:5.0f} ms (goal {goal} ms), "
            f"{queries} queries",
            flush=True,
        )
    return missed


def main() -> int:
    """Creates a database, measures, and drops the database; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, nargs="+", default=list(GOALS_MS))
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--only", nargs="+", choices=ADDRESSES, default=list(ADDRESSES))
    options = parser.parse_args()
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from django.db import connection, transaction
    from django.test import Client

    from dashboard.common.gc_tuning import tune_garbage_collection
    from dashboard.projects.models import Role
    from tests.dashboard.ui.factory import person

    connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
    missed = False
    try:
        for models in options.models:
            began = time.monotonic()
            with transaction.atomic():
                project = create_fleet(models)
                client = Client(SERVER_NAME="localhost")
                client.force_login(person(f"bench-{models}", project, Role.ADMIN))
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
            print(f"{connection.vendor}, {models} models: made in {time.monotonic() - began:.0f} s")
            tune_garbage_collection()
            missed |= print_times(client, f"/p/{project.slug}/", models, options)
    finally:
        connection.creation.destroy_test_db(connection.settings_dict["NAME"], verbosity=0)
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())

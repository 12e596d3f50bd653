"""Reports per second that one worker folds: `python -m tests.bench.bench_fold`;
COMPILEWATCH_TEST_DATABASE selects the database."""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import random
import time
from collections.abc import Iterator

from compilewatch.wire.codec import dumps
from compilewatch.wire.messages import Device, Gauges, Identity, Region, Report
from compilewatch.wire.sketch import Sketch

import tests.environment  # noqa: F401  # settings must be in place before Django reads them

END = time.time() // 60 * 60 - 600


def sketch(rnd: random.Random, calls: int) -> Sketch:
    """Calls of about 14 ms."""
    return Sketch.of([0.014 * rnd.lognormvariate(0, 0.12) for _ in range(calls)])


def reports(windows: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Reports of one instance: 10-second windows, two regions, wall time and GPU time of each."""
    rnd = random.Random(seed)
    for number in range(windows):
        start = END + 10.0 * number
        regions = [
            Region(
                name,
                400,
                bucket="2^12",
                items=6400.0,
                compiled=400,
                sampled=400,
                latency=sketch(rnd, 400),
                gpu=sketch(rnd, 25),
            )
            for name in ("forward", "decode")
        ]
        gauges = Gauges([Device(0, 60 << 30, 62 << 30, 70 << 30, 0.8)], host_rss=9 << 30)
        yield (
            number + 1,
            dumps(
                Report(
                    (number + 1, number + 1), (start, start + 10.0), regions=regions, gauges=gauges
                )
            ),
        )


def fill(instances: int, windows: int, versions: int) -> int:
    """Puts the reports into the inbox in their order of arrival; returns the number of reports."""
    from dashboard.common import clock
    from dashboard.ingest.batch import compute_shard
    from dashboard.ingest.models import InboxRow
    from dashboard.projects.services import project_create

    project = project_create(name="Bench", slug="bench")
    texts = [list(reports(windows, seed)) for seed in range(min(instances, 50))]
    rows = []
    for window in range(windows):
        for number in range(instances):
            version = str(number % versions)
            who = Identity(
                f"{number:026d}",
                END - 600,
                "ranker",
                version,
                gpu="NVIDIA H200",
                host=f"host-{number}",
                torch="2.13.0",
            )
            seq, text = texts[number % len(texts)][window]
            rows.append(
                InboxRow(
                    project_id=project.pk,
                    shard=compute_shard(project.pk, "ranker", version),
                    instance_id=who.id,
                    seq_first=seq,
                    seq_last=seq,
                    received_at=clock.now(),
                    clock_offset=0.0,
                    identity=dumps(who),
                    report=text,
                )
            )
    InboxRow.objects.bulk_create(rows, batch_size=500)
    return len(rows)


def run(options: argparse.Namespace) -> None:
    """Fills the inbox, folds it and prints the time."""
    from django.db import connection

    from dashboard.fleet.fold_service import fold_all

    count = fill(options.instances, options.windows, options.versions)
    profile = cProfile.Profile() if options.profile else None
    start, processor = time.perf_counter(), time.process_time()
    folded = profile.runcall(fold_all) if profile else fold_all()
    seconds, own = time.perf_counter() - start, time.process_time() - processor
    assert folded == count, f"{folded} of {count} folded"
    print(
        f"{connection.vendor}: {count} reports of {options.instances} instances and "
        f"{options.versions} versions"
    )
    print(
        f"{count / seconds:.0f} reports/s; {seconds / count * 1e6:.0f} us per report, "
        f"{own / count * 1e6:.0f} us of it in this process"
    )
    if profile:
        pstats.Stats(profile).sort_stats("cumtime").print_stats("dashboard|wire", 40)


def main() -> None:
    """Creates a database and drops it at the end."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=1000)
    parser.add_argument(
        "--windows", type=int, default=12, help="number of 10-second windows per instance"
    )
    parser.add_argument("--versions", type=int, default=4)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    django.setup()
    from django.db import connection

    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        run(options)
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


if __name__ == "__main__":
    main()

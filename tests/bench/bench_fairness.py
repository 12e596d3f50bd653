"""Effect of one project on the fold lag of another: `python -m tests.bench.bench_fairness`.

A worker folds as in production: once a second, for up to two seconds. One project sends a few
reports per second. A second project sends nothing, then only reports that the database rejects,
then ten times the rate. The table shows how long the reports of the first project wait until they
are folded."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median
from threading import Event, Thread

import tests.environment  # noqa: F401  # settings must be in place before Django reads them
from tests.bench.table import Row, show

POISON = 4242
"""Call count that marks a report which the database rejects."""
REFUSED = f"""
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.calls = {POISON} THEN RAISE EXCEPTION 'this report cannot be stored'; END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON region_minute FOR EACH ROW EXECUTE FUNCTION refuse()
"""
SHAPES = ("usual", "unfoldable", "ten times")
TIMES, INSTANCES, VERSIONS = 10, 20, 16
GOAL = 2.0
"""The fold lag of the first project may double."""


class Sender(Thread):
    """Puts `rate` reports per second of one project into the inbox as the endpoint does, spread
    over versions and therefore over shards."""

    def __init__(self, name: str, rate: float, calls: int | None, first: int) -> None:
        super().__init__(daemon=True)
        from dashboard.projects.models import Project
        from dashboard.projects.services import project_create

        self.project = Project.objects.filter(slug=name).first() or project_create(
            name=name, slug=name
        )
        self.rate, self.calls, self.seq, self.stopping, self.sent = rate, calls, first, Event(), 0

    def run(self) -> None:
        """Sends until it is stopped."""
        from django.db import connection

        began = time.monotonic()
        while not self.stopping.wait(0.05):
            due = int((time.monotonic() - began) * self.rate) - self.sent
            for _ in range(max(0, due)):
                self._send()
        connection.close()

    def _send(self) -> None:
        from compilewatch.wire.codec import dumps

        from dashboard.common import clock
        from dashboard.ingest.batch import batch_read
        from dashboard.ingest.services import reports_append, reports_store
        from tests.dashboard.requests import region_make, request_make

        number, now = self.sent, clock.unix()
        version, instance = str(number % VERSIONS), number % (INSTANCES * VERSIONS)
        request = request_make(
            version=version, instance=instance, end=now, window=10.0, first_seq=self.seq + number
        )
        if self.calls:
            request.reports[0].regions = [region_make(calls=self.calls)]
        batch = batch_read(text=dumps(request), project_id=self.project.pk, received=now)
        if reports_append([batch]) == [None]:
            reports_store([batch])
        self.sent += 1


def lags(project: int, seconds: float) -> list[float]:
    """Wait of each report of the project that is folded in this time. A report that still waits
    counts with its age."""
    from django.db import connection

    from dashboard.common import clock

    waiting: dict[int, float] = {}
    found, until = list[float](), time.monotonic() + seconds
    while time.monotonic() < until:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, extract(epoch FROM received_at)::float8 FROM ingest_inbox "
                "WHERE project_id = %s",
                [project],
            )
            now, here = clock.unix(), dict(cursor.fetchall())
        found += [now - at for id, at in waiting.items() if id not in here]
        waiting = here
        time.sleep(0.01)
    return sorted(found + [clock.unix() - at for at in waiting.values() if clock.unix() - at > 1.5])


@contextmanager
def worker(environment: dict[str, str]) -> Iterator[None]:
    """A fold worker in its own process."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.bench.fold_worker"],
        env=environment,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.kill()
        process.wait()


def run(options: argparse.Namespace, environment: dict[str, str]) -> int:
    """Prints one line per shape and the table."""
    from django.db import connection

    from dashboard.ingest.models import FoldAttempt, InboxRow, PoisonReport

    with connection.cursor() as cursor:
        cursor.execute(REFUSED)
    found: dict[str, list[float]] = {shape: [] for shape in SHAPES}
    for number in range(options.rounds):
        for shape in SHAPES:
            senders = [
                Sender(
                    "honest", options.rate, None, 1_000_000 * (number * 3 + SHAPES.index(shape)) + 1
                )
            ]
            if shape == "unfoldable":
                senders.append(Sender("hostile", options.rate, POISON, 1_000_000 * number + 1))
            elif shape == "ten times":
                senders.append(Sender("flood", options.rate * TIMES, None, 1_000_000 * number + 1))
            for sender in senders:
                sender.start()
            with worker(environment):
                time.sleep(4.0)
                one = lags(senders[0].project.pk, options.seconds)
            for sender in senders:
                sender.stopping.set()
                sender.join()
            waiting = {
                sender.project.slug: InboxRow.objects.filter(project=sender.project).count()
                for sender in senders
            }
            sent = {sender.project.slug: sender.sent for sender in senders}
            quarantined = PoisonReport.objects.count()
            found[shape] += one
            summary = (
                f"p50 {median(one):.2f} s, p95 {one[int(len(one) * 0.95)]:.2f} s, max "
                f"{one[-1]:.2f} s"
                if one
                else "nothing was folded"
            )
            print(
                f"{shape}: {summary}; sent {sent}, still waiting {waiting}, quarantined "
                f"until now {quarantined}",
                flush=True,
            )
            InboxRow.objects.all().delete()
            FoldAttempt.objects.all().delete()
    usual = found["usual"]
    return show(
        Row(
            f"fold lag next to {shape}, {name}",
            "ms",
            at(found[shape], share) * 1000,
            at(usual, share) * 1000,
            "alone",
            goal_ratio=GOAL,
        )
        for shape in SHAPES[1:]
        for name, share in (("p50", 0.5), ("p95", 0.95))
    )


def at(values: list[float], share: float) -> float:
    """A quantile; infinite if nothing was folded."""
    ordered = sorted(values)
    return ordered[int(len(ordered) * share)] if ordered else float("inf")


def main() -> int:
    """Creates a database and drops it at the end."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--rate", type=float, default=10, help="reports per second of the first project"
    )
    options = parser.parse_args()
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    import django

    django.setup()
    from django.db import connection

    if connection.vendor != "postgresql":
        print("SQLite has one queue for all projects; set COMPILEWATCH_TEST_DATABASE=postgresql")
        return 0
    name = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    database = connection.settings_dict
    url = (
        f"postgresql://{database['USER']}@{database['HOST']}:{database['PORT']}/{database['NAME']}"
    )
    try:
        return run(options, {**os.environ, "COMPILEWATCH_DATABASE_URL": url})
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)


if __name__ == "__main__":
    sys.exit(main())

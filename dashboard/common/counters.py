"""Counters: sums in the database that only rise. Every process adds to them, so each process serves
the same /metrics."""

from collections.abc import Callable, Mapping
from functools import wraps
from time import perf_counter
from typing import ParamSpec

from django.db import connection

from dashboard.common.models import Total
from dashboard.common.write_lock import write_transaction

P = ParamSpec("P")
Amounts = Mapping[tuple[str, str], float]
"""Amounts to add, by name and label."""

_ADD_SQL = (
    "INSERT INTO total (name, label, value) VALUES (%s, %s, %s)"
    " ON CONFLICT (name, label) DO UPDATE SET value = total.value + excluded.value"
)


def totals_add(amounts: Amounts) -> None:
    """Adds to the sums. The sorted order of keys prevents a deadlock between two processes."""
    with write_transaction(), connection.cursor() as cursor:
        for (name, label), value in sorted(amounts.items()):
            cursor.execute(_ADD_SQL, [name, label, value])


def totals_read() -> dict[tuple[str, str], float]:
    """Reads every sum, by name and label."""
    return {
        (name, label): value
        for name, label, value in Total.objects.values_list("name", "label", "value")
    }


def measure_stage(stage: str) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Decorator that counts the runs of a stage that had work: seconds, runs and the returned
    number."""

    def wrap(run: Callable[P, int]) -> Callable[P, int]:
        @wraps(run)
        def timing(*args: P.args, **kwargs: P.kwargs) -> int:
            begun = perf_counter()
            done = run(*args, **kwargs)
            if done:
                totals_add(
                    {
                        ("stage_seconds", stage): perf_counter() - begun,
                        ("stage_runs", stage): 1,
                        ("stage_done", stage): done,
                    }
                )
            return done

        return timing

    return wrap

"""Sums that only ever rise, kept in the database: every process adds to them, so /metrics tells one
truth whoever is asked."""

from collections.abc import Callable, Mapping
from functools import wraps
from time import perf_counter
from typing import ParamSpec

from django.db import connection

from dashboard.common.models import Total
from dashboard.common.write_lock import write_transaction

P = ParamSpec("P")
Amounts = Mapping[tuple[str, str], float]
"""What to add, by name and label."""

_ADD_SQL = (
    "INSERT INTO total (name, label, value) VALUES (%s, %s, %s)"
    " ON CONFLICT (name, label) DO UPDATE SET value = total.value + excluded.value"
)


def totals_add(amounts: Amounts) -> None:
    """Adds to the sums, in the order of their keys: two processes that do so never wait for each
    other in a circle."""
    with write_transaction(), connection.cursor() as cursor:
        for (name, label), value in sorted(amounts.items()):
            cursor.execute(_ADD_SQL, [name, label, value])


def totals_read() -> dict[tuple[str, str], float]:
    """Every sum there is."""
    return {
        (name, label): value
        for name, label, value in Total.objects.values_list("name", "label", "value")
    }


def measure_stage(stage: str) -> Callable[[Callable[P, int]], Callable[P, int]]:
    """Adds the seconds of each run that had something to do, and how much that was: the number that
    the function returns."""

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

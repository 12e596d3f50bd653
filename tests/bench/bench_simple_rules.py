"""Verdicts by minute for the rules without statistics: `python -m tests.bench.bench_simple_rules`.

Each case has three baseline instances and some candidates, with exact values and no noise. The
judge comes from the checkout in `PYTHONPATH`, so this file can also show the verdicts of an earlier
checkout."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import exp
from typing import NamedTuple

from dashboard.regressions.judge import Comparison, InstanceMinute, InstanceProcessMinute

GIB = 1 << 30
OLD = -2000
"""First minute of the baseline processes, more than a day before the deployment."""
YOUNG = -5
"""First minute of the candidate processes: their warm-up is over when they are compared."""
ONSET = 100
Row = Callable[[InstanceMinute], InstanceMinute]
State = Callable[[InstanceProcessMinute], InstanceProcessMinute]


class Case(NamedTuple):
    """A fleet; `calls` and `state` change the rows of healthy instances."""

    name: str
    candidates: int
    minutes: int
    calls: Row = lambda row: row
    state: State = lambda state: state


def known(row: InstanceMinute, calls: int, looked_up: int, eager: int = 0) -> InstanceMinute:
    """A row with this number of calls; the agent looked up `looked_up` of them."""
    return replace(
        row,
        calls=calls,
        compiled=looked_up - eager,
        eager=eager,
        eager_by={"limit": eager} if eager else {},
    )


def candidate(row: InstanceMinute | InstanceProcessMinute) -> bool:
    """True if the first candidate reported the row."""
    return row.instance == "c0"


def lone_eager(row: InstanceMinute) -> InstanceMinute:
    """Twenty calls per minute, two of them looked up; one is eager."""
    return known(row, 20, 2, int(candidate(row) and row.minute == ONSET))


def five_in_one_minute(row: InstanceMinute) -> InstanceMinute:
    """As `lone_eager`, with a burst: in one minute twenty calls are looked up and six are eager."""
    burst = candidate(row) and row.minute == ONSET
    return known(row, 20, 20 if burst else 2, 6 if burst else 0)


def rare_and_eager(row: InstanceMinute) -> InstanceMinute:
    """Five calls per minute, one looked up every second minute; all calls of the candidate are
    eager."""
    looked_up = row.minute % 2
    return known(row, 5, looked_up, looked_up if row.arm == "candidate" else 0)


def rare_and_looked_up(row: InstanceMinute) -> InstanceMinute:
    """As `rare_and_eager`, with every call looked up."""
    return known(row, 5, 5, 5 if row.arm == "candidate" else 0)


def one_canary_eager(row: InstanceMinute) -> InstanceMinute:
    """Sixty calls per minute, six looked up; one of three candidates runs eager from its start."""
    return known(row, 60, 6, 6 if candidate(row) else 0)


def errors_for(minutes: int, share: float) -> Row:
    """Calls of the first candidate fail for some minutes, starting in the middle of a minute."""

    def failing(row: InstanceMinute) -> InstanceMinute:
        since = row.minute - ONSET
        part = (
            0.0
            if not candidate(row) or not 0 <= since <= minutes
            else 0.5
            if since in (0, minutes)
            else 1.0
        )
        return replace(row, calls=300, compiled=300, errors=round(300 * share * part))

    return failing


def memory(row: InstanceProcessMinute, peak: float, held: float) -> InstanceProcessMinute:
    """Peak memory and memory in use, in GiB."""
    return replace(row, gpu_peak=int(peak * GIB), gpu_allocated=int(held * GIB))


def climbing_peak(row: InstanceProcessMinute) -> InstanceProcessMinute:
    """Over hours, the running maximum of a young process approaches the maximum of an old process;
    memory in use stays constant."""
    return memory(row, 40 - 12 * exp(-row.age / 240) if row.arm == "candidate" else 40, 27)


def settling(row: InstanceProcessMinute) -> InstanceProcessMinute:
    """Memory in use of a young process rises by 6% over the first hours and then stays constant."""
    held = 27 * (1 + 0.06 * (1 - exp(-row.age / 60))) if row.arm == "candidate" else 27
    return memory(row, 40, held)


def leaking(row: InstanceProcessMinute) -> InstanceProcessMinute:
    """Memory in use of the candidate grows by 2% per hour."""
    held = 27 * exp(0.02 * row.age / 60) if row.arm == "candidate" else 27
    return memory(row, max(30, held + 1), held)


CASES = (
    Case("one eager call of 30 looked up in 15 minutes", 3, 240, lone_eager),
    Case("six eager calls within one minute", 3, 240, five_in_one_minute),
    Case(
        "one of three candidates wholly eager, 60 calls a minute, a tenth looked up",
        3,
        240,
        one_canary_eager,
    ),
    Case(
        "the only candidate wholly eager, 5 calls a minute, a tenth looked up",
        1,
        240,
        rare_and_eager,
    ),
    Case(
        "the only candidate wholly eager, 5 calls a minute, all looked up",
        1,
        240,
        rare_and_looked_up,
    ),
    Case("young process, climbing peak, memory in use level", 3, 720, state=climbing_peak),
    Case("young process, memory in use settles", 3, 720, state=settling),
    Case("leak of 2% an hour", 3, 720, state=leaking),
    Case("5% of calls fail for 5 minutes", 3, 240, errors_for(5, 0.05)),
    Case("half of all calls fail for 5 minutes", 3, 240, errors_for(5, 0.5)),
    Case("5% of calls fail for 15 minutes", 3, 240, errors_for(15, 0.05)),
    Case("5% of calls fail for good", 3, 240, errors_for(10_000, 0.05)),
)


def verdicts(case: Case) -> list[tuple[int, str]]:
    """Every change of the verdict with its minute, after a day of baseline minutes."""
    comparison = Comparison(0, with_past=True)
    base, cand = [f"b{n}" for n in range(3)], [f"c{n}" for n in range(case.candidates)]
    for minute in range(-1440, case.minutes):
        rows, states = [], []
        for name in base + (cand if minute >= 0 else []):
            arm, born = ("candidate", YOUNG) if name[0] == "c" else ("baseline", OLD)
            row = InstanceMinute(
                name,
                name,
                arm,
                "H100",
                "forward",
                "2^12",
                minute,
                born,
                60,
                compiled=60,
                p50=0.01,
                host=name,
            )  # type: ignore[arg-type]
            state = InstanceProcessMinute(
                name, name, arm, ("H100",), minute, born, 40 * GIB, gpu_allocated=27 * GIB
            )  # type: ignore[arg-type]
            rows.append(case.calls(row))
            states.append(case.state(state))
        comparison.add_minute(minute, rows, states)
    return list(comparison.policy.transitions)


def main() -> None:
    """Prints one line per case."""
    for case in CASES:
        changes = [f"{verdict} at {minute}" for minute, verdict in verdicts(case) if minute]
        print(
            f"| {case.name} | {' · '.join(changes).replace('_', ' ') or 'not enough data'} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

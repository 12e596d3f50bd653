"""One simulated deployment under the judge, minute by minute as in production: its verdicts, cost
and the alarms of other methods."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import islice
from typing import Any

from dashboard.regressions.judge import (
    Comparison,
    InstanceMinute,
    InstanceProcessMinute,
    Outcome,
    Settings,
    evaluate_comparison,
)
from dashboard.regressions.judge.day_history import DayHistory
from dashboard.regressions.judge.neighbours import NeighbourMinute, Neighbours, fit_neighbours
from dashboard.regressions.judge.text.verdict import verdict_sentence
from tests.bench.fleet_days import hourly_rows
from tests.bench.fleet_model import Fleet
from tests.bench.fleet_neighbours import neighbour_rows
from tests.bench.fleet_sim import Simulated, first_faulty_minute, rows_of, simulate
from tests.bench.judge_peers import find_alarms
from tests.bench.process_sim import instance_states

BLOCK_MINUTES = 60
"""Processor time is read once per block: a reading takes as long as a minute of the judge on some
machines."""
ALARMS = ("watch", "roll_back")
Minute = tuple[list[InstanceMinute], list[InstanceProcessMinute]]


def watch(fleet: Fleet, settings: Settings) -> dict[str, Any]:
    """The result of one deployment, in the form that is stored. Minutes count from the
    deployment; `cost` is processor time of the judge per minute of the candidate."""
    drawn = simulate(fleet)
    days = DayHistory(hourly_rows(fleet), 0)
    controls, others = read_neighbours(fleet, drawn, settings)
    known = controls.control(settings)
    comparison = Comparison(0, known, with_past=fleet.history > 0, days=days)
    sentences: dict[str, str] = {}
    cost = 0.0
    for block in blocks(fleet, drawn):
        began = time.process_time()
        for minute, (rows, states) in block:
            if others:
                controls.step(others[minute + fleet.history])
            comparison.add_minute(minute, rows, states)
            verdict = comparison.policy.verdict
            if verdict in ALARMS and verdict not in sentences:
                sentences[verdict] = describe(
                    evaluate_comparison(comparison, now_minute=minute + 1)
                )
        cost += time.process_time() - began if block[0][0] >= 0 else 0.0
    outcome = evaluate_comparison(comparison, now_minute=fleet.minutes)
    return {
        "onset": first_faulty_minute(fleet, drawn),
        "transitions": [list(change) for change in comparison.policy.transitions],
        "final": outcome.verdict,
        "reason": outcome.reason,
        "sentences": {**sentences, "final": describe(outcome)},
        "labels": list_labels(outcome),
        "cost": cost / fleet.minutes,
        "peers": find_alarms(fleet, drawn),
    }


def read_neighbours(
    fleet: Fleet, drawn: Simulated, settings: Settings
) -> tuple[Neighbours, list[list[NeighbourMinute]]]:
    """The other model on the nodes, fitted to the minutes before the deployment, and its rows by
    minute."""
    if not fleet.neighbours:
        return Neighbours(), []
    others = list(neighbour_rows(fleet))
    before = islice(rows_of(fleet, drawn, -fleet.history), fleet.history)
    minutes = zip(range(-fleet.history, 0), before, others, strict=False)
    return fit_neighbours(minutes, settings), others


def describe(outcome: Outcome) -> str:
    """The sentence of a verdict, as pages and messages show it."""
    return verdict_sentence(outcome, candidate="new", baseline="old", say_minute="minute {}".format)


def blocks(fleet: Fleet, drawn: Simulated) -> Iterable[tuple[tuple[int, Minute], ...]]:
    """The minutes of calls and processes in order, with their numbers, in blocks that contain
    minutes either before or after the deployment."""
    first = -fleet.history
    minutes = zip(rows_of(fleet, drawn, first), instance_states(fleet, first), strict=True)
    numbered = enumerate(minutes, first)
    size = fleet.history % BLOCK_MINUTES or BLOCK_MINUTES
    while block := tuple(islice(numbered, size)):
        yield block
        size = BLOCK_MINUTES


def list_labels(outcome: Outcome) -> dict[str, list[Any]]:
    """The label of each judged metric with the change and its interval."""
    return {
        f"{row.metric} {row.region}".strip(): [row.label, row.change, row.low, row.high]
        for row in outcome.evidence
        if row.judged
    }

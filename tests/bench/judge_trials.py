"""One simulated deployment under the judge, minute by minute as in production: its verdicts, cost
and the alarms of other methods."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

from dashboard.regressions.judge import Comparison, Settings, evaluate_comparison
from tests.bench.fleet_model import Fleet
from tests.bench.fleet_sim import first_faulty_minute, rows_of, simulate
from tests.bench.judge_peers import alarms
from tests.bench.process_sim import instance_states


def watch(fleet: Fleet, settings: Settings) -> dict[str, Any]:
    """The result of one deployment, in the form that is stored. Minutes count from the
    deployment; `cost` is processor time of the judge per minute of the candidate."""
    drawn = simulate(fleet)
    minutes = zip(
        rows_of(fleet, drawn, -fleet.history), instance_states(fleet, -fleet.history), strict=True
    )
    comparison = Comparison(0, settings, with_past=fleet.history > 0)
    cost = 0.0
    for minute, (rows, states) in enumerate(minutes, -fleet.history):
        began = time.process_time()
        comparison.add_minute(minute, rows, states)
        cost += time.process_time() - began if minute >= 0 else 0.0
    outcome = evaluate_comparison(comparison, now_minute=fleet.minutes)
    return {
        "onset": first_faulty_minute(fleet, drawn),
        "transitions": [list(change) for change in comparison.policy.transitions],
        "final": outcome.verdict,
        "reason": outcome.reason,
        "labels": {
            f"{row.metric} {row.region}".strip(): [row.label, row.change, row.low, row.high]
            for row in outcome.evidence
            if row.judged
        },
        "cost": cost / fleet.minutes,
        "peers": asdict(alarms(fleet, drawn)),
    }

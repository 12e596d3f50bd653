"""Numerics facts: golden batches and sampled calls as facts for the judge, with failures and the
versions that passed."""

from __future__ import annotations

from compilewatch.wire.numerics import Kind, parity_words

from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.deterministic_facts import LIVE_MINUTES
from dashboard.fleet.selectors.numerics import JudgedParity, list_deployment_parities
from dashboard.regressions.judge.certain_facts import FactKind, ObservedFact
from dashboard.regressions.judge.inputs import Arm

MAX_NAME_CHARS, MAX_REASON_CHARS = 100, 300
KINDS: dict[Kind, FactKind] = {"": "parity", "shadow": "shadow_parity", "finite": "non_finite"}


def read_parity_facts(*, deployment: Deployment, arm: Arm, now_minute: int) -> list[ObservedFact]:
    """Facts of the results of one version. A wrong result belongs to the build: it holds while the
    process that found it runs. Results of a baseline hold permanently."""
    rows = list_deployment_parities(
        deployment=deployment, live_from=None if arm == "baseline" else now_minute - LIVE_MINUTES
    )
    worst: dict[str, JudgedParity] = {}
    for row in rows:
        known = worst.get(row.told.name)
        if row.told.state == "failed" and (
            known is None or _tolerance_multiple(row) > _tolerance_multiple(known)
        ):
            worst[row.told.name] = row
    return [_fact(row, arm, worst) for row in rows if row.told.state != "not compared"]


def _fact(row: JudgedParity, arm: Arm, worst: dict[str, JudgedParity]) -> ObservedFact:
    name, failed = row.told.name, row.told.state == "failed"
    return ObservedFact(
        kind=KINDS[row.told.kind],
        arm=arm,
        instance=row.instance,
        since=clock.minute_of((row.failed_at or row.at).timestamp()),
        about=(row.told.region if row.told.kind and row.told.region else name)[:MAX_NAME_CHARS],
        why=parity_words(worst[name].told)[:MAX_REASON_CHARS] if failed else "",
        place=row.place[:MAX_NAME_CHARS],
        passed=not failed,
    )


def _tolerance_multiple(row: JudgedParity) -> float:
    """The error as a multiple of the tolerance. A mismatch without a number, such as another shape,
    counts as infinite."""
    return row.told.times if row.told.times is not None else float("inf")

"""Golden batches and sampled calls as facts for the judge: where one failed, and where the same one passed."""

from __future__ import annotations

from compilewatch.wire.numerics import Kind, parity_words

from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.judge_inputs.deterministic_facts import LIVE_MINUTES
from dashboard.fleet.selectors.numerics import Shown, deployment_parities
from dashboard.regressions.judge.certain_facts import Fact, FactKind
from dashboard.regressions.judge.inputs import Arm

NAME_SHOWN, WHY_SHOWN = 100, 300
KINDS: dict[Kind, FactKind] = {"": "parity", "shadow": "shadow_parity", "finite": "non_finite"}


def parity_facts(*, deployment: Deployment, arm: Arm, now_minute: int) -> list[Fact]:
    """A wrong result is one of the build: it holds as long as the process runs that found it, and what a baseline told holds for good."""
    rows = deployment_parities(deployment=deployment, live_from=None if arm == "baseline" else now_minute - LIVE_MINUTES)
    worst: dict[str, Shown] = {}
    for row in rows:
        known = worst.get(row.told.name)
        if row.told.state == "failed" and (known is None or _times(row) > _times(known)):
            worst[row.told.name] = row
    return [_fact(row, arm, worst) for row in rows if row.told.state != "not compared"]


def _fact(row: Shown, arm: Arm, worst: dict[str, Shown]) -> Fact:
    name, failed = row.told.name, row.told.state == "failed"
    return Fact(
        kind=KINDS[row.told.kind],
        arm=arm,
        instance=row.instance,
        since=clock.minute_of((row.failed_at or row.at).timestamp()),
        about=(row.told.region if row.told.kind and row.told.region else name)[:NAME_SHOWN],
        why=parity_words(worst[name].told)[:WHY_SHOWN] if failed else "",
        place=row.place[:NAME_SHOWN],
        passed=not failed,
    )


def _times(row: Shown) -> float:
    """What is no matter of numbers, such as another shape, is worse than any number."""
    return row.told.times if row.told.times is not None else float("inf")

"""Placebo periods: hours of healthy versions whose instances can be judged against each other, and
the reasons for which other versions have none."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import zip_longest
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, QuerySet

from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.retention import find_first_kept_instance_minute
from dashboard.fleet.selectors.judge_inputs.excluded_minutes import read_excluded_minutes
from dashboard.fleet.selectors.judge_inputs.independent_units import JudgedProcess, read_processes
from dashboard.fleet.selectors.judge_inputs.judge_minutes import read_instance_minutes
from dashboard.fleet.selectors.judge_inputs.judge_processes import Starts, read_process_minutes
from dashboard.projects.models import Project
from dashboard.regressions.judge.inputs import InstanceMinute
from dashboard.regressions.judge.placebo import LEAST_UNITS, PlaceboPeriod
from dashboard.regressions.judge.process.inputs import InstanceProcessMinute
from dashboard.regressions.models import Verdict
from dashboard.vocabulary.severity import ALERTING_VERDICTS

PERIOD_MINUTES = 360
LEAST_PERIOD_MINUTES = 120
MAX_PERIODS = 60
MAX_DEPLOYMENTS = 40
MAX_UNITS = 24
"""Units that are read of a period, 12 on each side."""
MAX_ROWS = 100_000
"""Rows of calls after which a period ends early."""
READ_MINUTES = 60
"""Minutes per query of a period."""
LASTING_SHARE = 0.75
"""Part of a period for which a unit must run."""

REASON_ALERTED = "WATCH or ROLL BACK verdict"
REASON_SHORT = f"less than {LEAST_PERIOD_MINUTES // 60} h of retained minutes"
REASON_FEW = f"fewer than {LEAST_UNITS} instances at the same time"

_ROW_FIELDS = tuple(one.name for one in fields(InstanceMinute) if one.name != "arm")
_STATE_FIELDS = tuple(one.name for one in fields(InstanceProcessMinute) if one.name != "arm")


class PlannedPeriod(NamedTuple):
    """A period of a deployment, with the units that are read."""

    deployment_id: int
    first_minute: int
    end_minute: int
    units: list[str]


@dataclass(frozen=True)
class PlaceboPlan:
    """The periods to judge, with the number of their versions, and skipped versions by reason."""

    periods: list[PlannedPeriod]
    left_out: dict[str, int]

    @property
    def versions(self) -> int:
        """Number of deployments with a period."""
        return len({period.deployment_id for period in self.periods})

    def as_dict(self) -> dict[str, Any]:
        """The plan as JSON types."""
        return {"periods": [list(one) for one in self.periods], "left_out": self.left_out}

    @classmethod
    def of(cls, stored: dict[str, Any]) -> PlaceboPlan:
        """The plan that `as_dict` stored."""
        return cls([PlannedPeriod(*one) for one in stored["periods"]], stored["left_out"])


def plan_periods(*, project: Project, model: WatchedModel | None, now_minute: int) -> PlaceboPlan:
    """Up to MAX_PERIODS periods, spread evenly over the newest versions. Equal rows give an equal
    plan."""
    kept_from = find_first_kept_instance_minute(project=project, now=now_minute * 60)
    found: list[list[PlannedPeriod]] = []
    left_out: Counter[str] = Counter()
    for deployment in _query_deployments(project, model, kept_from)[:MAX_DEPLOYMENTS]:
        start = max(deployment.started_minute, kept_from)
        spans = list(_list_spans(start, min(deployment.last_minute + 1, now_minute)))
        if deployment.alerted or not spans:  # type: ignore[attr-defined]
            left_out[REASON_SHORT if not spans else REASON_ALERTED] += 1
            continue
        periods = _list_periods(deployment, spans)
        if periods:
            found.append(periods)
        else:
            left_out[REASON_FEW] += 1
    in_turn = [one for group in zip_longest(*found) for one in group if one is not None]
    return PlaceboPlan(in_turn[:MAX_PERIODS], dict(left_out))


def read_period(*, deployment: Deployment, planned: PlannedPeriod) -> PlaceboPeriod:
    """Reads the rows of a period, all as baseline, up to MAX_ROWS."""
    rows: list[InstanceMinute] = []
    states: list[InstanceProcessMinute] = []
    starts: Starts = {}
    end = planned.first_minute
    while end < planned.end_minute and len(rows) < MAX_ROWS:
        first, end = end, min(end + READ_MINUTES, planned.end_minute)
        span: dict[str, Any] = {
            "deployment": deployment,
            "baseline": None,
            "from_minute": first,
            "to_minute": end,
        }
        switched = read_excluded_minutes(**span)
        for row in read_instance_minutes(**span, units=planned.units):
            if row.minute not in switched.get(row.instance, ()):
                values = {name: getattr(row, name) for name in _ROW_FIELDS}
                rows.append(InstanceMinute(arm="baseline", **values))
        for state in read_process_minutes(**span, starts=starts, units=planned.units):
            if state.minute not in switched.get(state.instance, ()):
                values = {name: getattr(state, name) for name in _STATE_FIELDS}
                states.append(InstanceProcessMinute(arm="baseline", **values))
    return PlaceboPeriod(planned.first_minute, end, rows, states)


def _query_deployments(
    project: Project, model: WatchedModel | None, kept_from: int
) -> QuerySet[Deployment]:
    """Deployments with retained minutes, newest first."""
    alerts = Verdict.objects.filter(deployment=OuterRef("pk"), kind__in=ALERTING_VERDICTS)
    rows = (
        Deployment.objects.filter(project=project, last_minute__gte=kept_from)
        .exclude(version__name=OTHER)
        .exclude(environment=OTHER)
    )
    if model is not None:
        rows = rows.filter(model=model)
    return rows.annotate(alerted=Exists(alerts)).order_by("-started_minute", "-pk")


def _list_spans(start: int, end: int) -> Iterator[tuple[int, int]]:
    while end - start >= LEAST_PERIOD_MINUTES:
        yield start, min(start + PERIOD_MINUTES, end)
        start += PERIOD_MINUTES


def _list_periods(deployment: Deployment, spans: Sequence[tuple[int, int]]) -> list[PlannedPeriod]:
    """The spans with enough units, in random order."""
    units: dict[str, list[JudgedProcess]] = {}
    for process in read_processes(deployment).values():
        units.setdefault(process.unit, []).append(process)
    rng = random.Random(f"placebo {deployment.started_minute}")  # not for security
    found = []
    for first, end in spans:
        lasting = [name for name in sorted(units) if _lasts(units[name], first, end)]
        if len(lasting) >= LEAST_UNITS:
            drawn = sorted(rng.sample(lasting, min(MAX_UNITS, len(lasting))))
            found.append(PlannedPeriod(deployment.pk, first, end, drawn))
    rng.shuffle(found)
    return found


def _lasts(processes: Sequence[JudgedProcess], first: int, end: int) -> bool:
    ran_from = max(first, min(process.first_minute for process in processes))
    ran_until = min(end, max(process.last_minute for process in processes) + 1)
    return ran_until - ran_from >= LASTING_SHARE * (end - first)

"""Backtest: evaluates past deployments again from their retained minutes and compares the result
with the verdicts of that time. Writes nothing."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from django.db.models import QuerySet

from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.retention import find_first_kept_instance_minute
from dashboard.fleet.selectors.judge_inputs.judge_minutes import closed_minute
from dashboard.projects.models import Project
from dashboard.regressions.baseline_selection import select_baseline
from dashboard.regressions.comparison_cache import replay_comparison
from dashboard.regressions.due_deployments import list_deployments
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge_service import build_judgement
from dashboard.regressions.models import Comparison, Verdict, VerdictKind
from dashboard.regressions.run_reader import read_run_comparison
from dashboard.vocabulary.severity import VERDICTS_BY_CLAIM

REASON_DROPPED = "started before the retained per-instance minutes"
REASON_NO_BASELINE = "no baseline"
REASON_NEVER_JUDGED = "never evaluated"
REASON_TIME_LIMIT = "time limit of the backtest exceeded"


@dataclass(frozen=True)
class BacktestRow:
    """One deployment: its most demanding verdict at that time, its most demanding verdict now, and
    the last sentence."""

    deployment: Deployment
    baseline: Deployment
    then: str
    now: str
    sentence: str

    @property
    def differs(self) -> bool:
        """True if people would have been notified differently."""
        return self.then != self.now


@dataclass
class BacktestResult:
    """The deployments that were evaluated again, newest first, and the number of skipped ones, by
    reason."""

    since_minute: int
    lines: list[BacktestRow] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)

    @property
    def differing(self) -> int:
        """Number of deployments with a different verdict."""
        return sum(line.differs for line in self.lines)

    @property
    def reasons(self) -> list[tuple[str, int]]:
        """Reasons for skipped deployments, with their numbers."""
        return sorted(self.left_out.items())


def backtest_deployments(
    *,
    project: Project,
    since_minute: int,
    settings_of: Callable[[int], Settings],
    model: WatchedModel | None = None,
    seconds: float | None = None,
    minutes: int | None = None,
) -> BacktestResult:
    """Evaluates deployments that ran since a minute with the settings of a model ID, against their
    baseline of that time.

    The backtest stops after about `seconds`, and reads up to `minutes` of each deployment. Skipped
    deployments are counted by reason.
    """
    stop = time.monotonic() + seconds if seconds is not None else None
    found = BacktestResult(since_minute)
    for deployment in query_backtest_deployments(project, since_minute, model):
        if stop is not None and time.monotonic() >= stop:
            found.left_out[REASON_TIME_LIMIT] += 1
            continue
        line = backtest_deployment(deployment, settings_of=settings_of, minutes=minutes)
        if isinstance(line, BacktestRow):
            found.lines.append(line)
        else:
            found.left_out[line] += 1
    return found


def backtest_deployment(
    deployment: Deployment, *, settings_of: Callable[[int], Settings], minutes: int | None = None
) -> BacktestRow | str:
    """One deployment evaluated again, or the reason why it is skipped."""
    now_minute = closed_minute(clock.unix()) + 1
    kept_from = find_first_kept_instance_minute(project=deployment.project, now=now_minute * 60)
    if deployment.started_minute < kept_from:
        return REASON_DROPPED
    baseline, until = _baseline(deployment), _find_end_minute(deployment, now_minute, minutes)
    if baseline is None:
        return REASON_NO_BASELINE
    then = _worst(_list_past_kinds(deployment, until))
    if not then:
        return REASON_NEVER_JUDGED
    return _evaluate(deployment, baseline, then, settings_of(deployment.model_id), until)


def query_backtest_deployments(
    project: Project, since_minute: int, model: WatchedModel | None
) -> QuerySet[Deployment]:
    """Deployments that ran since a minute, newest first."""
    rows = (
        Deployment.objects.filter(project=project, last_minute__gte=since_minute)
        .exclude(version__name=OTHER)
        .exclude(environment=OTHER)
    )
    if model is not None:
        rows = rows.filter(model=model)
    return rows.select_related("version", "model", "project").order_by("-started_minute", "-pk")


def _baseline(deployment: Deployment) -> Deployment | None:
    """The baseline that the deployment was or would be compared with."""
    compared = (
        Comparison.objects.filter(deployment=deployment)
        .exclude(baseline=None)
        .select_related("baseline__version")
        .first()
    )
    if compared is not None:
        return compared.baseline
    same = Deployment.objects.filter(
        model_id=deployment.model_id, environment=deployment.environment
    )
    before = same.filter(started_minute__lt=deployment.started_minute).exclude(version__name=OTHER)
    return select_baseline(
        deployment=deployment,
        earlier=list(before.select_related("version").order_by("started_minute", "pk")),
    )


def _find_end_minute(deployment: Deployment, now_minute: int, minutes: int | None) -> int:
    """The first minute after the evaluation. Minutes after a deployment's end contain no
    information about it."""
    end = (
        now_minute
        if deployment.ended_minute is None
        else min(now_minute, deployment.last_minute + 1)
    )
    return end if minutes is None else min(end, deployment.started_minute + minutes)


def _list_past_kinds(deployment: Deployment, until: int) -> list[str]:
    return list(
        Verdict.objects.filter(deployment=deployment, minute__lt=until).values_list(
            "kind", flat=True
        )
    )


def _worst(kinds: Iterable[str]) -> str:
    known = [VerdictKind(kind) for kind in kinds if kind in VerdictKind.values]
    return str(max(known, key=VERDICTS_BY_CLAIM.index)) if known else ""


def _evaluate(
    deployment: Deployment, baseline: Deployment, then: str, settings: Settings, until: int
) -> BacktestRow:
    comparison = replay_comparison(
        deployment=deployment, baseline=baseline, until=until, settings=settings
    )
    same = list_deployments(model_id=deployment.model_id, environment=deployment.environment)
    comparison.runs = read_run_comparison(
        comparison=comparison,
        deployment=deployment,
        baseline=baseline,
        earlier=[one for one in same if one.started_minute < deployment.started_minute],
        now_minute=until,
    )
    judgement = build_judgement(
        comparison=comparison, deployment=deployment, baseline=baseline, now_minute=until
    )
    said = [str(kind) for _, kind in judgement.evidence["transitions"]]
    return BacktestRow(
        deployment, baseline, then, _worst([judgement.kind, *said]), judgement.sentence
    )

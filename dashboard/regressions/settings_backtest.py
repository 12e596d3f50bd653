"""Backtest of edited settings: requests, and the work of the stage that computes them.

A request is a row. The stage evaluates one deployment at a time and stores the result after each,
so any worker continues a request to its end and a lost worker loses one deployment. Two workers
that evaluate the same deployment store it once.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.backtest import (
    BacktestRow,
    backtest_deployment,
    query_backtest_deployments,
)
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.settings_overrides import Value
from dashboard.regressions.models import SettingsBacktest
from dashboard.regressions.settings_resolver import SettingsResolver

logger = logging.getLogger(__name__)

BACKTEST_DAYS = 8
HOURS_EACH = 24
BACKTESTS_KEPT = 3
"""Backtests that are retained for each project and model."""
REASON_DELETED = "deleted or joined with another deployment"
REASON_FAILED = "failed; the log of the worker contains the reason"


def backtest_request(
    *,
    project: Project,
    model: WatchedModel | None,
    values: Mapping[str, Value],
    actor_name: str,
) -> SettingsBacktest:
    """Requests a backtest of these choices. It replaces an unfinished one of the same project and
    model."""
    with write_transaction():
        same = SettingsBacktest.objects.filter(project=project, model=model)
        same.filter(finished_at=None).delete()
        old = same.order_by("-requested_at", "-pk").values_list("pk", flat=True)
        SettingsBacktest.objects.filter(pk__in=list(old[BACKTESTS_KEPT - 1 :])).delete()
        return SettingsBacktest.objects.create(
            project=project,
            model=model,
            values=dict(values),
            requested_at=clock.now(),
            requested_by_name=actor_name,
        )


def find_backtest(*, project: Project, model: WatchedModel | None) -> SettingsBacktest | None:
    """The newest backtest of a project or a model; one query."""
    rows = SettingsBacktest.objects.filter(project=project, model=model)
    return rows.order_by("-requested_at", "-pk").first()


def backtests_compute(*, seconds: float, unfinished: Callable[[], None] = lambda: None) -> int:
    """Continues the requested backtests, the oldest first. Returns the number of steps.

    After `seconds`, and at least one step, stops and calls `unfinished`.
    """
    stop, steps = time.monotonic() + seconds, 0
    waiting = SettingsBacktest.objects.filter(finished_at=None).order_by("requested_at", "pk")
    while (backtest := waiting.select_related("project", "model").first()) is not None:
        if steps and time.monotonic() >= stop:
            unfinished()
            break
        _advance(backtest)
        steps += 1
    return steps


def _advance(backtest: SettingsBacktest) -> None:
    """Lists the deployments of the backtest, or evaluates the next one."""
    if backtest.deployments is None:
        since = clock.minute_of(clock.unix()) - BACKTEST_DAYS * 1440
        rows = query_backtest_deployments(backtest.project, since, backtest.model)
        listed = list(rows.values_list("pk", flat=True))
        _store(backtest, deployments=listed, ends=not listed)
        return
    found = _evaluate(backtest, backtest.deployments[backtest.done])
    done = backtest.done + 1
    fields: dict[str, Any] = {"done": done}
    if isinstance(found, BacktestRow):
        fields["evaluated"] = backtest.evaluated + 1
        if found.differs:
            fields["changes"] = [*backtest.changes, _serialize(found)]
    else:
        fields["left_out"] = dict(Counter(backtest.left_out) + Counter([found]))
    _store(backtest, ends=done >= len(backtest.deployments), **fields)


def _evaluate(backtest: SettingsBacktest, deployment_id: int) -> BacktestRow | str:
    rows = Deployment.objects.select_related("version", "model", "project")
    deployment = rows.filter(pk=deployment_id).first()
    if deployment is None:
        return REASON_DELETED
    book = SettingsResolver(project_id=backtest.project_id)

    def settings_of(model_id: int) -> Settings:
        return book.resolve_edited(
            project_id=backtest.project_id,
            edited_model_id=backtest.model_id,
            values=backtest.values,
            model_id=model_id,
        )

    try:
        return backtest_deployment(deployment, settings_of=settings_of, minutes=HOURS_EACH * 60)
    except Exception:
        # A deployment that fails must not block other deployments and backtests.
        logger.exception("deployment %s of backtest %s failed", deployment_id, backtest.pk)
        return REASON_FAILED


def _serialize(line: BacktestRow) -> dict[str, Any]:
    deployment = line.deployment
    return {
        "deployment_id": deployment.pk,
        "model_id": deployment.model_id,
        "model": deployment.model.name,
        "version": deployment.version.name,
        "environment": deployment.environment,
        "started_minute": deployment.started_minute,
        "then": line.then,
        "now": line.now,
        "sentence": line.sentence,
    }


def _store(backtest: SettingsBacktest, *, ends: bool, **fields: object) -> None:
    """Stores a step, unless another worker stored it or a newer request replaced the backtest."""
    finished_at = clock.now() if ends else None
    with write_transaction():
        rows = SettingsBacktest.objects.filter(pk=backtest.pk, done=backtest.done, finished_at=None)
        rows.update(**fields, finished_at=finished_at)

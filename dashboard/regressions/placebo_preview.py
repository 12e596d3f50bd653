"""Placebo preview: requests to measure settings on the fleet's own placebo pairs, and the work of
the stage that computes them.

A request is a row. The stage judges one period of its plan at a time and stores the counts after
each, so any worker continues a request and a lost worker loses one period. Two workers that judge
the same period store it once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import Deployment, WatchedModel
from dashboard.fleet.selectors.judge_inputs.judge_minutes import closed_minute
from dashboard.projects.models import Project
from dashboard.regressions.judge.placebo import PlaceboTally, tally_period
from dashboard.regressions.judge.settings_overrides import Value
from dashboard.regressions.models import PlaceboPreview
from dashboard.regressions.placebo_periods import (
    PlaceboPlan,
    PlannedPeriod,
    plan_periods,
    read_period,
)
from dashboard.regressions.settings_resolver import SettingsResolver

logger = logging.getLogger(__name__)

SPLITS_PER_PERIOD = 4
MAX_SPENT_S = 120.0
"""Seconds of work after which a preview ends with the pairs that it has."""
PREVIEWS_KEPT = 3
"""Previews that are retained for each project and model."""


def preview_request(
    *,
    project: Project,
    model: WatchedModel | None,
    values: Mapping[str, Value],
    actor_name: str,
) -> PlaceboPreview:
    """Requests a preview of these choices. It replaces an unfinished one of the same project and
    model."""
    with write_transaction():
        same = PlaceboPreview.objects.filter(project=project, model=model)
        same.filter(finished_at=None).delete()
        old = same.order_by("-requested_at", "-pk").values_list("pk", flat=True)
        PlaceboPreview.objects.filter(pk__in=list(old[PREVIEWS_KEPT - 1 :])).delete()
        return PlaceboPreview.objects.create(
            project=project,
            model=model,
            values=dict(values),
            requested_at=clock.now(),
            requested_by_name=actor_name,
        )


def find_preview(*, project: Project, model: WatchedModel | None) -> PlaceboPreview | None:
    """The newest preview of a project or a model; one query."""
    rows = PlaceboPreview.objects.filter(project=project, model=model)
    return rows.order_by("-requested_at", "-pk").first()


def previews_compute(*, seconds: float, unfinished: Callable[[], None] = lambda: None) -> int:
    """Continues the requested previews, the oldest first. Returns the number of steps.

    After `seconds`, and at least one step, stops and calls `unfinished`.
    """
    stop, steps = time.monotonic() + seconds, 0
    waiting = PlaceboPreview.objects.filter(finished_at=None).order_by("requested_at", "pk")
    while (preview := waiting.select_related("project", "model").first()) is not None:
        if steps and time.monotonic() >= stop:
            unfinished()
            break
        _preview_advance(preview)
        steps += 1
    return steps


def _preview_advance(preview: PlaceboPreview) -> None:
    """Plans the preview, or judges its next period."""
    began = time.monotonic()
    planned: list[PlannedPeriod] = []
    found = PlaceboTally()
    try:
        if preview.plan is None:
            now_minute = closed_minute(clock.unix()) + 1
            plan = plan_periods(project=preview.project, model=preview.model, now_minute=now_minute)
            _preview_store(preview, plan=plan.as_dict(), ends=not plan.periods)
            return
        planned = PlaceboPlan.of(preview.plan).periods
        found = _tally(preview, planned[preview.done])
    except Exception:
        # A step that fails must not block other periods and previews.
        logger.exception("step %s of preview %s failed", preview.done, preview.pk)
    found.add(PlaceboTally(**preview.tally))
    spent, done = preview.spent_s + time.monotonic() - began, preview.done + 1
    _preview_store(
        preview,
        tally=found.as_dict(),
        spent_s=spent,
        done=done,
        ends=done >= len(planned) or spent >= MAX_SPENT_S,
    )


def _tally(preview: PlaceboPreview, planned: PlannedPeriod) -> PlaceboTally:
    deployment = (
        Deployment.objects.select_related("version").filter(pk=planned.deployment_id).first()
    )
    if deployment is None:  # deleted or joined with another one since the plan
        return PlaceboTally()
    settings = SettingsResolver(project_id=preview.project_id).resolve_edited(
        project_id=preview.project_id,
        edited_model_id=preview.model_id,
        values=preview.values,
        model_id=deployment.model_id,
    )
    period = read_period(deployment=deployment, planned=planned)
    seed = f"{planned.deployment_id} {planned.first_minute}"
    return tally_period(period, settings, splits=SPLITS_PER_PERIOD, seed=seed)


def _preview_store(preview: PlaceboPreview, *, ends: bool, **fields: object) -> None:
    """Stores a step, unless another worker stored it or a newer request replaced the preview."""
    finished_at = clock.now() if ends else None
    with write_transaction():
        rows = PlaceboPreview.objects.filter(pk=preview.pk, done=preview.done, finished_at=None)
        rows.update(**fields, finished_at=finished_at)

"""Data of Settings > Runbooks: all models with their runbooks, and the runbook in the form."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.alerts.models import RollbackGuide
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project

MAX_MODELS_LISTED = 200


@dataclass(frozen=True)
class RunbookRow:
    """One model."""

    model: WatchedModel
    guide: RollbackGuide | None


@dataclass(frozen=True)
class RunbooksData:
    """Data of the page; `chosen` is the model whose form is open."""

    rows: list[RunbookRow]
    chosen: RunbookRow | None
    total: int


def read_runbooks_data(*, project: Project, model_id: int | None) -> RunbooksData:
    """Three queries. Without a choice, the form shows the first model without a runbook."""
    models = for_project(WatchedModel, project).exclude(name=OTHER)
    guides = {guide.model_name: guide for guide in for_project(RollbackGuide, project)}
    rows = [RunbookRow(model, guides.get(model.name)) for model in models.order_by("name", "pk")]
    asked = next((row for row in rows if row.model.pk == model_id), None)
    without = next((row for row in rows if row.guide is None), None)
    return RunbooksData(
        rows[:MAX_MODELS_LISTED], asked or without or next(iter(rows), None), len(rows)
    )

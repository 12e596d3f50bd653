"""What Settings > Roll back reads: every model with what its owners wrote, and the one that is being written."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.alerts.models import RollbackGuide
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project

LISTED = 200


@dataclass(frozen=True)
class GuideRow:
    """One model."""

    model: WatchedModel
    guide: RollbackGuide | None


@dataclass(frozen=True)
class GuidesPage:
    """The whole page; `chosen` is the model whose form is open."""

    rows: list[GuideRow]
    chosen: GuideRow | None
    total: int


def guides_page(*, project: Project, model_id: int | None) -> GuidesPage:
    """Three queries. Without a choice the form is of the first model that has no guide."""
    models = for_project(WatchedModel, project).exclude(name=OTHER)
    guides = {guide.model_name: guide for guide in for_project(RollbackGuide, project)}
    rows = [GuideRow(model, guides.get(model.name)) for model in models.order_by("name", "pk")]
    asked = next((row for row in rows if row.model.pk == model_id), None)
    without = next((row for row in rows if row.guide is None), None)
    return GuidesPage(rows[:LISTED], asked or without or next(iter(rows), None), len(rows))

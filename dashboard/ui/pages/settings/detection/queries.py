"""Data of the Detection page: settings, learned variance, and change history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min, Q

from dashboard.accounts.models import AuditEntry
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.settings_overrides import LearnedMetric, Value, filter_known
from dashboard.regressions.judge.warm_up import LearnedWarmUp
from dashboard.regressions.judging_settings import AUDIT_ACTION
from dashboard.regressions.models import (
    HealthyPair,
    LearnedVariance,
    PlaceboPreview,
    SettingsBacktest,
)
from dashboard.regressions.placebo_preview import find_preview
from dashboard.regressions.settings_backtest import find_backtest
from dashboard.regressions.settings_resolver import SettingsResolver

CHANGES_SHOWN = 12
MODELS_LISTED = 500


@dataclass(frozen=True)
class ModelWarmUp:
    """The learned warm-up of one model, and the warm-up in force."""

    model: WatchedModel
    learned: LearnedWarmUp
    in_force: Settings


@dataclass(frozen=True)
class DetectionData:
    """Data of the page; `of_project` are the project's settings, which apply below those of the
    model."""

    project: Project
    model: WatchedModel | None
    models: Sequence[WatchedModel]
    own: dict[str, Value]
    of_project: dict[str, Value]
    learned: dict[str, LearnedMetric]
    learned_at: datetime | None
    pairs: int
    pairs_since: int | None
    changes: list[AuditEntry]
    warm_ups: list[ModelWarmUp]
    """The learned warm-up of the models on the page, as far as it is known."""
    preview: PlaceboPreview | None
    backtest: SettingsBacktest | None


def read_detection_data(*, project: Project, model: WatchedModel | None) -> DetectionData:
    """A fixed number of queries."""
    book = SettingsResolver(project_id=project.pk)
    of_project = filter_known(book.overrides(project_id=project.pk))
    own = (
        filter_known(book.overrides(project_id=project.pk, model_id=model.pk))
        if model
        else of_project
    )
    pairs = for_project(HealthyPair, project).exclude(taught={})
    found = pairs.aggregate(count=Count("pk"), first=Min("started_minute"))
    models = list(for_project(WatchedModel, project).order_by("name", "pk")[:MODELS_LISTED])
    return DetectionData(
        project=project,
        model=model,
        models=models,
        own=own,
        of_project=of_project if model else {},
        learned=book.learned(project_id=project.pk),
        learned_at=for_project(LearnedVariance, project).aggregate(at=Max("learned_at"))["at"],
        pairs=found["count"],
        pairs_since=found["first"],
        changes=_changes(project, model),
        warm_ups=_list_warm_ups(book, models if model is None else [model]),
        preview=find_preview(project=project, model=model),
        backtest=find_backtest(project=project, model=model),
    )


def _list_warm_ups(book: SettingsResolver, models: Sequence[WatchedModel]) -> list[ModelWarmUp]:
    learned = [(model, book.warm_up(model_id=model.pk)) for model in models]
    return [
        ModelWarmUp(model, found, book.of(project_id=model.project_id, model_id=model.pk))
        for model, found in learned
        if found is not None
    ]


def _changes(project: Project, model: WatchedModel | None) -> list[AuditEntry]:
    rows = for_project(AuditEntry.objects.filter(action=AUDIT_ACTION), project)
    if model is not None:
        rows = rows.filter(Q(after__model=model.pk) | Q(after__model__isnull=True))
    return list(rows.order_by("-pk")[:CHANGES_SHOWN])


def list_changed_settings(entry: AuditEntry) -> list[tuple[str, Any, Any]]:
    """Name, old and new value of each setting in an audit entry; None means that the lower layer
    applied."""
    before, after = (side if isinstance(side, dict) else {} for side in (entry.before, entry.after))
    return [
        (name, before.get(name), after.get(name)) for name in sorted({*before, *after} - {"model"})
    ]

"""What the Judging page reads: what was chosen, what was learned, and who changed what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Max, Min, Q

from dashboard.accounts.models import AuditEntry
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project
from dashboard.regressions.judge.settings_overrides import Learned, Value, known
from dashboard.regressions.judging_settings import AUDITED
from dashboard.regressions.models import HealthyPair, LearnedVariance
from dashboard.regressions.settings_resolver import SettingsBook

CHANGES_SHOWN = 12
MODELS_LISTED = 500


@dataclass(frozen=True)
class JudgingFacts:
    """Everything the page shows; `of_project` are the choices below those of the model."""

    project: Project
    model: WatchedModel | None
    models: Sequence[WatchedModel]
    own: dict[str, Value]
    of_project: dict[str, Value]
    learned: dict[str, Learned]
    learned_at: datetime | None
    pairs: int
    pairs_since: int | None
    changes: list[AuditEntry]


def judging_facts(*, project: Project, model: WatchedModel | None) -> JudgingFacts:
    """A fixed number of queries."""
    book = SettingsBook(project_id=project.pk)
    of_project = known(book.overrides(project_id=project.pk))
    own = known(book.overrides(project_id=project.pk, model_id=model.pk)) if model else of_project
    pairs = for_project(HealthyPair, project).exclude(taught={})
    return JudgingFacts(
        project=project,
        model=model,
        models=list(for_project(WatchedModel, project).order_by("name", "pk")[:MODELS_LISTED]),
        own=own,
        of_project=of_project if model else {},
        learned=book.learned(project_id=project.pk),
        learned_at=for_project(LearnedVariance, project).aggregate(at=Max("learned_at"))["at"],
        pairs=pairs.count(),
        pairs_since=pairs.aggregate(first=Min("started_minute"))["first"],
        changes=_changes(project, model),
    )


def _changes(project: Project, model: WatchedModel | None) -> list[AuditEntry]:
    rows = for_project(AuditEntry.objects.filter(action=AUDITED), project)
    if model is not None:
        rows = rows.filter(Q(after__model=model.pk) | Q(after__model=None))
    return list(rows.order_by("-pk")[:CHANGES_SHOWN])


def changed_names(entry: AuditEntry) -> list[tuple[str, Any, Any]]:
    """Name, before and after of every setting that an entry tells of; None where the layer below held."""
    before, after = (side if isinstance(side, dict) else {} for side in (entry.before, entry.after))
    return [(name, before.get(name), after.get(name)) for name in sorted({*before, *after} - {"model"})]

"""Settings resolver: the effective settings of a model, in layers: defaults, values learned from
its fleet and about the model, choices for the project, and choices for the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from dashboard.common.raw_queries import fetch_objects_together
from dashboard.regressions.judge.settings import Settings
from dashboard.regressions.judge.settings_overrides import (
    LearnedMetric,
    Value,
    build_settings,
    merge_layers,
)
from dashboard.regressions.judge.warm_up import LearnedWarmUp
from dashboard.regressions.models import JudgingChoice, LearnedVariance
from dashboard.regressions.models import LearnedWarmUp as LearnedWarmUpRow

ANY_LAYOUT = ""
"""Learned values apply to every layout of the fleet, because strata are pooled."""


class SettingsResolver:
    """Reads all settings in one query, for one sweep or one page. Equal choices return the same
    object."""

    def __init__(self, *, project_id: int | None = None) -> None:
        narrow = {} if project_id is None else {"project_id": project_id}
        chosen, learned, warm_ups = fetch_objects_together(
            JudgingChoice.objects.filter(**narrow),
            LearnedVariance.objects.filter(layout=ANY_LAYOUT, **narrow),
            LearnedWarmUpRow.objects.filter(**narrow),
        )
        self._chosen: dict[tuple[int, int | None], dict[str, Any]] = {
            (row.project_id, row.model_id): row.values for row in chosen
        }
        self._learned = _group_by_project(learned)
        self._warm_ups = {
            row.model_id: LearnedWarmUp(row.minutes, row.processes, row.versions)
            for row in warm_ups
        }
        self._made: dict[tuple[int, int | None], Settings] = {}

    def overrides(self, *, project_id: int, model_id: int | None = None) -> dict[str, Any]:
        """The choices for the model, or else for the project."""
        return self._chosen.get((project_id, model_id), {})

    def learned(self, *, project_id: int) -> dict[str, LearnedMetric]:
        """The values learned from the project's fleet, by metric."""
        return self._learned.get(project_id, {})

    def warm_up(self, *, model_id: int | None) -> LearnedWarmUp | None:
        """The warm-up learned from the model's past processes; None if too few showed one."""
        return self._warm_ups.get(model_id) if model_id is not None else None

    def of(self, *, project_id: int, model_id: int | None = None) -> Settings:
        """The settings in force."""
        own = (project_id, model_id) in self._chosen or model_id in self._warm_ups
        key = (project_id, model_id if own else None)
        if key not in self._made:
            self._made[key] = self.resolve_with(
                project_id=project_id, model_id=model_id, overrides=self._layers(*key)
            )
        return self._made[key]

    def resolve_with(
        self, *, project_id: int, model_id: int | None, overrides: Mapping[str, Any]
    ) -> Settings:
        """The settings that these choices would give."""
        return build_settings(
            overrides,
            self.learned(project_id=project_id),
            warm_up=self.warm_up(model_id=model_id),
        )

    def resolve_edited(
        self,
        *,
        project_id: int,
        edited_model_id: int | None,
        values: Mapping[str, Value],
        model_id: int,
    ) -> Settings:
        """The settings of a model as if `values` were saved, as the choices of the project or of
        the edited model."""
        of_project = self.overrides(project_id=project_id)
        if edited_model_id is not None:
            layers = merge_layers(of_project, values)
        else:
            own = self.overrides(project_id=project_id, model_id=model_id)
            layers = merge_layers(values, own)
        return self.resolve_with(project_id=project_id, model_id=model_id, overrides=layers)

    def _layers(self, project_id: int, model_id: int | None) -> dict[str, Any]:
        own = (
            self.overrides(project_id=project_id, model_id=model_id) if model_id is not None else {}
        )
        return merge_layers(self.overrides(project_id=project_id), own)


def _group_by_project(
    learned: Iterable[LearnedVariance],
) -> dict[int, dict[str, LearnedMetric]]:
    """The learned values of each project, assembled from their points."""
    points: dict[tuple[int, str], list[LearnedVariance]] = {}
    for row in sorted(learned, key=lambda row: (row.project_id, row.metric, row.minutes)):
        points.setdefault((row.project_id, row.metric), []).append(row)
    found: dict[int, dict[str, LearnedMetric]] = {}
    for (project_id, metric), rows in points.items():
        first = rows[0]
        variance = tuple((row.minutes, row.variance) for row in rows if row.minutes)
        found.setdefault(project_id, {})[metric] = LearnedMetric(
            first.pairs, variance, first.day_variance, first.dispersion, first.prior_df
        )
    return found

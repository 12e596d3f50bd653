"""Fleet deployments: the models and deployments of the Fleet page, in one query."""

from __future__ import annotations

from django.db.models import Max, Model, Q

from dashboard.common.raw_queries import build_object, fetch_rows
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.projects.models import Project

UNUSED_TIMES = ("first_seen_at", "last_seen_at")
"""Deferred columns of models and versions: conversions of times are the largest cost of a row."""


def read_models_and_deployments(
    *, project: Project, since: int
) -> tuple[list[WatchedModel], list[Deployment]]:
    """Return all models by name, and the deployments to show by start.

    Shown are live deployments, deployments that reported since minute `since`, and the last
    deployment per model and environment. The last one is necessary to list inactive models and
    environments.
    """
    rows = WatchedModel.objects.filter(_where_shown(project, since), project=project)
    of_model, of_version = (
        [name for name in _fields(table) if name not in UNUSED_TIMES]
        for table in (WatchedModel, ModelVersion)
    )
    of_run = _fields(Deployment)
    columns = (
        *of_model,
        *(f"deployments__{name}" for name in of_run),
        *(f"deployments__version__{name}" for name in of_version),
    )
    after_model, after_run = len(of_model), len(of_model) + len(of_run)
    models: dict[int, WatchedModel] = {}
    deployments: list[Deployment] = []
    for row in fetch_rows(
        rows.order_by("name", "deployments__started_minute").values_list(*columns)
    ):
        model = models.get(row[0])
        if model is None:
            model = build_object(WatchedModel, of_model, row[:after_model], project=project)
            models[row[0]] = model
        if row[after_model] is not None:
            version = build_object(ModelVersion, of_version, row[after_run:])
            run = row[after_model:after_run]
            deployments.append(build_object(Deployment, of_run, run, model=model, version=version))
    return list(models.values()), sorted(deployments, key=lambda one: one.started_minute)


def _where_shown(project: Project, since: int) -> Q:
    """Return the condition on a model's deployments to show."""
    last = (
        Deployment.objects.filter(project=project)
        .order_by()
        .values("model", "environment")
        .annotate(last=Max("pk"))
        .values("last")
    )
    # The join is an outer one: a model without a deployment matches `ended_minute=None`.
    return (
        Q(deployments__ended_minute=None)
        | Q(deployments__last_minute__gte=since)
        | Q(deployments__pk__in=last)
    )


def _fields(table: type[Model]) -> list[str]:
    """Return the columns, the key first: the key is None where the join found no row."""
    names = [field.attname for field in table._meta.concrete_fields]
    return sorted(names, key=lambda name: name != "id")

"""Budgets: limits of a model's cold start and of its compiled and stalled call shares.

A model without a budget of its own inherits the budget of its project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.vocabulary.numbers import significant

SETTING, AUDIT_ACTION = "budgets", "budgets.set"
BOUNDS = {"cold_start": (1.0, 86400.0), "served": (0.5, 0.99999), "stalled": (0.00001, 1.0)}
DEFAULT_STALLED_SHARE = 0.02
"""Default limit of the share of stalled calls, as a fraction. After a start, some calls meet a new
shape and wait for its compilation."""
ERROR_TEXTS = {
    "cold_start": "Cold start is {}, expected 1 to 86400 seconds.",
    "served": "Served compiled is {}, expected a percentage from 50 to 99.999.",
    "stalled": "Stalled calls is {}, expected a percentage from 0.001 to 100.",
}
SHARE_BUDGETS = ("served", "stalled")


class BudgetError(ValueError):
    """Error for a budget out of bounds: `field` is its name, the text states the accepted range."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.field = name


@dataclass(frozen=True)
class Budgets:
    """Budgets of a model or a project; None where no budget is set.

    `cold_start` is in seconds until the process serves. `served` is the smallest share of calls
    that run compiled. `stalled` is the largest share of calls that wait for a compilation.
    """

    cold_start: float | None = None
    served: float | None = None
    stalled: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """Return the budgets by name."""
        return asdict(self)


def resolve_budgets(model: WatchedModel) -> Budgets:
    """Return the budgets in force: those of the model, else those of its project."""
    return resolve_budgets_with(model, model.project.settings)


def resolve_budgets_with(model: WatchedModel, settings: Mapping[str, Any]) -> Budgets:
    """Return the budgets in force, for callers that already read the project's settings."""
    own, below = own_budgets(model), project_budgets(settings)
    return Budgets(
        below.cold_start if own.cold_start is None else own.cold_start,
        below.served if own.served is None else own.served,
        below.stalled if own.stalled is None else own.stalled,
    )


def find_budget_sources(model: WatchedModel) -> dict[str, str]:
    """Return the source of each budget in force: model, project, or default. Only stalled calls
    have a default."""
    own, below = own_budgets(model).as_dict(), project_budgets(model.project.settings).as_dict()
    found = {
        name: "model" if own[name] is not None else "project"
        for name in own
        if own[name] is not None or below[name] is not None
    }
    return {"stalled": "default"} | found


def own_budgets(model: WatchedModel) -> Budgets:
    """Return the budgets set for this model alone."""
    return Budgets(model.cold_start_budget, model.served_budget, model.stalled_budget)


def project_budgets(settings: Mapping[str, Any]) -> Budgets:
    """Return the budgets in a project's settings; values out of bounds are ignored."""
    told = settings.get(SETTING)
    if not isinstance(told, Mapping):
        return Budgets()
    return Budgets(
        **{name: told[name] for name in BOUNDS if name in told and _is_in_bounds(name, told[name])}
    )


def check_budget(name: str, value: float | None) -> float | None:
    """Return the budget unchanged, or None for none. Raises BudgetError if the value is out of
    bounds."""
    if value is not None and not _is_in_bounds(name, value):
        said = (
            f"{significant(value * 100, 6)}%"
            if name in SHARE_BUDGETS
            else f"{significant(value, 6)} seconds"
        )
        raise BudgetError(name, ERROR_TEXTS[name].format(said))
    return value


def budgets_set(
    *,
    project: Project,
    model: WatchedModel | None,
    budgets: Budgets,
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> bool:
    """Store all budgets of a model, or of its project if `model` is None.

    Return False if nothing changed. Raises BudgetError.
    """
    for name, value in budgets.as_dict().items():
        check_budget(name, value)
    with write_transaction():
        stored = Project.objects.select_for_update().get(pk=project.pk)
        before = (
            own_budgets(WatchedModel.objects.get(pk=model.pk, project=stored))
            if model
            else project_budgets(stored.settings)
        )
        if before == budgets:
            return False
        if model is not None:
            _model_budgets_store(model, budgets)
        else:
            _project_budgets_store(stored, budgets)
        audit_write(
            action=AUDIT_ACTION,
            subject=model.name if model else project.slug,
            project_id=project.pk,
            actor=actor,
            actor_name=actor_name,
            before=before.as_dict(),
            after=budgets.as_dict(),
            address=address,
        )
    if model is None:
        project.settings = stored.settings
    return True


def _model_budgets_store(model: WatchedModel, budgets: Budgets) -> None:
    WatchedModel.objects.filter(pk=model.pk).update(
        cold_start_budget=budgets.cold_start,
        served_budget=budgets.served,
        stalled_budget=budgets.stalled,
    )


def _project_budgets_store(project: Project, budgets: Budgets) -> None:
    known = {name: value for name, value in budgets.as_dict().items() if value is not None}
    project.settings = {**project.settings, SETTING: known}
    project.save(update_fields=["settings"])


def _is_in_bounds(name: str, value: object) -> bool:
    least, most = BOUNDS[name]
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most

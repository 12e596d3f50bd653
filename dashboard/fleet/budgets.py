"""What a model may take to start, and the shares of its calls that have to run compiled and may
wait for compilations.

Budgets of the project hold where a model has none of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common.numbers import significant
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project

SETTING, AUDIT_ACTION = "budgets", "budgets.set"
BOUNDS = {"cold_start": (1.0, 86400.0), "served": (0.5, 0.99999), "stalled": (0.00001, 1.0)}
DEFAULT_STALLED_SHARE = 0.02
"""The share of calls that may stall where no budget is set: after a start some meet a shape for the
first time."""
ERROR_TEXTS = {
    "cold_start": "Cold start is {}, expected from 1 to 86400 seconds.",
    "served": "Served compiled is {}, expected from 50 to 99.999 %.",
    "stalled": "Stalled calls is {}, expected from 0.001 to 100 %.",
}
SHARE_BUDGETS = ("served", "stalled")


class BudgetError(ValueError):
    """A budget that cannot be; `name` is its field, the text says what was expected."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(text)
        self.name = name


@dataclass(frozen=True)
class Budgets:
    """Seconds until a process serves, the share of calls that runs compiled, and the share that may
    wait for a compilation; None is no budget, for stalled calls the usual one."""

    cold_start: float | None = None
    served: float | None = None
    stalled: float | None = None

    def as_dict(self) -> dict[str, float | None]:
        """By name."""
        return asdict(self)


def resolve_budgets(model: WatchedModel) -> Budgets:
    """Those in force: the model's own, else its project's."""
    return resolve_budgets_with(model, model.project.settings)


def resolve_budgets_with(model: WatchedModel, settings: Mapping[str, Any]) -> Budgets:
    """The same for who has the project's settings at hand."""
    own, below = own_budgets(model), project_budgets(settings)
    return Budgets(
        below.cold_start if own.cold_start is None else own.cold_start,
        below.served if own.served is None else own.served,
        below.stalled if own.stalled is None else own.stalled,
    )


def find_budget_sources(model: WatchedModel) -> dict[str, str]:
    """Where each budget in force comes from: model, project, or the default, which only stalled
    calls have."""
    own, below = own_budgets(model).as_dict(), project_budgets(model.project.settings).as_dict()
    found = {
        name: "model" if own[name] is not None else "project"
        for name in own
        if own[name] is not None or below[name] is not None
    }
    return {"stalled": "default"} | found


def own_budgets(model: WatchedModel) -> Budgets:
    """Those that were set for this model alone."""
    return Budgets(model.cold_start_budget, model.served_budget, model.stalled_budget)


def project_budgets(settings: Mapping[str, Any]) -> Budgets:
    """Those of every model that has none of its own; a number out of bounds is none."""
    told = settings.get(SETTING)
    if not isinstance(told, Mapping):
        return Budgets()
    return Budgets(
        **{name: told[name] for name in BOUNDS if name in told and _is_in_bounds(name, told[name])}
    )


def check_budget(name: str, value: float | None) -> float | None:
    """The budget, None for none; raises BudgetError for one that cannot be."""
    if value is not None and not _is_in_bounds(name, value):
        said = (
            f"{significant(value * 100, 6)} %"
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
    """Sets all for a model, or for every model without its own; False where nothing was different.
    Raises BudgetError."""
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
            WatchedModel.objects.filter(pk=model.pk).update(
                cold_start_budget=budgets.cold_start,
                served_budget=budgets.served,
                stalled_budget=budgets.stalled,
            )
        else:
            stored.settings = {
                **stored.settings,
                SETTING: {
                    name: value for name, value in budgets.as_dict().items() if value is not None
                },
            }
            stored.save(update_fields=["settings"])
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


def _is_in_bounds(name: str, value: object) -> bool:
    least, most = BOUNDS[name]
    return isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most

"""Judging settings: writes the operator's settings of the judge. The audit log records each change,
and the next sweep re-evaluates with the new settings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.judge.settings_overrides import Value, check_overrides, filter_known
from dashboard.regressions.models import Comparison, JudgingChoice

AUDIT_ACTION = "judging.set"


def detection_settings_set(
    *,
    project: Project,
    values: Mapping[str, Value],
    model: WatchedModel | None = None,
    actor: User | None = None,
    actor_name: str = "",
    address: str | None = None,
) -> bool:
    """Stores these values; every other setting comes from the layer below. Returns True if a
    setting changed.

    Raises OverrideError, whose text names the setting and the expected value.
    """
    with write_transaction():
        held = (
            JudgingChoice.objects.select_for_update().filter(project=project, model=model).first()
        )
        before = filter_known(held.values) if held else {}
        below: dict[str, Value] = {}
        if model is not None:
            of_project = JudgingChoice.objects.filter(project=project, model=None).first()
            below = filter_known(of_project.values) if of_project else {}
        after = check_overrides(values, below)
        if after == before:
            return False
        JudgingChoice.objects.update_or_create(
            project=project, model=model, defaults={"values": after}
        )
        changed = {name for name in {*before, *after} if before.get(name) != after.get(name)}
        audit_write(
            action=AUDIT_ACTION,
            subject=model.name if model else project.slug,
            project_id=project.pk,
            actor=actor,
            actor_name=actor_name or ("" if actor else "command"),
            before=_select(before, changed) | _audit_details(model),
            after=_select(after, changed) | _audit_details(model),
            address=address,
        )
        schedule_rejudge(project_id=project.pk, model_id=model.pk if model else None)
    return True


def schedule_rejudge(*, project_id: int, model_id: int | None = None) -> None:
    """Makes every live deployment due at the next sweep, seconds from now, as if it had never been
    evaluated."""
    rows = Comparison.objects.filter(project_id=project_id)
    if model_id is not None:
        rows = rows.filter(deployment__model_id=model_id)
    rows.update(judged_minute=0)


def _select(values: Mapping[str, Value], names: set[str]) -> dict[str, Any]:
    return {name: values[name] for name in sorted(names & set(values))}


def _audit_details(model: WatchedModel | None) -> dict[str, Any]:
    return {"model": model.pk} if model else {}

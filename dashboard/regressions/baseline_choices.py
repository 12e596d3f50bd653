"""Baseline choices: an operator pins a version as the baseline, or accepts its level as the new
baseline."""

from __future__ import annotations

from django.db.models import QuerySet

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.regressions.judging_settings import schedule_rejudge
from dashboard.regressions.models import BaselineChoice
from dashboard.regressions.signals import version_accepted

LONGEST_NOTE = 2000
PIN, ACCEPT = "pin", "accept"


class ChoiceError(ValueError):
    """An invalid choice; the text states the reason."""


def baseline_choose(
    *,
    model: WatchedModel,
    environment: str,
    version: str,
    kind: str,
    note: str,
    actor: User,
    address: str | None = None,
) -> BaselineChoice:
    """Compares later versions with this one from now on, in place of the previous choice.

    Acceptance requires a note and settles the alerts of the version. The verdict of the version
    still follows from the data.
    """
    note = note.strip()
    _check_choice(kind, note)
    found = _version(model, environment, version)
    with write_transaction():
        ended = _active(model, environment).select_for_update().first()
        if ended is not None:
            if (ended.version_id, ended.kind, ended.note) == (found.pk, kind, note):
                return ended
            _end(ended, actor)
        choice = _create_choice(model, environment, found, kind, note, actor)
        _audit(
            f"baseline.{kind}",
            choice,
            actor,
            address,
            before=_describe_choice(ended) if ended else None,
            after=_describe_choice(choice),
        )
        if kind == ACCEPT:
            version_accepted.send(sender=BaselineChoice, choice=choice, actor=actor)
        schedule_rejudge(project_id=model.project_id, model_id=model.pk)
    return choice


def _check_choice(kind: str, note: str) -> None:
    if kind not in (PIN, ACCEPT):
        raise ChoiceError("Choose an action: pin the version or accept it.")
    if kind == ACCEPT and not note:
        raise ChoiceError(
            "Enter a note that explains why this level is the new baseline; the note is shown "
            "with the verdict."
        )
    if len(note) > LONGEST_NOTE:
        raise ChoiceError(
            f"The note has {len(note):,} characters, expected at most {LONGEST_NOTE:,}."
        )


def _create_choice(
    model: WatchedModel, environment: str, version: ModelVersion, kind: str, note: str, actor: User
) -> BaselineChoice:
    return BaselineChoice.objects.create(
        project_id=model.project_id,
        model=model,
        environment=environment,
        version=version,
        kind=kind,
        note=note,
        chosen_at=clock.now(),
        chosen_by_name=actor.get_username(),
    )


def baseline_choice_end(*, choice: BaselineChoice, actor: User, address: str | None = None) -> None:
    """Returns the choice of the baseline to the judge. An ended acceptance stays in the history of
    its version."""
    with write_transaction():
        held = (
            BaselineChoice.objects.select_for_update()
            .select_related("model", "version")
            .get(pk=choice.pk)
        )
        if held.ended_at is not None:
            return
        _end(held, actor)
        _audit("baseline.end", held, actor, address, before=_describe_choice(held), after=None)
        schedule_rejudge(project_id=held.project_id, model_id=held.model_id)


def _version(model: WatchedModel, environment: str, name: str) -> ModelVersion:
    """The version that ran in this environment. The same name in other environments has its own
    comparisons."""
    here = Deployment.objects.filter(
        project_id=model.project_id, model=model, environment=environment
    )
    found = (
        ModelVersion.objects.filter(model=model, name=name, pk__in=here.values("version"))
        .exclude(name=OTHER)
        .first()
    )
    if found is None:
        raise ChoiceError(
            f"{environment or 'This environment'} has no version {name[:80]!r}: choose a version "
            "that has run there."
        )
    return found


def _active(model: WatchedModel, environment: str) -> QuerySet[BaselineChoice]:
    return BaselineChoice.objects.filter(model=model, environment=environment, ended_at=None)


def _end(choice: BaselineChoice, actor: User) -> None:
    choice.ended_at, choice.ended_by_name = clock.now(), actor.get_username()
    choice.save(update_fields=["ended_at", "ended_by_name"])


def _describe_choice(choice: BaselineChoice) -> dict[str, str]:
    return {
        "kind": choice.kind,
        "version": choice.version.name,
        "environment": choice.environment,
        "note": choice.note,
    }


def _audit(
    action: str,
    choice: BaselineChoice,
    actor: User,
    address: str | None,
    before: dict[str, str] | None,
    after: dict[str, str] | None,
) -> None:
    audit_write(
        action=action,
        subject=choice.model.name,
        project_id=choice.project_id,
        actor=actor,
        before=before,
        after=after,
        address=address,
    )

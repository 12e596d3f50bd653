"""Starts, advances and ends kill switches. Pull only: a command travels in the responses to
reports, and is renewed while the kill switch is active."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from typing import Any

from compilewatch.wire.command import RESTORE, VERBS, Command, key_project

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.kill_switch.health_check import find_degradation, measure_recent
from dashboard.alerts.kill_switch.models import Switch, SwitchEvent, SwitchPhase
from dashboard.alerts.kill_switch.rollout import (
    RolloutUnit,
    SwitchReceipts,
    compute_stage_shares,
    list_live_units,
    select_units,
)
from dashboard.alerts.services.transitions import lock_project
from dashboard.common import clock
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import ModelVersion
from dashboard.ingest.commands import command_issue
from dashboard.projects.command_key import derive_command_key

logger = logging.getLogger(__name__)

DURATION_CHOICES_MINUTES = (5, 15, 30, 60)
MAX_NOTE_LENGTH = 500
COMMAND_LIFETIME = timedelta(minutes=5)
"""Lifetime of a command, even if the dashboard dies; the next command is sent after half of it."""
RANK_LEAD_TIME = timedelta(seconds=25)
"""Delay before a command for ranks takes effect, long enough for two reports of every rank."""
ANSWER_TIMEOUT = timedelta(seconds=90)
STAGE_SOAK_TIME = timedelta(minutes=2)
"""Time for which a stage must be active and healthy before the next stage."""


class KillSwitchError(FieldError):
    """An invalid kill-switch request."""


def kill_switch_begin(
    *,
    version: ModelVersion,
    environment: str,
    verb: str,
    minutes: int,
    note: str,
    user: User,
    address: str | None = None,
) -> Switch:
    """Asks one instance, or all ranks of one job, to accept the command; raises KillSwitchError."""
    if verb not in VERBS:
        raise KillSwitchError("verb", "choose freeze or eager.")
    if minutes not in DURATION_CHOICES_MINUTES:
        raise KillSwitchError(
            "minutes", f"choose one of {', '.join(map(str, DURATION_CHOICES_MINUTES))}."
        )
    if not note.strip() or len(note) > MAX_NOTE_LENGTH:
        raise KillSwitchError("note", f"enter a reason of at most {MAX_NOTE_LENGTH} characters.")
    if not derive_command_key(version.project):
        raise KillSwitchError(
            "key",
            "this project has no command key. Create one on the Setup page and give its "
            "public key to the jobs.",
        )
    units = [
        unit
        for unit in list_live_units(version_id=version.pk, environment=environment)
        if unit.allows(verb)
    ]
    if not units:
        raise KillSwitchError(
            "version", f"no reporting instance of {version.name} in {environment} allows {verb}."
        )
    now = clock.now()
    with write_transaction():
        lock_project(version.project_id)
        if Switch.objects.filter(version=version, environment=environment, ended_at=None).exists():
            raise KillSwitchError(
                "version", "a kill switch for it is already active. End that one first."
            )
        switch = Switch(
            project=version.project,
            version=version,
            environment=environment,
            verb=verb,
            note=note.strip(),
        )
        switch.ident, switch.asked_at, switch.phase_since = secrets.token_hex(6), now, now
        switch.asked_by, switch.asked_by_name = user, user.get_username()
        switch.wanted_until = now + timedelta(minutes=minutes)
        switch.before = measure_recent(
            project_id=version.project_id, **_version_filter(switch), instances=_rows(units)
        )
        switch.save()
        _add_event(
            switch,
            f"Requested to {_words(verb)} for {minutes} min: {note.strip()}",
            user.get_username(),
        )
        _ask(switch, units)
        _audit(
            switch,
            "switch.begin",
            {"verb": verb, "minutes": minutes, "note": note.strip()},
            user,
            address,
        )
    return switch


def kill_switch_end(*, switch: Switch, user: User, address: str | None = None) -> None:
    """Ends the kill switch now; does nothing if it has already ended."""
    with write_transaction():
        lock_project(switch.project_id)
        held = Switch.objects.select_related("version__model", "project").get(pk=switch.pk)
        if held.ended_at is None:
            _restore(held, f"cancelled by {user.get_username()}", user.get_username())
            _audit(held, "switch.end", {"why": held.ended_why}, user, address)


def kill_switches_advance() -> int:
    """Advances every active kill switch; returns the number of changes. A failed kill switch does
    not block the others."""
    count, errors = 0, []
    for pk, project_id in (
        Switch.objects.filter(ended_at=None).order_by("pk").values_list("pk", "project_id")
    ):
        try:
            with write_transaction():
                lock_project(project_id)
                switch = Switch.objects.select_related("version__model", "project").get(pk=pk)
                count += switch.ended_at is None and _step(switch)
        except Exception as error:
            logger.exception("kill switch %s could not advance", pk)
            errors.append(error)
    if errors:
        raise ExceptionGroup("kill switches that could not advance", errors)
    return count


def _step(switch: Switch) -> bool:
    now, told = clock.now(), SwitchReceipts.of(switch)
    if now >= switch.wanted_until:
        return _restore(switch, "the requested time is over")
    if not derive_command_key(switch.project):
        return _restore(switch, "the project no longer has a command key")
    allowed = [
        unit
        for unit in list_live_units(version_id=switch.version_id, environment=switch.environment)
        if unit.allows(switch.verb)
    ]
    units = select_units(switch.ident, allowed, switch.share)
    names = {one.instance_id for unit in units for one in unit.instances}
    if not names:
        return _restore(switch, "none of its instances is reporting")
    if switch.phase != SwitchPhase.WATCHING and (refused := sorted(names & set(told.refused))):
        return _restore(switch, f"{refused[0]} refused: {told.refused[refused[0]]}")
    if switch.phase == SwitchPhase.WATCHING:
        return _watch(switch, allowed, units, told)
    answered = told.ready if switch.phase == SwitchPhase.ASKING else told.applied
    if names <= answered:
        return (
            _issue_stage(switch, units)
            if switch.phase == SwitchPhase.ASKING
            else _begin_watch(switch, names)
        )
    if now - switch.phase_since > ANSWER_TIMEOUT:
        missing = sorted(names - answered)
        return _restore(
            switch,
            f"{len(missing)} of {len(names)} instances did not answer in time, "
            f"including {missing[0]}",
        )
    return False


def _ask(switch: Switch, allowed: list[RolloutUnit]) -> bool:
    """Asks the units of the next stage to accept the command."""
    shares = [
        share for share in compute_stage_shares(switch.ident, allowed) if share > switch.held_share
    ]
    switch.share = shares[0] if shares else 1.0
    _phase(switch, SwitchPhase.ASKING)
    units = select_units(switch.ident, allowed, switch.share)
    _issue(switch, switch.verb, switch.share, ask=True)
    _add_event(switch, f"Asked {_format_unit_count(units)} to accept the command.")
    return True


def _issue_stage(switch: Switch, units: list[RolloutUnit]) -> bool:
    """Sends the command after all units accepted it; ranks apply it at the same moment."""
    ranks = any(len(unit.instances) > 1 for unit in units)
    switch.held_share = switch.share
    _phase(switch, SwitchPhase.GOING)
    _issue(switch, switch.verb, switch.share, delay=RANK_LEAD_TIME if ranks else timedelta())
    _add_event(
        switch,
        f"Sent {_format_unit_count(units)} the command to {_words(switch.verb)}"
        f"{', for all ranks at the same moment' if ranks else ''}.",
    )
    return True


def _begin_watch(switch: Switch, names: set[str]) -> bool:
    _phase(switch, SwitchPhase.WATCHING)
    switch.save()
    _add_event(switch, f"Active on {len(names)} instance{'s' if len(names) > 1 else ''}.")
    return True


def _watch(
    switch: Switch, allowed: list[RolloutUnit], units: list[RolloutUnit], told: SwitchReceipts
) -> bool:
    """Active stage: reverts on degradation, continues to the next stage when healthy, and renews
    the command while it is wanted."""
    now = clock.now()
    since = clock.minute_of(switch.phase_since.timestamp()) + 1
    minutes = clock.minute_of(now.timestamp()) - since
    if minutes > 0:
        present = measure_recent(
            project_id=switch.project_id,
            **_version_filter(switch),
            instances=_rows(units),
            minutes=minutes,
        )
        if why := find_degradation(switch.verb, switch.before, present):
            return _restore(switch, why)
    ranks = {one.instance_id for unit in units if len(unit.instances) > 1 for one in unit.instances}
    if lost := sorted(ranks - told.applied):
        return _restore(
            switch,
            f"{lost[0]} no longer applies the command, and ranks only switch together",
        )
    if (
        switch.share < 1.0
        and now - switch.phase_since >= STAGE_SOAK_TIME
        and switch.wanted_until - now > ANSWER_TIMEOUT + RANK_LEAD_TIME
    ):
        return _ask(switch, allowed)
    if switch.expires_at is None or switch.expires_at - now < COMMAND_LIFETIME / 2:
        _issue(switch, switch.verb, switch.held_share)
        return True
    return False


def _restore(switch: Switch, why: str, actor_name: str = "") -> bool:
    """Reverts the kill switch, on all ranks at the same moment. Instances that receive the restore
    late revert when their command expires."""
    now = clock.now()
    if derive_command_key(switch.project) and switch.command:
        units = list_live_units(version_id=switch.version_id, environment=switch.environment)
        ranks = any(
            len(unit.instances) > 1 for unit in select_units(switch.ident, units, switch.share)
        )
        _issue(switch, RESTORE, switch.share, delay=RANK_LEAD_TIME if ranks else timedelta())
    switch.ended_at, switch.ended_why = now, why
    _phase(switch, SwitchPhase.OVER)
    switch.save()
    _add_event(switch, f"Reverted: {why}.", actor_name)
    return True


def _issue(
    switch: Switch, verb: str, share: float, *, ask: bool = False, delay: timedelta = timedelta()
) -> None:
    key, begin = derive_command_key(switch.project), clock.now() + delay
    # A restore outlives every command that it cancels; other commands end with the kill switch at
    # the latest.
    end = (
        begin + COMMAND_LIFETIME
        if verb == RESTORE
        else min(begin + COMMAND_LIFETIME, switch.wanted_until)
    )

    def order(counter: int) -> Command:
        return Command(
            id=f"{switch.ident}.{counter}",
            project=key_project(key),
            verb=verb,
            counter=counter,
            model=switch.version.model.name,
            version=switch.version.name,
            environment=switch.environment,
            not_before=begin.timestamp(),
            expires=end.timestamp(),
            share=share,
            ask=ask,
        )

    switch.command = command_issue(
        project=switch.project, key=key, by=switch.asked_by_name, order=order
    ).id
    switch.expires_at = end
    switch.save()
    what = "would you" if ask else "back" if verb == RESTORE else verb
    audit_write(
        action="switch.command",
        subject=f"{switch.version.model.name} {switch.version.name} in {switch.environment}",
        project_id=switch.project_id,
        actor_name="switch",
        after={
            "command": switch.command,
            "order": what,
            "share": round(share, 4),
            "until": end.isoformat(),
        },
    )


def _phase(switch: Switch, phase: SwitchPhase) -> None:
    switch.phase, switch.phase_since = phase, clock.now()


def _version_filter(switch: Switch) -> dict[str, Any]:
    return {"version_id": switch.version_id, "environment": switch.environment}


def _rows(units: list[RolloutUnit]) -> list[int]:
    return [one.pk for unit in units for one in unit.instances]


def _format_unit_count(units: list[RolloutUnit]) -> str:
    count = sum(len(unit.instances) for unit in units)
    jobs = sum(len(unit.instances) > 1 for unit in units)
    return f"{count} instance{'s' if count > 1 else ''}" + (
        f" ({jobs} job{'s' if jobs > 1 else ''})" if jobs else ""
    )


def _words(verb: str) -> str:
    return {"freeze": "compile nothing new", "eager": "run eager"}[verb]


def _add_event(switch: Switch, text: str, actor_name: str = "") -> None:
    SwitchEvent.objects.create(switch=switch, at=clock.now(), text=text, actor_name=actor_name)


def _audit(
    switch: Switch, action: str, after: dict[str, object], user: User, address: str | None
) -> None:
    subject = f"{switch.version.model.name} {switch.version.name} in {switch.environment}"
    audit_write(
        action=action,
        subject=subject,
        project_id=switch.project_id,
        actor=user,
        after=after,
        address=address,
    )

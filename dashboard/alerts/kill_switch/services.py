"""Begins, goes on with and ends switches. Pull only: what is wanted is a command in the answers to reports, renewed while it is wanted."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from typing import Any

from compilewatch.wire.command import RESTORE, VERBS, Command, key_project

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.kill_switch.health_check import lately, worse
from dashboard.alerts.kill_switch.models import Switch, SwitchEvent, SwitchPhase
from dashboard.alerts.kill_switch.rollout import Told, Unit, shares_of, units_live, units_within
from dashboard.alerts.services.transitions import project_hold
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import ModelVersion
from dashboard.ingest.commands import command_issue
from dashboard.projects.command_key import command_key

logger = logging.getLogger(__name__)

MINUTES = (5, 15, 30, 60)
LONGEST_NOTE = 500
LIFETIME = timedelta(minutes=5)
"""A command ends then, whatever becomes of the dashboard; at half of it the next one is sent."""
TOGETHER = timedelta(seconds=25)
"""How long before its moment a command for ranks is sent: every rank reports twice in between."""
ANSWERED_WITHIN = timedelta(seconds=90)
HEALTHY = timedelta(minutes=2)
"""In force and no worse for so long, it goes on to the next stage."""


class SwitchError(ValueError):
    """What was asked for cannot be; the text names the field and says why."""


def switch_begin(
    *, version: ModelVersion, environment: str, verb: str, minutes: int, note: str, user: User, address: str | None = None
) -> Switch:
    """Asks one instance, or all ranks of one job, whether they would; raises SwitchError."""
    if verb not in VERBS:
        raise SwitchError("verb: choose freeze or eager.")
    if minutes not in MINUTES:
        raise SwitchError(f"minutes: choose one of {', '.join(map(str, MINUTES))}.")
    if not note.strip() or len(note) > LONGEST_NOTE:
        raise SwitchError(f"note: say why, in at most {LONGEST_NOTE} characters.")
    if not command_key(version.project):
        raise SwitchError("key: this project has no command key; make one on the Setup page and give its public half to the jobs.")
    units = [unit for unit in units_live(version_id=version.pk, environment=environment) if unit.allows(verb)]
    if not units:
        raise SwitchError(f"version: no instance of {version.name} that reports from {environment} allows {verb}.")
    now = clock.now()
    with write_transaction():
        project_hold(version.project_id)
        if Switch.objects.filter(version=version, environment=environment, ended_at=None).exists():
            raise SwitchError("version: a switch of it goes on; end that first.")
        switch = Switch(project=version.project, version=version, environment=environment, verb=verb, note=note.strip())
        switch.ident, switch.asked_at, switch.phase_since = secrets.token_hex(6), now, now
        switch.asked_by, switch.asked_by_name = user, user.get_username()
        switch.wanted_until = now + timedelta(minutes=minutes)
        switch.before = lately(project_id=version.project_id, **_where(switch), instances=_rows(units))
        switch.save()
        _say(switch, f"Asked to {_words(verb)} for {minutes} minutes: {note.strip()}", user.get_username())
        _ask(switch, units)
        _audit(switch, "switch.begin", {"verb": verb, "minutes": minutes, "note": note.strip()}, user, address)
    return switch


def switch_end(*, switch: Switch, user: User, address: str | None = None) -> None:
    """Takes it back now; what is over stays over."""
    with write_transaction():
        project_hold(switch.project_id)
        held = Switch.objects.select_related("version__model", "project").get(pk=switch.pk)
        if held.ended_at is None:
            _over(held, f"taken back by {user.get_username()}", user.get_username())
            _audit(held, "switch.end", {"why": held.ended_why}, user, address)


def switches_step() -> int:
    """Looks at every switch that goes on; returns how many had news. One that fails holds up no other."""
    count, errors = 0, []
    for pk, project_id in Switch.objects.filter(ended_at=None).order_by("pk").values_list("pk", "project_id"):
        try:
            with write_transaction():
                project_hold(project_id)
                switch = Switch.objects.select_related("version__model", "project").get(pk=pk)
                count += switch.ended_at is None and _step(switch)
        except Exception as error:
            logger.exception("switch %s could not go on", pk)
            errors.append(error)
    if errors:
        raise ExceptionGroup("switches that could not go on", errors)
    return count


def _step(switch: Switch) -> bool:
    now, told = clock.now(), Told.of(switch)
    if now >= switch.wanted_until:
        return _over(switch, "its time is over")
    if not command_key(switch.project):
        return _over(switch, "the project has no command key any more")
    allowed = [unit for unit in units_live(version_id=switch.version_id, environment=switch.environment) if unit.allows(switch.verb)]
    units = units_within(switch.ident, allowed, switch.share)
    names = {one.instance_id for unit in units for one in unit.instances}
    if not names:
        return _over(switch, "none of its instances reports any more")
    if switch.phase != SwitchPhase.WATCHING and (refused := sorted(names & set(told.refused))):
        return _over(switch, f"{refused[0]} refused: {told.refused[refused[0]]}")
    if switch.phase == SwitchPhase.WATCHING:
        return _watch(switch, allowed, units, told)
    answered = told.ready if switch.phase == SwitchPhase.ASKING else told.applied
    if names <= answered:
        return _go(switch, units) if switch.phase == SwitchPhase.ASKING else _applied(switch, names)
    if now - switch.phase_since > ANSWERED_WITHIN:
        missing = sorted(names - answered)
        return _over(switch, f"{len(missing)} of {len(names)} instances did not answer in time, {missing[0]} among them")
    return False


def _ask(switch: Switch, allowed: list[Unit]) -> bool:
    """The next stage: would they?"""
    shares = [share for share in shares_of(switch.ident, allowed) if share > switch.held_share]
    switch.share = shares[0] if shares else 1.0
    _phase(switch, SwitchPhase.ASKING)
    units = units_within(switch.ident, allowed, switch.share)
    _issue(switch, switch.verb, switch.share, ask=True)
    _say(switch, f"Asked {_counted(units)} whether they would.")
    return True


def _go(switch: Switch, units: list[Unit]) -> bool:
    """All of them would: at one moment, where they are ranks."""
    ranks = any(len(unit.instances) > 1 for unit in units)
    switch.held_share = switch.share
    _phase(switch, SwitchPhase.GOING)
    _issue(switch, switch.verb, switch.share, delay=TOGETHER if ranks else timedelta())
    _say(switch, f"Told {_counted(units)} to {_words(switch.verb)}{', all ranks at one moment' if ranks else ''}.")
    return True


def _applied(switch: Switch, names: set[str]) -> bool:
    _phase(switch, SwitchPhase.WATCHING)
    switch.save()
    _say(switch, f"In force on {len(names)} instance{'s' if len(names) > 1 else ''}.")
    return True


def _watch(switch: Switch, allowed: list[Unit], units: list[Unit], told: Told) -> bool:
    """In force: back when it got worse, on when it is healthy, renewed while it is wanted."""
    now = clock.now()
    since = clock.minute_of(switch.phase_since.timestamp()) + 1
    minutes = clock.minute_of(now.timestamp()) - since
    if minutes > 0:
        present = lately(project_id=switch.project_id, **_where(switch), instances=_rows(units), minutes=minutes)
        if why := worse(switch.verb, switch.before, present):
            return _over(switch, why)
    ranks = {one.instance_id for unit in units if len(unit.instances) > 1 for one in unit.instances}
    if lost := sorted(ranks - told.applied):
        return _over(switch, f"{lost[0]} does not apply it any more, and ranks are switched together or not at all")
    if switch.share < 1.0 and now - switch.phase_since >= HEALTHY and switch.wanted_until - now > ANSWERED_WITHIN + TOGETHER:
        return _ask(switch, allowed)
    if switch.expires_at is None or switch.expires_at - now < LIFETIME / 2:
        _issue(switch, switch.verb, switch.held_share)
        return True
    return False


def _over(switch: Switch, why: str, actor_name: str = "") -> bool:
    """Back to how it was, all ranks at one moment; those that hear of it late go back when their command ends."""
    now = clock.now()
    if command_key(switch.project) and switch.command:
        units = units_live(version_id=switch.version_id, environment=switch.environment)
        ranks = any(len(unit.instances) > 1 for unit in units_within(switch.ident, units, switch.share))
        _issue(switch, RESTORE, switch.share, delay=TOGETHER if ranks else timedelta())
    switch.ended_at, switch.ended_why = now, why
    _phase(switch, SwitchPhase.OVER)
    switch.save()
    _say(switch, f"Back: {why}.", actor_name)
    return True


def _issue(switch: Switch, verb: str, share: float, *, ask: bool = False, delay: timedelta = timedelta()) -> None:
    key, begin = command_key(switch.project), clock.now() + delay
    # A restore outlives every command that it takes back; an order ends with the switch at the latest.
    end = begin + LIFETIME if verb == RESTORE else min(begin + LIFETIME, switch.wanted_until)

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

    switch.command = command_issue(project=switch.project, key=key, by=switch.asked_by_name, order=order).id
    switch.expires_at = end
    switch.save()
    what = "would you" if ask else "back" if verb == RESTORE else verb
    audit_write(
        action="switch.command",
        subject=f"{switch.version.model.name} {switch.version.name} in {switch.environment}",
        project_id=switch.project_id,
        actor_name="switch",
        after={"command": switch.command, "order": what, "share": round(share, 4), "until": end.isoformat()},
    )


def _phase(switch: Switch, phase: SwitchPhase) -> None:
    switch.phase, switch.phase_since = phase, clock.now()


def _where(switch: Switch) -> dict[str, Any]:
    return {"version_id": switch.version_id, "environment": switch.environment}


def _rows(units: list[Unit]) -> list[int]:
    return [one.pk for unit in units for one in unit.instances]


def _counted(units: list[Unit]) -> str:
    count = sum(len(unit.instances) for unit in units)
    jobs = sum(len(unit.instances) > 1 for unit in units)
    return f"{count} instance{'s' if count > 1 else ''}" + (f" ({jobs} job{'s' if jobs > 1 else ''})" if jobs else "")


def _words(verb: str) -> str:
    return {"freeze": "compile nothing new", "eager": "run eager"}[verb]


def _say(switch: Switch, text: str, actor_name: str = "") -> None:
    SwitchEvent.objects.create(switch=switch, at=clock.now(), text=text, actor_name=actor_name)


def _audit(switch: Switch, action: str, after: dict[str, object], user: User, address: str | None) -> None:
    subject = f"{switch.version.model.name} {switch.version.name} in {switch.environment}"
    audit_write(action=action, subject=subject, project_id=switch.project_id, actor=user, after=after, address=address)

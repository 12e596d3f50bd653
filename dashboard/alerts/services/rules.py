"""Writes the notification settings of a project: rules, maintenance windows and the time zone of
quiet hours."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import available_timezones

from dashboard.accounts.models import User
from dashboard.accounts.services import audit_write
from dashboard.alerts.models import Channel, Delivery, DeliveryState, MaintenanceWindow, Rule
from dashboard.alerts.services.transitions import lock_project
from dashboard.common import clock
from dashboard.common.field_error import FieldError
from dashboard.common.write_lock import write_transaction
from dashboard.projects.models import Project
from dashboard.vocabulary.severity import ALERTING_VERDICTS

SEVERITIES = tuple(reversed(ALERTING_VERDICTS))
REMINDER_MINUTES = range(5, 10081)
MAX_ENTRIES = 100
"""Maximum number of rules, of current maintenance windows per project, and of names in one list."""
MAX_MAINTENANCE = timedelta(days=14)


class RuleError(FieldError):
    """An invalid rule, window or time zone."""


@dataclass(frozen=True)
class RuleInput:
    """A rule as entered; empty lists match everything."""

    channel: Channel
    severities: list[str]
    environments: list[str]
    models: list[str]
    quiet_from: time | None = None
    quiet_until: time | None = None
    roll_back_passes: bool = True
    repeat_minutes: int | None = None
    escalate_minutes: int | None = None
    escalate_to: Channel | None = None


def rule_add(*, project: Project, given: RuleInput, user: User, address: str | None = None) -> Rule:
    """Adds a rule, effective immediately; raises RuleError."""
    _rule_check(project, given)
    with _change_rules(project):
        rule = Rule.objects.create(
            project=project,
            channel=given.channel,
            severities=given.severities,
            environments=given.environments,
            models_named=given.models,
            quiet_from=given.quiet_from,
            quiet_until=given.quiet_until,
            roll_back_passes=given.roll_back_passes,
            repeat_minutes=given.repeat_minutes,
            escalate_minutes=given.escalate_minutes,
            escalate_to=given.escalate_to,
        )
        _audit(
            "rule.add",
            project,
            f"rule for {given.channel.name}",
            user,
            address,
            after=_describe_rule(rule),
        )
    return rule


def rule_remove(*, rule: Rule, user: User, address: str | None = None) -> None:
    """Removes a rule. Without rules, ROLL BACK and diverged ranks go to every channel."""
    with _change_rules(rule.project):
        _audit(
            "rule.remove",
            rule.project,
            f"rule for {rule.channel.name}",
            user,
            address,
            before=_describe_rule(rule),
        )
        rule.delete()


def maintenance_add(
    *,
    project: Project,
    starts_at: datetime,
    ends_at: datetime,
    environment: str,
    model: str,
    note: str,
    user: User,
    address: str | None = None,
) -> MaintenanceWindow:
    """Adds a maintenance window, in which messages are held; raises RuleError."""
    if ends_at <= max(starts_at, clock.now()):
        raise RuleError("ends_at", "expected a time in the future and after the start.")
    if ends_at - starts_at > MAX_MAINTENANCE:
        raise RuleError("ends_at", f"expected at most {MAX_MAINTENANCE.days} days after the start.")
    if len(environment) > 64 or len(model) > 200 or len(note) > 200:
        raise RuleError("note", "environment, model or note is too long.")
    if (
        MaintenanceWindow.objects.filter(project=project, ends_at__gt=clock.now()).count()
        >= MAX_ENTRIES
    ):
        raise RuleError(
            "starts_at", f"a project can have at most {MAX_ENTRIES} current maintenance windows."
        )
    with _change_rules(project):
        window = MaintenanceWindow.objects.create(
            project=project,
            environment=environment,
            model_name=model,
            starts_at=starts_at,
            ends_at=ends_at,
            note=note,
            made_by_name=user.get_username(),
        )
        after = {
            "from": starts_at.isoformat(),
            "until": ends_at.isoformat(),
            "environment": environment,
            "model": model,
            "note": note,
        }
        _audit("maintenance.add", project, f"maintenance {window.pk}", user, address, after=after)
    return window


def maintenance_end(*, window: MaintenanceWindow, user: User, address: str | None = None) -> None:
    """Ends a maintenance window now; its held messages are sent."""
    with _change_rules(window.project):
        before = {"until": window.ends_at.isoformat()}
        window.ends_at = clock.now()
        window.save(update_fields=["ends_at"])
        after = {"until": window.ends_at.isoformat()}
        _audit(
            "maintenance.end",
            window.project,
            f"maintenance {window.pk}",
            user,
            address,
            before=before,
            after=after,
        )


def time_zone_set(*, project: Project, name: str, user: User, address: str | None = None) -> None:
    """Sets the time zone of quiet hours; raises RuleError."""
    if name not in available_timezones():
        raise RuleError(
            "time_zone", f"{name[:60]!r} is unknown; expected a name such as Europe/Berlin."
        )
    with _change_rules(project):
        before = project.time_zone
        project.time_zone = name
        project.save(update_fields=["time_zone"])
        _audit(
            "project.time_zone",
            project,
            f"project {project.slug}",
            user,
            address,
            before={"zone": before},
            after={"zone": name},
        )


def _rule_check(project: Project, given: RuleInput) -> None:
    if given.channel.project_id != project.pk or (
        given.escalate_to and given.escalate_to.project_id != project.pk
    ):
        raise RuleError("channel", "choose a channel of this project.")
    if not set(given.severities) <= set(SEVERITIES):
        raise RuleError("severities", "choose WATCH, ROLL BACK or both.")
    if any(
        len(listed) > MAX_ENTRIES or any(len(name) > 200 for name in listed)
        for listed in (given.environments, given.models)
    ):
        raise RuleError(
            "models", f"expected at most {MAX_ENTRIES} names of at most 200 characters."
        )
    if (given.quiet_from is None) != (given.quiet_until is None):
        raise RuleError(
            "quiet_from", "enter both the start and the end of quiet hours, or neither."
        )
    for name, minutes in (
        ("repeat_minutes", given.repeat_minutes),
        ("escalate_minutes", given.escalate_minutes),
    ):
        if minutes is not None and minutes not in REMINDER_MINUTES:
            raise RuleError(
                name,
                f"expected a number of minutes from {REMINDER_MINUTES[0]} to "
                f"{REMINDER_MINUTES[-1]:,}.",
            )
    if (given.escalate_minutes is None) != (given.escalate_to is None):
        raise RuleError("escalate_to", "enter both the minutes and the channel, or neither.")
    if given.escalate_to == given.channel:
        raise RuleError("escalate_to", "choose a channel other than the rule's own channel.")
    if Rule.objects.filter(project=project).count() >= MAX_ENTRIES:
        raise RuleError("channel", f"a project can have at most {MAX_ENTRIES} rules.")


@contextmanager
def _change_rules(project: Project) -> Iterator[None]:
    """A change of the settings; afterwards held messages are checked against the new settings."""
    with write_transaction():
        lock_project(project.pk)
        yield
        Delivery.objects.filter(project=project, state=DeliveryState.HELD).update(
            held_until=clock.now()
        )


def _describe_rule(rule: Rule) -> dict[str, object]:
    return {
        "verdicts": rule.severities,
        "environments": rule.environments,
        "models": rule.models_named,
        "quiet": [str(rule.quiet_from), str(rule.quiet_until)]
        if rule.quiet_from is not None
        else None,
        "roll_back_passes": rule.roll_back_passes,
        "repeat_minutes": rule.repeat_minutes,
        "escalate_minutes": rule.escalate_minutes,
        "escalate_to": rule.escalate_to.name if rule.escalate_to else None,
    }


def _audit(
    action: str,
    project: Project,
    subject: str,
    user: User,
    address: str | None,
    *,
    before: object = None,
    after: object = None,
) -> None:
    audit_write(
        action=action,
        subject=subject,
        project_id=project.pk,
        actor=user,
        before=before,
        after=after,
        address=address,
    )

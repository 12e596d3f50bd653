"""Notification policy: decides which channels are notified of an alert and when; uses no database
and no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from dashboard.vocabulary.severity import ROLL_BACK

MAX_HOLD_PERIODS = 20
"""Maximum number of consecutive maintenance windows and quiet hours that are followed. A longer
hold is checked again when it ends."""


@dataclass(frozen=True)
class RuleRow:
    """One rule; an empty tuple matches everything. Quiet hours are in the project's time zone and
    may span midnight."""

    channel: int
    severities: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    quiet_from: time | None = None
    quiet_until: time | None = None
    roll_back_passes: bool = True
    repeat_minutes: int | None = None
    escalate_minutes: int | None = None
    escalate_to: int | None = None


@dataclass(frozen=True)
class MaintenanceRow:
    """Maintenance window with start and end. An empty environment or model matches everything."""

    starts_at: datetime
    ends_at: datetime
    environment: str = ""
    model: str = ""


@dataclass(frozen=True)
class AlertSubject:
    """The subject of a message."""

    severity: str
    environment: str
    model: str
    urgent: bool = False
    """Sent without a matching rule and for any verdict: diverged ranks may wait for each other
    without end, and a silent fleet reports nothing else."""
    whole: bool = False
    """Concerns the whole project: rules for some environments or models match as well."""


@dataclass(frozen=True)
class NotificationPolicy:
    """The rules, maintenance windows and time zone of a project."""

    rules: tuple[RuleRow, ...]
    windows: tuple[MaintenanceRow, ...]
    zone: ZoneInfo


@dataclass(frozen=True)
class NotificationHistory:
    """Notifications of an unacknowledged alert: first and last notification per channel, and
    channels with a queued message."""

    open_since: datetime
    first_told: Mapping[int, datetime]
    last_told: Mapping[int, datetime]
    waiting: Collection[int] = ()
    escalated: Collection[int] = ()


@dataclass(frozen=True)
class Reminder:
    """A reminder that is due because the alert was not acknowledged for `minutes`."""

    channel: int
    escalates: bool
    minutes: int


def select_channels(
    policy: NotificationPolicy, subject: AlertSubject, channels: Iterable[int]
) -> list[int]:
    """The channels to notify of an alert. Without rules, ROLL BACK and urgent alerts go to all
    channels."""
    if not policy.rules:
        return list(channels) if subject.severity == ROLL_BACK or subject.urgent else []
    asked = {rule.channel for rule in policy.rules if rule_matches(rule, subject)}
    return [channel for channel in channels if channel in asked]


def rule_matches(rule: RuleRow, subject: AlertSubject) -> bool:
    """True if the rule matches the alert."""
    places = ((rule.environments, subject.environment), (rule.models, subject.model))
    wanted = ((rule.severities, subject.severity), *(() if subject.whole else places))
    return all(not listed or value in listed for listed, value in wanted)


def find_hold_end(
    policy: NotificationPolicy, subject: AlertSubject, channel: int, now: datetime
) -> datetime | None:
    """Time until which a message to this channel is held, or None if the message may go now.

    A maintenance window holds all messages. Quiet hours hold only messages that no rule of the
    channel lets through."""
    moment = now
    for _ in range(MAX_HOLD_PERIODS):
        later = _window_end(policy.windows, subject, moment) or _quiet_end(
            policy, subject, channel, moment
        )
        if later is None:
            break
        moment = later
    return moment if moment > now else None


def list_due_reminders(
    policy: NotificationPolicy, subject: AlertSubject, standing: NotificationHistory, now: datetime
) -> list[Reminder]:
    """Reminders that are due for an unacknowledged alert, at most one per channel.

    Time during which messages are held does not count: operators cannot acknowledge an alert before
    they are notified of it."""
    found: dict[int, Reminder] = {}
    for rule in (rule for rule in policy.rules if rule_matches(rule, subject)):
        if find_hold_end(policy, subject, rule.channel, now) is not None:
            continue
        first, last = standing.first_told.get(rule.channel), standing.last_told.get(rule.channel)
        to = rule.escalate_to
        if (
            rule.escalate_minutes
            and to is not None
            and first is not None
            and to not in standing.escalated
        ):
            unanswered = now - max(first, standing.open_since)
            if (
                unanswered >= timedelta(minutes=rule.escalate_minutes)
                and find_hold_end(policy, subject, to, now) is None
            ):
                found[to] = Reminder(to, True, rule.escalate_minutes)
        if rule.repeat_minutes and last is not None and rule.channel not in standing.waiting:
            unanswered = now - max(last, standing.open_since)
            if unanswered >= timedelta(minutes=rule.repeat_minutes):
                found.setdefault(rule.channel, Reminder(rule.channel, False, rule.repeat_minutes))
    return list(found.values())


def _window_end(
    windows: Iterable[MaintenanceRow], subject: AlertSubject, moment: datetime
) -> datetime | None:
    ends = [
        window.ends_at
        for window in windows
        if window.starts_at <= moment < window.ends_at
        and window.environment in ("", subject.environment)
        and window.model in ("", subject.model)
    ]
    return max(ends, default=None)


def _quiet_end(
    policy: NotificationPolicy, subject: AlertSubject, channel: int, moment: datetime
) -> datetime | None:
    """Earliest end of the channel's quiet hours, or None if a matching rule lets the message
    through."""
    ends: list[datetime] = []
    for rule in policy.rules:
        if rule.channel == channel and rule_matches(rule, subject):
            passes = rule.roll_back_passes and subject.severity == ROLL_BACK
            end = (
                None
                if passes
                else quiet_end(rule.quiet_from, rule.quiet_until, policy.zone, moment)
            )
            if end is None:
                return None
            ends.append(end)
    return min(ends, default=None)


def quiet_end(
    start: time | None, end: time | None, zone: ZoneInfo, moment: datetime
) -> datetime | None:
    """End of the quiet hours at this moment, or None outside quiet hours."""
    if start is None or end is None or start == end:
        return None
    local = moment.astimezone(zone)
    clock = local.time()
    if not (start <= clock < end if start < end else clock >= start or clock < end):
        return None
    day = local.date() if clock < end else local.date() + timedelta(days=1)
    over = datetime.combine(day, end, tzinfo=zone).astimezone(moment.tzinfo)
    # When clocks go back, one hour occurs twice. Once its first occurrence is over, use the second.
    return (
        over
        if over > moment
        else datetime.combine(day, end, tzinfo=zone).replace(fold=1).astimezone(moment.tzinfo)
    )

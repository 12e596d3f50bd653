"""Decides who is told of an alert and when, from rows and a moment: it knows no database and no
clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from dashboard.vocabulary.severity import ROLL_BACK

MAX_HOLD_PERIODS = 20
"""Windows and quiet hours that follow one another are looked through so many times; what is longer
is looked at again then."""


@dataclass(frozen=True)
class RuleRow:
    """What one rule asks for; an empty tuple asks for any. Quiet hours are in the project's time
    zone and may go over midnight."""

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
    """Maintenance: from when until when, of one environment or model or, where that is empty, of
    any."""

    starts_at: datetime
    ends_at: datetime
    environment: str = ""
    model: str = ""


@dataclass(frozen=True)
class AlertSubject:
    """What a message is about."""

    severity: str
    environment: str
    model: str
    urgent: bool = False
    """Sent without a rule that asks for it, whatever its verdict: ranks that diverged may wait for
    each other without end, and of a fleet that is silent nothing else can be known."""
    whole: bool = False
    """About the whole project: a rule for some environments or models asks for it as well."""


@dataclass(frozen=True)
class NotificationPolicy:
    """Everything a project has said about its messages."""

    rules: tuple[RuleRow, ...]
    windows: tuple[MaintenanceRow, ...]
    zone: ZoneInfo


@dataclass(frozen=True)
class NotificationHistory:
    """How far an alert that nobody has acknowledged got: per channel when it was first and last
    told, and where a message still waits."""

    open_since: datetime
    first_told: Mapping[int, datetime]
    last_told: Mapping[int, datetime]
    waiting: Collection[int] = ()
    escalated: Collection[int] = ()


@dataclass(frozen=True)
class Reminder:
    """A message that is owed because nobody answered for so many minutes."""

    channel: int
    escalates: bool
    minutes: int


def select_channels(
    policy: NotificationPolicy, subject: AlertSubject, channels: Iterable[int]
) -> list[int]:
    """The channels that hear of an alert; without any rule all of them hear of ROLL BACK and of
    what is urgent."""
    if not policy.rules:
        return list(channels) if subject.severity == ROLL_BACK or subject.urgent else []
    asked = {rule.channel for rule in policy.rules if rule_matches(rule, subject)}
    return [channel for channel in channels if channel in asked]


def rule_matches(rule: RuleRow, subject: AlertSubject) -> bool:
    """Whether a rule asks for this."""
    places = ((rule.environments, subject.environment), (rule.models, subject.model))
    wanted = ((rule.severities, subject.severity), *(() if subject.whole else places))
    return all(not listed or value in listed for listed, value in wanted)


def find_hold_end(
    policy: NotificationPolicy, subject: AlertSubject, channel: int, now: datetime
) -> datetime | None:
    """Until when a message to this channel waits, None if it may go now.

    A maintenance window holds back everything; quiet hours only what no rule of the channel lets
    through."""
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
    """What is owed for an alert that nobody has acknowledged, at most one message a channel.

    Time in which a message is held back does not count: nobody can answer what was not said."""
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
    """None as soon as one rule of the channel that asks for this may speak."""
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
    """When the quiet hours that hold at this moment end, None if none do."""
    if start is None or end is None or start == end:
        return None
    local = moment.astimezone(zone)
    clock = local.time()
    if not (start <= clock < end if start < end else clock >= start or clock < end):
        return None
    day = local.date() if clock < end else local.date() + timedelta(days=1)
    over = datetime.combine(day, end, tzinfo=zone).astimezone(moment.tzinfo)
    # An hour that comes twice when the clocks go back: its second time is meant once the first is
    # over.
    return (
        over
        if over > moment
        else datetime.combine(day, end, tzinfo=zone).replace(fold=1).astimezone(moment.tzinfo)
    )

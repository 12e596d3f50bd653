"""Notification policy as tables: quiet hours in the project's own time, maintenance, repeats and
escalation."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest

from dashboard.alerts.notification_policy import (
    AlertSubject,
    MaintenanceRow,
    NotificationHistory,
    NotificationPolicy,
    Reminder,
    RuleRow,
    find_hold_end,
    list_due_reminders,
    quiet_end,
    select_channels,
)

BERLIN = ZoneInfo("Europe/Berlin")
BAD = AlertSubject("roll_back", "prod", "ranker")
WATCH = AlertSubject("watch", "prod", "ranker")
URGENT = AlertSubject("watch", "prod", "ranker", urgent=True)
NIGHT = {"quiet_from": time(22), "quiet_until": time(7)}


def at(text: str) -> datetime:
    """A moment in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def policy(*rules: RuleRow, windows: tuple[MaintenanceRow, ...] = ()) -> NotificationPolicy:
    return NotificationPolicy(rules, windows, BERLIN)


@pytest.mark.parametrize(
    ("rules", "subject", "asked"),
    [
        ((), BAD, [1, 2]),
        ((), WATCH, []),
        ((), URGENT, [1, 2]),
        ((RuleRow(2, severities=("roll_back",)),), URGENT, []),
        ((RuleRow(1),), WATCH, [1]),
        ((RuleRow(1, severities=("roll_back",)), RuleRow(2, severities=("watch",))), WATCH, [2]),
        ((RuleRow(1, environments=("staging",)), RuleRow(1, environments=("prod",))), BAD, [1]),
        ((RuleRow(1, models=("other",)),), BAD, []),
        ((RuleRow(9),), BAD, []),
    ],
)
def test_rules_pick_the_channels(
    rules: tuple[RuleRow, ...], subject: AlertSubject, asked: list[int]
) -> None:
    assert select_channels(policy(*rules), subject, [1, 2]) == asked


@pytest.mark.parametrize(
    ("start", "end", "now", "over"),
    [
        ("22:00", "07:00", "2026-11-20T20:59", None),
        ("22:00", "07:00", "2026-11-20T21:00", "2026-11-21T06:00"),
        ("22:00", "07:00", "2026-11-21T05:59", "2026-11-21T06:00"),
        ("22:00", "07:00", "2026-11-21T06:00", None),
        ("12:00", "13:00", "2026-07-01T10:30", "2026-07-01T11:00"),
        ("07:00", "07:00", "2026-07-01T05:00", None),
        # The clocks skip 02:30 in spring, and pass it twice in autumn.
        ("22:00", "02:30", "2026-03-29T00:50", "2026-03-29T01:30"),
        ("02:00", "02:30", "2026-10-25T00:10", "2026-10-25T00:30"),
        ("02:00", "02:30", "2026-10-25T01:10", "2026-10-25T01:30"),
    ],
)
def test_quiet_hours_follow_local_time(start: str, end: str, now: str, over: str | None) -> None:
    found = quiet_end(time.fromisoformat(start), time.fromisoformat(end), BERLIN, at(now))
    assert found == (at(over) if over else None)


@pytest.mark.parametrize(
    ("rules", "subject", "until"),
    [
        ((RuleRow(1, **NIGHT),), WATCH, "2026-11-21T06:00"),
        ((RuleRow(1, **NIGHT),), BAD, None),
        ((RuleRow(1, **NIGHT, roll_back_passes=False),), BAD, "2026-11-21T06:00"),
        ((RuleRow(1, **NIGHT), RuleRow(1)), WATCH, None),
        (
            (RuleRow(1, **NIGHT), RuleRow(1, quiet_from=time(0), quiet_until=time(5))),
            WATCH,
            "2026-11-21T04:00",
        ),
        ((RuleRow(1, **NIGHT), RuleRow(2)), WATCH, "2026-11-21T06:00"),
        ((RuleRow(2, **NIGHT),), WATCH, None),
        ((), BAD, None),
    ],
)
def test_a_message_waits_until_one_rule_of_its_channel_lets_it_through(
    rules: tuple[RuleRow, ...], subject: AlertSubject, until: str | None
) -> None:
    assert find_hold_end(policy(*rules), subject, 1, at("2026-11-21T00:00")) == (
        at(until) if until else None
    )


@pytest.mark.parametrize(
    ("window", "until"),
    [
        (MaintenanceRow(at("2026-11-21T11:00"), at("2026-11-21T13:00")), "2026-11-21T13:00"),
        (
            MaintenanceRow(
                at("2026-11-21T11:00"), at("2026-11-21T13:00"), environment="prod", model="ranker"
            ),
            "2026-11-21T13:00",
        ),
        (
            MaintenanceRow(at("2026-11-21T11:00"), at("2026-11-21T13:00"), environment="staging"),
            None,
        ),
        (MaintenanceRow(at("2026-11-21T11:00"), at("2026-11-21T13:00"), model="other"), None),
        (MaintenanceRow(at("2026-11-21T11:00"), at("2026-11-21T12:00")), None),
        (MaintenanceRow(at("2026-11-21T12:01"), at("2026-11-21T13:00")), None),
        # The window ends within the quiet hours, which continue.
        (MaintenanceRow(at("2026-11-21T11:00"), at("2026-11-21T22:00")), "2026-11-22T06:00"),
    ],
)
def test_maintenance_holds_roll_back_too(window: MaintenanceRow, until: str | None) -> None:
    rule = RuleRow(1, **NIGHT, roll_back_passes=False)
    found = find_hold_end(policy(rule, windows=(window,)), BAD, 1, at("2026-11-21T12:00"))
    assert found == (at(until) if until else None)


def due(
    rule: RuleRow, now: str, standing: NotificationHistory | None = None, *windows: MaintenanceRow
) -> list[Reminder]:
    opened = at("2026-11-21T12:00")
    return list_due_reminders(
        policy(rule, windows=windows),
        BAD,
        standing or NotificationHistory(opened, {1: opened}, {1: opened}),
        at(now),
    )


def test_an_unacknowledged_alert_is_repeated() -> None:
    rule = RuleRow(1, repeat_minutes=30)
    assert due(rule, "2026-11-21T12:29") == []
    assert due(rule, "2026-11-21T12:30") == [Reminder(1, False, 30)]
    told = NotificationHistory(
        at("2026-11-21T12:00"), {1: at("2026-11-21T12:00")}, {1: at("2026-11-21T12:30")}
    )
    assert due(rule, "2026-11-21T12:59", told) == []


def test_a_waiting_message_is_not_repeated() -> None:
    opened = at("2026-11-21T12:00")
    assert (
        due(
            RuleRow(1, repeat_minutes=30),
            "2026-11-21T15:00",
            NotificationHistory(opened, {1: opened}, {1: opened}, waiting={1}),
        )
        == []
    )


def test_an_unacknowledged_alert_escalates_once() -> None:
    rule, opened = RuleRow(1, escalate_minutes=15, escalate_to=2), at("2026-11-21T12:00")
    assert due(rule, "2026-11-21T12:14") == []
    assert due(rule, "2026-11-21T12:15") == [Reminder(2, True, 15)]
    assert (
        due(
            rule,
            "2026-11-21T18:00",
            NotificationHistory(opened, {1: opened}, {1: opened, 2: opened}, escalated={2}),
        )
        == []
    )


def test_time_without_a_notification_does_not_count() -> None:
    opened, told = at("2026-11-21T02:00"), at("2026-11-21T06:00")
    rule = RuleRow(
        1, **NIGHT, roll_back_passes=False, repeat_minutes=30, escalate_minutes=15, escalate_to=2
    )
    assert due(rule, "2026-11-21T05:00", NotificationHistory(opened, {}, {}, waiting={1})) == []
    after = NotificationHistory(opened, {1: told}, {1: told})
    assert due(rule, "2026-11-21T06:14", after) == []
    assert due(rule, "2026-11-21T06:31", after) == [Reminder(2, True, 15), Reminder(1, False, 30)]


def test_nothing_is_repeated_in_a_maintenance_window() -> None:
    window = MaintenanceRow(at("2026-11-21T12:10"), at("2026-11-21T12:10") + timedelta(hours=1))
    assert due(RuleRow(1, repeat_minutes=30), "2026-11-21T12:40", None, window) == []

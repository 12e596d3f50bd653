"""A rollback is detected while the version still has a few calls, and half an hour later its
recovery is known."""

from __future__ import annotations

import pytest
from compilewatch.wire.sketch import Sketch

from dashboard.alerts.models import Alert, AlertEvent, Channel
from dashboard.alerts.services import alerts_sync, deliveries_send, rollbacks_watch
from dashboard.alerts.traffic_shift import compute_traffic_shares
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Series, Stratum, VersionMinute
from tests.dashboard.alerts.fleet import Fleet, Time
from tests.dashboard.alerts.slack_server import StandIn

pytestmark = pytest.mark.django_db
MINUTE = 60


def calls(deployment: Deployment, per_minute: int, *, minutes: int, p50: float = 0.014) -> None:
    """Stores `per_minute` calls in each of the last minutes, including the current one."""
    stratum, _ = Stratum.objects.get_or_create(
        project=deployment.project, gpu="NVIDIA H200", mode="", runtime="", world_size=1
    )
    now = clock.minute_of(clock.unix())
    series, _ = Series.objects.get_or_create(
        project=deployment.project,
        version=deployment.version,
        environment=deployment.environment,
        stratum=stratum,
        region="forward",
        bucket="8",
    )
    Series.objects.filter(pk=series.pk).update(last_minute=now)
    minutes_store(series, per_minute, p50, range(now - minutes + 1, now + 1))


def minutes_store(series: Series, per_minute: int, p50: float, minutes: range) -> None:
    """Stores minutes like the fold: calls of one duration, with their sketch."""
    sketch = Sketch.of([p50] * per_minute)
    VersionMinute.objects.bulk_create(
        VersionMinute(
            project_id=series.project_id, day=minute // 1440, series_id=series.pk, minute=minute,
            calls=per_minute, latency=sketch.pack(), latency_count=per_minute, latency_sum=per_minute * p50, p50=p50,
        )
        for minute in minutes
    )  # fmt: skip


def run(time: Time, minutes: int, *traffic: tuple[Deployment, int, float]) -> None:
    """Advances the clock by `minutes`, with traffic of these versions."""
    time.go(minutes * MINUTE)
    for deployment, per_minute, p50 in traffic:
        if per_minute:
            calls(deployment, per_minute, minutes=minutes, p50=p50)


@pytest.fixture
def alert(fleet: Fleet, old: Deployment, new: Deployment, time: Time) -> Alert:
    """Open for ten minutes; the new version has half of the calls."""
    calls(old, 100, minutes=60)
    run(time, 20, (old, 50, 0.014), (new, 50, 0.019))
    fleet.say(new, "roll_back", "Roll back 2026.11.3: p50 is 31% slower.", baseline=old)
    alerts_sync()
    run(time, 10, (old, 50, 0.014), (new, 50, 0.019))
    return Alert.objects.get()


def kinds(alert: Alert) -> list[str]:
    return list(
        AlertEvent.objects.filter(alert=alert).order_by("pk").values_list("kind", flat=True)
    )


def test_calls_that_go_back_end_the_alert_within_minutes(
    alert: Alert, fleet: Fleet, old: Deployment, new: Deployment, time: Time
) -> None:
    assert rollbacks_watch() == 0
    run(time, 3, (old, 100, 0.014))
    assert rollbacks_watch() == 0, "three minutes may be late reports"
    run(time, 4, (old, 98, 0.014), (new, 2, 0.019))
    assert rollbacks_watch() == 1
    alert.refresh_from_db()
    assert (alert.state, alert.outcome, new.ended_minute) == ("resolved", "rolled_back", None)
    text = AlertEvent.objects.get(alert=alert, kind="rollback_seen").text
    assert text == "2026.11.3 was rolled back. Traffic returned to 2026.11.2."
    alerts_sync()
    assert Alert.objects.count() == 1, "the current verdict is no news"


def test_the_old_level_recovers(alert: Alert, old: Deployment, time: Time) -> None:
    run(time, 8, (old, 100, 0.014))
    rollbacks_watch()
    run(time, 8, (old, 100, 0.0143))
    assert rollbacks_watch() == 0, "one 5 min bin is no level"
    run(time, 5, (old, 100, 0.0143))
    assert rollbacks_watch() == 1 and rollbacks_watch() == 0
    event = AlertEvent.objects.get(alert=alert, kind="level_back")
    assert event.text == "Recovered: p50 of 2026.11.2 is 14.3\u00a0ms, 14\u00a0ms before."


def test_a_rollback_without_recovery_points_at_the_environment(
    alert: Alert, old: Deployment, time: Time, channel: Channel, slack: StandIn
) -> None:
    run(time, 8, (old, 100, 0.019))
    rollbacks_watch()
    run(time, 29, (old, 100, 0.0182))
    assert rollbacks_watch() == 0
    run(time, 4, (old, 100, 0.0182))
    assert rollbacks_watch() == 1 and rollbacks_watch() == 0
    text = AlertEvent.objects.get(alert=alert, kind="level_not_back").text
    assert text.startswith(
        "Not recovered: p50 of 2026.11.2 is 18.2\u00a0ms after 30 minutes, 14\u00a0ms before 2026.11.3"
    )
    assert "Check the environment" in text


def test_channels_that_got_the_alert_are_notified_that_it_did_not_recover(
    fleet: Fleet, old: Deployment, new: Deployment, time: Time, channel: Channel, slack: StandIn
) -> None:
    calls(old, 100, minutes=60)
    run(time, 20, (old, 50, 0.014), (new, 50, 0.019))
    fleet.say(new, "roll_back", baseline=old)
    alerts_sync()
    deliveries_send()
    run(time, 40, (old, 100, 0.019))
    rollbacks_watch()
    deliveries_send()
    run(time, 40, (old, 100, 0.019))
    rollbacks_watch()
    deliveries_send()
    assert [b"Not recovered" in body for body in slack.bodies] == [False, False, True]


def test_without_calls_nothing_is_claimed(alert: Alert, old: Deployment, time: Time) -> None:
    run(time, 8, (old, 100, 0.014))
    rollbacks_watch()
    run(time, 35)
    rollbacks_watch()
    assert kinds(alert)[-1] in ("level_back", "level_unknown")
    assert "level_not_back" not in kinds(alert)


def test_an_outage_of_all_versions_is_no_rollback(
    alert: Alert, old: Deployment, time: Time
) -> None:
    run(time, 8, (old, 5, 0.014))
    assert rollbacks_watch() == 0
    run(time, 8)
    assert rollbacks_watch() == 0
    assert kinds(alert) == ["opened"]


def test_a_later_version_that_takes_the_calls_is_no_rollback(
    alert: Alert, fleet: Fleet, old: Deployment, time: Time
) -> None:
    newer = fleet.deploy("2026.11.4")
    run(time, 8, (old, 5, 0.014), (newer, 95, 0.014))
    assert rollbacks_watch() == 0


def test_a_version_that_carries_calls_again_and_is_as_bad_gets_another_alert(
    alert: Alert, fleet: Fleet, old: Deployment, new: Deployment, time: Time
) -> None:
    run(time, 8, (old, 100, 0.014))
    rollbacks_watch()
    run(time, 8, (old, 50, 0.014), (new, 50, 0.019))
    rollbacks_watch()
    rollbacks_watch()
    assert list(Alert.objects.order_by("number").values_list("state", flat=True)) == [
        "resolved",
        "open",
    ]


def test_a_version_whose_few_calls_never_ended_gets_another_alert_hours_later(
    alert: Alert, old: Deployment, new: Deployment, time: Time
) -> None:
    run(time, 8, (old, 99, 0.014), (new, 1, 0.019))
    rollbacks_watch()
    run(time, 3 * 60, (old, 99, 0.014), (new, 1, 0.019))
    rollbacks_watch()
    run(time, 8, (old, 50, 0.014), (new, 50, 0.019))
    rollbacks_watch()
    assert list(Alert.objects.order_by("number").values_list("state", flat=True)) == [
        "resolved",
        "open",
    ]


def test_other_environments_do_not_count(
    alert: Alert, fleet: Fleet, old: Deployment, new: Deployment, time: Time
) -> None:
    staging = fleet.deploy("2026.11.2", environment="staging")
    run(time, 8, (old, 50, 0.014), (new, 50, 0.019), (staging, 5000, 0.014))
    assert rollbacks_watch() == 0


@pytest.mark.parametrize(
    ("now", "left"),
    [
        ({1: 100}, True),
        ({1: 96, 2: 4}, True),
        ({1: 90, 2: 10}, False),
        ({1: 50, 2: 50}, False),
        ({2: 100}, False),
    ],
)
def test_the_share_decides(now: dict[int, int], left: bool) -> None:
    calls = {1: {0: 50, 1: now.get(1, 0)}, 2: {0: 50, 1: now.get(2, 0)}}
    shares = compute_traffic_shares(calls, version=2, then=range(1), now=range(1, 2))
    assert shares is not None and shares.left == left and shares.most == (1 if now.get(1) else None)


def test_too_few_calls_decide_nothing() -> None:
    assert (
        compute_traffic_shares(
            {1: {0: 50, 1: 10}, 2: {0: 50}}, version=2, then=range(1), now=range(1, 2)
        )
        is None
    )
    assert (
        compute_traffic_shares({1: {0: 50, 1: 100}}, version=2, then=range(1), now=range(1, 2))
        is None
    )
    assert (
        compute_traffic_shares(
            {1: {0: 50, 1: 200}, 2: {0: 50}}, version=2, then=range(1), now=range(1, 3)
        )
        is None
    )

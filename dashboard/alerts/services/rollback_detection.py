"""Rollback detection: detects a rollback in progress, and whether it restored the earlier level."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from functools import partial

from django.db.models import Exists, OuterRef

from dashboard.alerts.evidence_lines import select_strongest_evidence
from dashboard.alerts.models import (
    Alert,
    AlertCause,
    AlertEvent,
    AlertOutcome,
    AlertState,
    DeliveryKind,
    EventKind,
)
from dashboard.alerts.recovery_check import RecoveryResult, check_recovery
from dashboard.alerts.services.enqueue import enqueue_messages
from dashboard.alerts.services.transitions import alert_close, alert_open, event_add, lock_project
from dashboard.alerts.traffic_shift import RECENT_MINUTES, TrafficShares, compute_traffic_shares
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.models import ModelVersion
from dashboard.fleet.selectors.judge_inputs.judge_minutes import closed_minute
from dashboard.fleet.selectors.versions.quantiles import P50Level, read_p50_levels
from dashboard.fleet.selectors.versions.traffic import count_calls_by_minute
from dashboard.fleet.selectors.versions.version_series import Span
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.vocabulary.numbers import below, duration

logger = logging.getLogger(__name__)

SHARE_WINDOW_MINUTES = 30
"""Minutes before and after the opening of an alert that determine the version's share of calls."""

BIN_MINUTES = 5
RECOVERY_TIMEOUT_MINUTES = 30
"""Minutes after a rollback within which the earlier level must return."""

RECOVERY_KINDS = (EventKind.LEVEL_BACK, EventKind.LEVEL_NOT_BACK, EventKind.LEVEL_UNKNOWN)


def rollbacks_watch() -> int:
    """Checks ROLL BACK alerts of live versions, and rollbacks without a recovery result; returns
    the number of changes."""
    minute = closed_minute(clock.unix())
    rows = Alert.objects.select_related(
        "deployment__version", "deployment__model", "project", "verdict__baseline__version"
    )
    live = rows.filter(worst=VerdictKind.ROLL_BACK, deployment__ended_minute=None)
    since = clock.now() - timedelta(minutes=2 * RECOVERY_TIMEOUT_MINUTES)
    rolled_back = rows.filter(outcome=AlertOutcome.ROLLED_BACK)
    newer = Alert.objects.filter(
        deployment=OuterRef("deployment"),
        cause=AlertCause.REGRESSION,
        number__gt=OuterRef("number"),
    )
    may_return = rolled_back.filter(~Exists(newer), deployment__ended_minute=None)
    gone = rolled_back.filter(resolved_at__gte=since)
    count, errors = 0, []
    looks: list[tuple[Alert, Callable[[], bool]]] = []
    looks += [
        (alert, partial(_watch_rollback, alert, minute))
        for alert in live.exclude(state=AlertState.RESOLVED)
    ]
    looks += [(alert, partial(_watch_return, alert, minute)) for alert in may_return]
    looks += [
        (alert, partial(_watch_recovery, alert, minute))
        for alert in gone.exclude(events__kind__in=RECOVERY_KINDS)
    ]
    for alert, look in looks:
        try:
            count += look()
        except Exception as error:
            logger.exception(
                "the rollback of A-%s of %s could not be checked", alert.number, alert.project
            )
            errors.append(error)
    if errors:
        raise ExceptionGroup("rollbacks that could not be checked", errors)
    return count


def _shares(alert: Alert, minute: int) -> TrafficShares | None:
    """The version's share of calls when the alert opened, and in the last closed minutes."""
    deployment, opened = alert.deployment, clock.minute_of(alert.opened_at.timestamp())
    recent = Span(minute + 1 - RECENT_MINUTES, minute + 1)
    then = Span(
        max(deployment.started_minute, opened - SHARE_WINDOW_MINUTES),
        min(opened + SHARE_WINDOW_MINUTES, recent.first),
    )
    if then.first >= then.last:
        return None
    calls = count_calls_by_minute(deployment=deployment, spans=[then, recent])
    return compute_traffic_shares(
        calls, version=deployment.version_id, then=range(*then), now=range(*recent)
    )


def _watch_rollback(alert: Alert, minute: int) -> bool:
    """Closes the alert if an earlier version took over the version's calls. If a later version took
    them, the end of the deployment closes the alert."""
    shares, version = _shares(alert, minute), alert.deployment.version
    if shares is None or not shares.left or shares.most is None:
        return False
    to = ModelVersion.objects.get(pk=shares.most)
    if (to.first_seen_at, to.pk) >= (version.first_seen_at, version.pk) or to.is_other:
        return False
    with write_transaction():
        lock_project(alert.project_id)
        held = _reload_alert(alert)
        if held.state == AlertState.RESOLVED:
            return False
        text = f"Traffic returned to {to.name}."
        event_add(
            alert=held, kind=EventKind.ROLLBACK_SEEN, text=f"{version.name} was rolled back. {text}"
        )
        alert_close(alert=held, outcome=AlertOutcome.ROLLED_BACK, text=text)
    return True


def _watch_return(alert: Alert, minute: int) -> bool:
    """Opens another alert if the version has calls again and its verdict is still ROLL BACK; the
    unchanged verdict would open none."""
    shares = _shares(alert, minute)
    verdict = Verdict.objects.filter(deployment=alert.deployment, current=True).first()
    if (
        shares is None
        or not shares.back
        or verdict is None
        or verdict.kind != VerdictKind.ROLL_BACK
    ):
        return False
    with write_transaction():
        lock_project(alert.project_id)
        if Alert.objects.filter(
            deployment=alert.deployment, cause=AlertCause.REGRESSION, number__gt=alert.number
        ).exists():
            return False
        alert_open(verdict=verdict)
    return True


def _watch_recovery(alert: Alert, minute: int) -> bool:
    """Reports once that the old version recovered, or after half an hour that it did not."""
    seen = alert.events.filter(kind=EventKind.ROLLBACK_SEEN).order_by("pk").first()
    if seen is None:
        return False
    said = _assess_recovery(alert, seen, minute)
    if said is None:
        return False
    kind, text = said
    with write_transaction():
        lock_project(alert.project_id)
        held = _reload_alert(alert)
        if held.events.filter(kind__in=RECOVERY_KINDS).exists():
            return False
        event = event_add(alert=held, kind=kind, text=text)
        if kind == EventKind.LEVEL_NOT_BACK:
            enqueue_messages(
                alert=held, event=event, kind=DeliveryKind.RESOLVED, verdict=held.verdict, news=text
            )
    return True


def _assess_recovery(alert: Alert, seen: AlertEvent, minute: int) -> tuple[EventKind, str] | None:
    """Kind and text of the recovery event; None while it is too early."""
    deployment, rolled = alert.deployment, clock.minute_of(seen.at.timestamp())
    late = minute >= rolled + RECOVERY_TIMEOUT_MINUTES
    shares = _shares(alert, minute)
    old = (
        ModelVersion.objects.filter(pk=shares.most).first()
        if shares and shares.most
        else _baseline(alert)
    )
    if old is None:
        return (
            (
                EventKind.LEVEL_UNKNOWN,
                "Recovery unknown: no version had calls that could be compared.",
            )
            if late
            else None
        )
    before = _p50(
        alert, old, Span(deployment.started_minute - 12 * BIN_MINUTES, deployment.started_minute)
    )
    after = _p50(
        alert, old, Span(rolled + 1, min(minute + 1, rolled + 1 + RECOVERY_TIMEOUT_MINUTES))
    )
    found = check_recovery(_exact(before), _exact(after), late=late)
    return (
        _words(found, old.name, deployment.version.name, _bound_words(before, after))
        if late or found.answer == "back"
        else None
    )


def _words(found: RecoveryResult, old: str, new: str, bound: str) -> tuple[EventKind, str]:
    """The event for a recovery result; `bound` describes a p50 within an engine's first bucket."""
    if found.before is None or found.after is None:
        when = f"before {new} was deployed" if found.before is None else "since"
        reason = bound or f"p50 of {old} covers too few minutes {when}"
        return EventKind.LEVEL_UNKNOWN, f"Recovery unknown: {reason}."
    after, before = duration(found.after), duration(found.before)
    if found.answer == "back":
        return EventKind.LEVEL_BACK, f"Recovered: p50 of {old} is {after}, {before} before."
    if found.answer == "unknown":
        text = (
            f"Recovery unknown: p50 of {old} is {after} after {RECOVERY_TIMEOUT_MINUTES} minutes, "
            f"{before} before {new} was deployed, and varies too much to compare."
        )
        return EventKind.LEVEL_UNKNOWN, text
    text = (
        f"Not recovered: p50 of {old} is {after} after {RECOVERY_TIMEOUT_MINUTES} minutes, "
        f"{before} before {new} was deployed. Check the environment: hosts, drivers, other "
        "workloads."
    )
    return EventKind.LEVEL_NOT_BACK, text


def _p50(alert: Alert, version: ModelVersion, span: Span) -> list[tuple[int, P50Level]]:
    """Number and p50 of the version's complete 5 min bins in the span, in the region of the alert,
    oldest first."""
    whole = (span.last - span.first) // BIN_MINUTES
    if whole < 1:
        return []
    found = read_p50_levels(
        project_id=alert.project_id,
        version_ids=[version.pk],
        environment=alert.deployment.environment,
        window=TimeBins(span.first, span.first + whole * BIN_MINUTES, BIN_MINUTES),
        region=_region(alert),
    )
    return sorted(found.get(version.pk, {}).items())


def _region(alert: Alert) -> str:
    """The region that drives the verdict; empty if a process or no single region does."""
    lines = select_strongest_evidence(alert.verdict.evidence) if alert.verdict else []
    return next((line["region"] for line in lines if line["drives"] and line["region"]), "")


def _exact(bins: list[tuple[int, P50Level]]) -> list[tuple[int, float]]:
    """Bins with an exact p50; a p50 with only a bound cannot be compared."""
    return [(place, level.value) for place, level in bins if level.value is not None]


def _bound_words(before: list[tuple[int, P50Level]], after: list[tuple[int, P50Level]]) -> str:
    """A p50 within the engine's first bucket, as its bound and mean; empty otherwise."""
    known = [
        level.known for bins in (before, after) for _, level in bins[-1:] if level.value is None
    ]
    said = [below(one.bound, one.mean) for one in known if one]
    return f"p50 is only known as {' before, and now as '.join(said)}" if said else ""


def _baseline(alert: Alert) -> ModelVersion | None:
    return alert.verdict.baseline.version if alert.verdict and alert.verdict.baseline else None


def _reload_alert(alert: Alert) -> Alert:
    related = ("deployment__model", "deployment__version", "project", "verdict")
    return Alert.objects.select_related(*related).get(pk=alert.pk)

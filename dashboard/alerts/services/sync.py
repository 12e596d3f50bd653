"""Updates alerts from verdicts; idempotent and safe with concurrent workers."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from django.db.models import Exists, OuterRef, Q

from dashboard.alerts.evidence_lines import list_driving_metrics
from dashboard.alerts.models import Alert, AlertCause, AlertOutcome, AlertState, EventKind
from dashboard.alerts.services.silence import has_silence_alert
from dashboard.alerts.services.transitions import (
    alert_close,
    alert_open,
    alert_reopen,
    alert_worsen,
    build_verdict_title,
    event_add,
    lock_project,
)
from dashboard.common import clock
from dashboard.common.write_lock import write_transaction
from dashboard.fleet.models import Deployment
from dashboard.regressions.evidence_reader import list_urgent_facts
from dashboard.regressions.models import Verdict, VerdictKind
from dashboard.vocabulary.severity import ALERTING_VERDICTS, rank_severity

logger = logging.getLogger(__name__)


def alerts_sync() -> int:
    """Updates every alert from the current verdicts; returns the number of deployments with
    changes. A failed deployment does not block the others."""
    count, errors = 0, []
    for deployment_id, project_id in sorted(set(_deployments_with_news())):
        try:
            with write_transaction():
                lock_project(project_id)
                count += _deployment_follow(deployment_id)
        except Exception as error:
            logger.exception("the alert of deployment %s could not be updated", deployment_id)
            errors.append(error)
    if errors:
        raise ExceptionGroup("alerts that could not be updated", errors)
    return count


def _deployments_with_news() -> Iterator[tuple[int, int]]:
    unresolved = Alert.objects.filter(cause=AlertCause.REGRESSION).exclude(
        state=AlertState.RESOLVED
    )
    bad = Verdict.objects.filter(
        current=True, kind__in=ALERTING_VERDICTS, deployment__ended_minute=None
    )
    for verdict in bad.exclude(Exists(unresolved.filter(deployment=OuterRef("deployment")))):
        if _should_open(verdict):
            yield verdict.deployment_id, verdict.project_id
    newer = Verdict.objects.filter(deployment=OuterRef("deployment"), current=True).exclude(
        pk=OuterRef("verdict")
    )
    stale = unresolved.filter(
        Exists(newer)
        | Q(verdict=None)
        | Q(deployment__ended_minute__isnull=False)
        | Q(state=AlertState.SNOOZED, snoozed_until__lte=clock.now())
    )
    yield from stale.values_list("deployment_id", "project_id")


def _should_open(verdict: Verdict) -> bool:
    """True if a bad verdict opens an alert. After a closed alert, it must be worse, or a better
    verdict must lie in between."""
    last = (
        Alert.objects.filter(deployment_id=verdict.deployment_id, cause=AlertCause.REGRESSION)
        .order_by("-number")
        .first()
    )
    if last is None:
        return True
    if rank_severity(verdict.kind) > rank_severity(last.worst) or _urgent_news(
        verdict, last.verdict
    ):
        return True
    if last.outcome in (AlertOutcome.DISMISSED, AlertOutcome.ACCEPTED):
        return False
    since = Verdict.objects.filter(
        deployment_id=verdict.deployment_id, pk__gt=last.verdict_id or 0, pk__lt=verdict.pk
    )
    calm_between = any(rank_severity(kind) == 0 for kind in since.values_list("kind", flat=True))
    calm_before = last.verdict is not None and rank_severity(last.verdict.kind) == 0
    return calm_between or calm_before


def _urgent_news(verdict: Verdict, before: Verdict | None) -> bool:
    """True if the verdict has a wrong result or a rank divergence that the earlier verdict did not
    have; earlier answers do not cover it."""
    return bool(
        list_urgent_facts(verdict.evidence) - list_urgent_facts(before.evidence if before else None)
    )


def _deployment_follow(deployment_id: int) -> bool:
    """Reads everything again under the lock, when no other worker can change this project's
    alerts."""
    deployment = Deployment.objects.select_related("model", "version").get(pk=deployment_id)
    current = Verdict.objects.filter(deployment=deployment, current=True).first()
    alert = (
        Alert.objects.filter(deployment=deployment, cause=AlertCause.REGRESSION)
        .exclude(state=AlertState.RESOLVED)
        .first()
    )
    if alert is None:
        if (
            current is None
            or not rank_severity(current.kind)
            or deployment.ended_minute is not None
            or not _should_open(current)
        ):
            return False
        alert_open(verdict=current)
        return True
    before = (alert.state, alert.verdict_id)
    for verdict in _list_unread_verdicts(alert, current):
        _verdict_follow(alert, verdict)
        if alert.state == AlertState.RESOLVED:
            return True
    if deployment.ended_minute is not None:
        _close_ended(alert, deployment)
    elif (
        alert.state == AlertState.SNOOZED
        and alert.snoozed_until
        and alert.snoozed_until <= clock.now()
    ):
        alert_reopen(alert)
    return (alert.state, alert.verdict_id) != before


def _list_unread_verdicts(alert: Alert, current: Verdict | None) -> list[Verdict]:
    """Verdicts since the newest one in the timeline; only the current verdict if the newest one is
    unknown."""
    if alert.verdict_id is None:
        return [current] if current else []
    return list(
        Verdict.objects.filter(deployment_id=alert.deployment_id, pk__gt=alert.verdict_id).order_by(
            "pk"
        )
    )


def _verdict_follow(alert: Alert, verdict: Verdict) -> None:
    last = alert.verdict
    alert.verdict = verdict
    if verdict.kind == VerdictKind.HEALTHY:
        alert_close(
            alert=alert, outcome=AlertOutcome.RECOVERED, text=verdict.sentence, verdict=verdict
        )
        return
    urgent = _urgent_news(verdict, last)
    if rank_severity(verdict.kind) > rank_severity(alert.severity) or urgent:
        alert_worsen(alert=alert, verdict=verdict, urgent=urgent)
        return
    if rank_severity(verdict.kind):
        alert.severity, alert.title = verdict.kind, build_verdict_title(verdict)
    alert.save()
    if last is None or verdict.kind != last.kind:
        event_add(alert=alert, kind=EventKind.VERDICT, text=verdict.sentence, verdict=verdict)
    elif list_driving_metrics(verdict.evidence) - list_driving_metrics(last.evidence):
        event_add(alert=alert, kind=EventKind.EVIDENCE, text=verdict.sentence, verdict=verdict)


def _close_ended(alert: Alert, deployment: Deployment) -> None:
    """Closes the alert of an ended deployment, and records where its traffic went.

    While an alert reports its instances as silent, their traffic is unknown, so the alert stays
    open."""
    version = deployment.version
    here = Deployment.objects.filter(
        model=deployment.model, environment=deployment.environment, ended_minute=None
    )
    live = here.exclude(version=version)
    others = live.select_related("version").order_by("-version__first_seen_at", "-version_id")
    earlier = others.filter(
        Q(version__first_seen_at__lt=version.first_seen_at)
        | Q(version__first_seen_at=version.first_seen_at, version_id__lt=version.pk)
    ).first()
    later = others.first()
    if earlier is not None:
        text = f"Traffic returned to {earlier.version.name}."
        event_add(
            alert=alert,
            kind=EventKind.ROLLBACK_SEEN,
            text=f"{version.name} was rolled back. {text}",
        )
        alert_close(alert=alert, outcome=AlertOutcome.ROLLED_BACK, text=text)
    elif later is not None:
        alert_close(
            alert=alert,
            outcome=AlertOutcome.REPLACED,
            text=f"{later.version.name} replaced {version.name}.",
        )
    elif here.exists():
        text = f"{version.name} reports again after a gap and is evaluated from the start."
        alert_close(alert=alert, outcome=AlertOutcome.STOPPED, text=text)
    elif not has_silence_alert(deployment):
        alert_close(
            alert=alert,
            outcome=AlertOutcome.STOPPED,
            text=f"{version.name} receives no traffic.",
        )

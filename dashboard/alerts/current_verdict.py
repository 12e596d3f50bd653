"""Current verdict of a deployment: the newest verdict, or the last bad one while an alert is open.
All pages use this module."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from django.db.models import Case, F, Max, OuterRef, Q, QuerySet, Subquery, When
from django.db.models.functions import Coalesce

from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.common import clock
from dashboard.regressions.evidence_reader import find_rank_divergence
from dashboard.regressions.models import RetainedVerdict, Verdict
from dashboard.vocabulary.severity import ALERTING_VERDICTS, rank_severity

MAX_VERDICTS_SEARCHED = 24
"""Maximum number of verdicts of an alert that are searched for a rank divergence."""


def annotate_open_alert(rows: QuerySet[Verdict]) -> QuerySet[Verdict]:
    """Annotates verdicts with the open alert that keeps the deployment at WATCH or worse, and with
    the kind that results from it. A model's silence alert applies to each of its live versions."""
    rows = rows.annotate(
        live_model=Case(When(deployment__ended_minute=None, then=F("deployment__model_id")))
    )
    here = build_verdict_alerts_subquery(deployment="deployment", live_model="live_model")
    held = Coalesce(Subquery(here.values("severity")[:1]), F("kind"))
    return rows.annotate(
        open_alert=Subquery(here.values("pk")[:1]),
        kind_standing=Case(When(kind__in=ALERTING_VERDICTS, then=F("kind")), default=held),
    )


def resolve_current_verdicts(rows: QuerySet[Verdict]) -> list[Verdict]:
    """Current verdicts in the given order. While an alert is open, its last bad verdict replaces a
    better one. At most two more queries."""
    return apply_open_alerts(list(annotate_open_alert(rows)))


def apply_open_alerts(current: Sequence[Verdict]) -> list[Verdict]:
    """Does the same for verdicts that `annotate_open_alert` annotated."""
    outlived = {
        row.deployment_id: pk
        for row in current
        if (pk := getattr(row, "open_alert", None)) is not None and not rank_severity(row.kind)
    }
    if not outlived:
        return list(current)
    found = Alert.objects.defer("ran_on").in_bulk(set(outlived.values()))
    alerts = {deployment: found[pk] for deployment, pk in outlived.items() if pk in found}
    bad = _last_bad(
        one.deployment_id for one in alerts.values() if one.cause == AlertCause.REGRESSION
    )
    return [_replace_verdict(row, alerts, bad) for row in current]


def resolve_current_verdict(*, deployment_id: int) -> Verdict | None:
    """The current verdict of one deployment; None if it was never evaluated."""
    rows = Verdict.objects.filter(deployment_id=deployment_id, current=True).select_related(
        "deployment", "baseline__version"
    )
    return next(iter(resolve_current_verdicts(rows)), None)


def resolve_pair_verdict(verdict: Verdict | None) -> Verdict | None:
    """The verdict on two versions. While an alert is open, the last bad verdict on the same two
    versions replaces a better one."""
    stands = (
        resolve_current_verdict(deployment_id=verdict.deployment_id)
        if verdict is not None and verdict.current
        else None
    )
    return (
        stands
        if verdict is not None and stands is not None and stands.baseline_id == verdict.baseline_id
        else verdict
    )


def find_divergence_alert(*, deployment_id: int) -> Alert | None:
    """The open alert of a deployment, if one of its verdicts contains a rank divergence; two
    queries."""
    rows = Alert.objects.filter(deployment_id=deployment_id, cause=AlertCause.REGRESSION).exclude(
        state=AlertState.RESOLVED
    )
    alert = rows.defer("ran_on").first()
    told = (
        Verdict.objects.filter(pk__in=alert.events.values("verdict")).order_by("-pk")[
            :MAX_VERDICTS_SEARCHED
        ]
        if alert is not None
        else ()
    )
    return alert if find_divergence_verdict(told) is not None else None


def find_divergence_verdict(verdicts: Iterable[Verdict | None]) -> Verdict | None:
    """The first verdict that contains a rank divergence."""
    return next(
        (
            verdict
            for verdict in verdicts
            if verdict is not None and find_rank_divergence(verdict.evidence)
        ),
        None,
    )


def query_verdict_alerts() -> QuerySet[Alert]:
    """Unresolved alerts that keep a deployment at WATCH or worse; regression alerts come before
    silence alerts. Fleet silence is excluded because it concerns no single model."""
    unresolved = Alert.objects.exclude(state=AlertState.RESOLVED).exclude(
        cause=AlertCause.FLEET_SILENCE
    )
    return unresolved.order_by("cause", "-number")


def build_verdict_alerts_subquery(*, deployment: str, live_model: str) -> QuerySet[Alert]:
    """Subquery: alerts of the deployment in the named field of the outer row. `live_model` is NULL
    for an ended deployment."""
    silence = Q(cause=AlertCause.SILENCE, deployment__model_id=OuterRef(live_model))
    return query_verdict_alerts().filter(
        Q(cause=AlertCause.REGRESSION, deployment=OuterRef(deployment)) | silence
    )


def _last_bad(deployments: Iterable[int]) -> dict[int, Verdict]:
    newest = (
        Verdict.objects.filter(deployment__in=list(deployments), kind__in=ALERTING_VERDICTS)
        .order_by()
        .values("deployment")
    )
    rows = Verdict.objects.filter(pk__in=newest.annotate(newest=Max("pk")).values("newest"))
    related = rows.select_related("deployment__version", "deployment__model", "baseline__version")
    return {row.deployment_id: row for row in related}


def _replace_verdict(
    row: Verdict, alerts: Mapping[int, Alert], bad: Mapping[int, Verdict]
) -> Verdict:
    alert = alerts.get(row.deployment_id)
    if alert is None or rank_severity(row.kind):
        return row
    found = bad.get(row.deployment_id) or _build_alert_verdict(row, alert)
    found.outlived = RetainedVerdict(
        alert.number,
        clock.at_minute(found.minute),
        row.kind,
        row.sentence,
        alert.cause != AlertCause.REGRESSION,
    )
    return found


def _build_alert_verdict(row: Verdict, alert: Alert) -> Verdict:
    """A verdict built from the alert, for alerts without a stored verdict: instances stopped
    reporting, or the verdict was deleted."""
    return Verdict(
        pk=row.pk,
        project_id=row.project_id,
        deployment=row.deployment,
        baseline=row.baseline,
        kind=alert.severity,
        previous_kind=row.kind,
        sentence=f"{alert.title}." if not alert.title.endswith(".") else alert.title,
        cause="",
        evidence={},
        minute=clock.minute_of(alert.opened_at.timestamp()),
        since_minute=clock.minute_of(alert.opened_at.timestamp()),
        created_at=alert.opened_at,
        current=True,
    )

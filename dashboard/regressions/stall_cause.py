"""Stall cause: the compilation that calls of a version wait for: one that repeats or one that
fails."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Count, QuerySet

from dashboard.common.clock import at_minute
from dashboard.fleet.models import CompileEvent, Deployment, FindingVersion
from dashboard.regressions.judge.certain_facts import CertainFact

STALLED = ("stalled", "stalled_time")
RECENT_MINUTES = 60
MAX_REASON_CHARS = 160
RECOMPILE_PHRASES = {
    "reset": " after each torch._dynamo.reset()",
    "new code object": " as a new code object each time",
    "failed again": " because it failed before",
}
FAILED = ("raised", "suppressed")


def has_stalls(facts: Iterable[CertainFact]) -> bool:
    """True if stalled calls are among these facts."""
    return any(fact.kind == "stalled_calls" for fact in facts)


def find_stall_cause(*, deployment: Deployment, now_minute: int) -> str:
    """The most frequent compilation of the last hour, with its reason, or else the newest known
    failure; empty if unknown."""
    since = now_minute - RECENT_MINUTES
    events = CompileEvent.objects.filter(
        project_id=deployment.project_id,
        day__gte=since // 1440,
        day__lte=now_minute // 1440,
        version_id=deployment.version_id,
        environment=deployment.environment,
        at__gte=at_minute(since),
    ).exclude(kind__in=("autotune", "backward", "cuda_graph"))
    events = events.exclude(kind="first", outcome="ok")
    groups = (
        events.values_list("frame", "outcome", "reason_kind", "reason")
        .annotate(n=Count("number"))
        .order_by("-n", "frame", "reason")
    )
    found = groups.first()
    if found is None:
        return _failure(deployment)
    frame, outcome, reason_kind, reason, count = found
    if outcome in FAILED:
        return _make_phrase(f"`{frame}` fails to compile", "error", _error(deployment) or reason)
    if count < 2 and not reason:
        return ""
    again = RECOMPILE_PHRASES.get(reason_kind) or _describe_repeats(
        events.filter(frame=frame, kind="recompile")
    )
    return _make_phrase(
        f"`{frame}` recompiles{again}",
        "guard",
        "" if reason_kind in RECOMPILE_PHRASES else reason,
    )


def _describe_repeats(recompiles: QuerySet[CompileEvent]) -> str:
    """Returns " repeatedly" if some process compiled it more than once, else an empty text."""
    counted = recompiles.aggregate(n=Count("number"), processes=Count("instance_id", distinct=True))
    return " repeatedly" if counted["n"] > counted["processes"] else ""


def _failure(deployment: Deployment) -> str:
    error = _error(deployment)
    return _make_phrase("a region fails to compile", "error", error) if error else ""


def _error(deployment: Deployment) -> str:
    """The text of the newest compilation failure."""
    rows = FindingVersion.objects.filter(
        version_id=deployment.version_id,
        environment=deployment.environment,
        finding__kind="compile_error",
    ).order_by("-last_seen_at", "-finding_id")
    return rows.values_list("finding__text", flat=True).first() or ""


def _make_phrase(what: str, name: str, why: str) -> str:
    return what + (f" ({name}: {why.splitlines()[0][:MAX_REASON_CHARS]})" if why.strip() else "")

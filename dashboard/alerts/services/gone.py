"""Whether what an alert told of is gone, and on what evidence: calls that were made since without it. Absence alone is no evidence."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Q

from dashboard.alerts.evidence import NAMES, driving_metrics
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.fold.finding_life import ENOUGH
from dashboard.fleet.models import Deployment, Instance
from dashboard.fleet.selectors.instance_states import blind_to
from dashboard.fleet.selectors.traffic import calls_by_minute
from dashboard.fleet.selectors.trends import Span
from dashboard.regressions.judge.facts import fact_words
from dashboard.regressions.known import facts_of
from dashboard.regressions.models import Verdict, VerdictKind

TOO_EARLY = "too early to tell"
COUNTED = ("recompiles", "eager")
"""Metrics that are findings of their own: how often something happened, not how long it took."""
BY_PASSING = ("parity", "shadow_parity", "non_finite")
"""What is gone only where the same was tried again and came out right."""
LONGEST = 1440
"""Minutes of another version that are counted: one that ran for weeks proves no more."""
Key = tuple[str, str]


@dataclass(frozen=True)
class Told:
    """One thing that the alert told of, and the last minute of data in which it was so."""

    key: Key
    words: str
    last: int


@dataclass(frozen=True)
class Since:
    """What a deployment did from a minute on: minutes with reports, calls, and the instances that can tell."""

    first: int
    minutes: int
    calls: int
    instances: int

    @property
    def words(self) -> str:
        """As evidence in a sentence."""
        lasted = f"{self.minutes} min" if self.minutes < 120 else f"{self.minutes / 60:.3g} h"
        calls = f"{self.calls:,} call{'' if self.calls == 1 else 's'}"
        return f"{calls} on {self.instances} instance{'' if self.instances == 1 else 's'} in {lasted} of reports without it"


def gone_words(*, alert: Alert, by: Deployment) -> str:
    """One sentence about what the alert told of, by what `by` does since: the version itself, or the one that took its place. Empty
    where the alert told of nothing that can be gone, only of levels, which the verdict speaks of."""
    told = things_told(alert)
    if not told:
        return ""
    itself = by.pk == alert.deployment_id
    first = max(one.last for one in told) + 1 if itself else max(by.started_minute, clock.minute_of(clock.unix()) - LONGEST)
    since, still = _since(by, first), _still(by, told)
    shown = [one for one in told if one.key in still]
    if shown:
        return f"{by.version.name} {'still shows' if itself else 'shows the same'}: {_listed(shown)}."
    if not since.instances:
        return f"Whether {by.version.name} is free of it cannot be seen: none of its instances tells what compiles ({_listed(told)})."
    sure = _sure(by, told)
    if since.minutes < ENOUGH or not since.calls or not sure:
        return f"Whether it is gone with {by.version.name} is {TOO_EARLY}: {since.words} so far ({_listed(told)})."
    seen = f"last seen {clock.at_minute(max(one.last for one in told)):%Y-%m-%d %H:%M} UTC"
    return f"Gone, {seen}: {_listed(told)}. The evidence: {by.version.name} has {since.words} since {clock.at_minute(first):%H:%M} UTC."


def with_gone(said: str, *, alert: Alert, by: Deployment) -> str:
    """How an alert ended, and whether what it told of is gone."""
    return f"{said} {gone_words(alert=alert, by=by)}".strip()


def places_taken(deployment: Deployment) -> tuple[Deployment | None, Deployment | None]:
    """What runs now in place of a version: an earlier one that its traffic returned to, and the newest of all."""
    version = deployment.version
    live = Deployment.objects.filter(model=deployment.model, environment=deployment.environment, ended_minute=None).exclude(version=version)
    others = live.select_related("version").order_by("-version__first_seen_at", "-version_id")
    earlier = others.filter(
        Q(version__first_seen_at__lt=version.first_seen_at) | Q(version__first_seen_at=version.first_seen_at, version_id__lt=version.pk)
    )
    return earlier.first(), others.first()


def things_told(alert: Alert) -> list[Told]:
    """Every certain fact and counted metric that a verdict of this alert rested on, each with the last minute of it."""
    found: dict[Key, Told] = {}
    rows = Verdict.objects.filter(deployment_id=alert.deployment_id, kind__in=(VerdictKind.WATCH, VerdictKind.ROLL_BACK))
    opened = alert.events.exclude(verdict=None).order_by("pk").values_list("verdict_id", flat=True).first()
    for verdict in rows.filter(pk__gte=opened or 0).order_by("pk"):
        for key, words in _things(verdict.evidence).items():
            found[key] = Told(key, words, verdict.minute)
    return list(found.values())


def _things(evidence: Any) -> dict[Key, str]:
    stored = evidence.get("facts") if isinstance(evidence, Mapping) else None
    facts = [one for one in stored if isinstance(one, Mapping)] if isinstance(stored, list) else []
    news = [one for one in facts if one.get("severity") in ("watch", "roll_back")]
    found = {(str(one.get("kind")), str(one.get("about"))): fact_words(one) for one in news}
    for metric, region in sorted(driving_metrics(evidence)):
        if metric in COUNTED:
            found[metric, region] = f"{NAMES[metric].lower()}{f' of `{region}`' if region else ''}"
    return found


def _still(by: Deployment, told: list[Told]) -> set[Key]:
    """Which of them the deployment shows now."""
    now = clock.minute_of(clock.unix())
    verdict = _current(by)
    facts = {(str(one.kind), one.about) for one in facts_of(deployment=by, arm="candidate", now_minute=now) if not one.passed}
    return {one.key for one in told} & (facts | (driving_metrics(verdict.evidence) if verdict else set()))


def _sure(by: Deployment, told: list[Told]) -> bool:
    """Whether the absence of each says something: results were tried again, and counts were judged."""
    now = clock.minute_of(clock.unix())
    passed = {(str(one.kind), one.about) for one in facts_of(deployment=by, arm="candidate", now_minute=now) if one.passed}
    verdict = _current(by)
    judged = verdict is not None and verdict.kind != VerdictKind.NOT_ENOUGH_DATA
    return all(one.key in passed if one.key[0] in BY_PASSING else judged or one.key[0] not in COUNTED for one in told)


def _current(by: Deployment) -> Verdict | None:
    return Verdict.objects.filter(deployment=by, current=True).first()


def _since(by: Deployment, first: int) -> Since:
    span = Span(first, clock.minute_of(clock.unix()) + 1)
    minutes = calls_by_minute(deployment=by, spans=[span])[by.version_id] if span.last > span.first else {}
    rows = Instance.objects.filter(version_id=by.version_id, environment=by.environment, last_minute__gte=first)
    able = [one for one in rows.only("capabilities") if not blind_to(one)]
    return Since(first, len(minutes), sum(minutes.values()), len(able))


def _listed(told: list[Told]) -> str:
    more = f" and {len(told) - 2} more" if len(told) > 2 else ""
    return "; ".join(one.words for one in told[:2]) + more

"""What a fold says of models, versions, series and deployments: when they were seen, and what changed for the judge."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import F, Q
from django.db.models.functions import Greatest, Least

from dashboard.fleet.fold.facts import Facts, Span
from dashboard.fleet.fold.keys import VersionKey, series_of
from dashboard.fleet.fold.presence import GONE_AFTER, spans_join
from dashboard.fleet.models import Deployment, ModelVersion, Series, WatchedModel
from dashboard.fleet.stored.dimensions import Ids, moment


def versions_store(facts: Facts, ids: Ids, *, late_before: int) -> None:
    """Raises the revision of each version; minutes before `late_before` come late and have the judge build its comparisons anew."""
    for key, (since, until) in sorted(facts.seen.items()):
        changes = {
            "revision": F("revision") + 1,
            "first_seen_at": Least("first_seen_at", moment(since)),
            "last_seen_at": Greatest("last_seen_at", moment(until)),
        }
        if key in facts.changed:
            first, last = facts.changed[key]
            changes["last_minute"] = Greatest("last_minute", last)
            changes["late_folds"] = F("late_folds") + int(first < late_before)
        ModelVersion.objects.filter(id=ids.versions[key]).update(**changes)


def series_store(facts: Facts, ids: Ids) -> None:
    """Notes the newest minute of each series, by which live ones are told from dead ones."""
    newest: dict[int, int] = {}
    for table, length in ((facts.minutes, 1), (facts.hours, 60)):
        for source, place, at in table:
            id = ids.series[series_of(source, place)]
            newest[id] = max(at * length, newest.get(id, 0))
    by_minute: dict[int, list[int]] = {}
    for id, minute in sorted(newest.items()):
        by_minute.setdefault(minute, []).append(id)
    for minute, found in sorted(by_minute.items()):
        Series.objects.filter(id__in=found, last_minute__lt=minute).update(last_minute=minute)


def models_store(facts: Facts, ids: Ids) -> None:
    """Widens when a model was seen. Versions of a model fold side by side and share this row, so it comes last and is often left alone."""
    for key, (since, until) in sorted(facts.seen.items()):
        found = WatchedModel.objects.filter(id=ids.models[key.project, key.model])
        first, last = moment(since), moment(until)
        found.filter(Q(first_seen_at__gt=first) | Q(last_seen_at__lt=last)).update(
            first_seen_at=Least("first_seen_at", first), last_seen_at=Greatest("last_seen_at", last)
        )
        if key in facts.simulated:
            found.filter(simulated=False).update(simulated=True)


def deployments_store(facts: Facts, ids: Ids, *, now_minute: int) -> None:
    """Opens, lengthens, joins and ends the deployments of each version and environment that the facts have data of."""
    for (version, environment), spans in sorted(facts.presence.items()):
        _deployment_store(ids, version, environment, spans, now_minute)


def _deployment_store(ids: Ids, version: VersionKey, environment: str, spans: Iterable[Span], now_minute: int) -> None:
    known = list(
        Deployment.objects.filter(version_id=ids.versions[version], environment=environment, last_minute__gte=0).order_by("started_minute")
    )
    joined = spans_join([*((row.started_minute, row.last_minute) for row in known), *spans])
    kept: list[Deployment] = []
    for first, last in joined:
        inside = [row for row in known if first <= row.started_minute <= last]
        # Data that closes the gap between two deployments shows that they were one: the newest row stays, as it is the one being judged.
        row = inside[-1] if inside else _new(ids, version, environment)
        for other in inside[:-1]:
            other.delete()
        row.started_minute, row.last_minute = first, last
        kept.append(row)
    for row in kept:
        gone = row is not kept[-1] or now_minute - row.last_minute > GONE_AFTER
        row.ended_minute = row.last_minute if gone else None
        row.save()


def _new(ids: Ids, version: VersionKey, environment: str) -> Deployment:
    return Deployment(
        project_id=version.project,
        model_id=ids.models[version.project, version.model],
        version_id=ids.versions[version],
        environment=environment,
    )

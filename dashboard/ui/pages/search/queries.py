"""Search of a project: models, versions, findings, instances and alerts, each in one query."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import reduce
from operator import and_, or_
from typing import TypeVar

from django.db.models import Case, IntegerField, Model, Q, QuerySet, Value, When

from dashboard.alerts.models import Alert
from dashboard.fleet.models import Finding, Instance, ModelVersion, WatchedModel

Row = TypeVar("Row", bound=Model)
MAX_TEXT_LENGTH = 200
MAX_WORDS = 6
MAX_RESULTS_PER_KIND = 8
_ALERT_NUMBER = re.compile(r"^(?:a-?)?([0-9]{1,9})$", re.IGNORECASE)


@dataclass(frozen=True)
class SearchResults:
    """Results of each kind, newest first; `more` names the kinds with more results."""

    models: list[WatchedModel] = field(default_factory=list)
    versions: list[ModelVersion] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    instances: list[Instance] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    more: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """Number of results."""
        return sum(
            len(rows)
            for rows in (self.models, self.versions, self.findings, self.instances, self.alerts)
        )


def normalize_search_text(text: str) -> str:
    """The search text without surrounding spaces, up to the maximum length."""
    return " ".join(text[:MAX_TEXT_LENGTH].split())


def project_search(
    *, project_id: int, text: str, each: int = MAX_RESULTS_PER_KIND
) -> SearchResults:
    """Rows that contain all words of the text; the number of an alert returns that alert first."""
    words = text.split()[:MAX_WORDS]
    if not words:
        return SearchResults()
    more: set[str] = set()

    def take(name: str, rows: QuerySet[Row]) -> list[Row]:
        found = list(rows[: each + 1])
        if len(found) > each:
            more.add(name)
        return found[:each]

    models = WatchedModel.objects.filter(_all(words, "name"), project_id=project_id)
    versions = ModelVersion.objects.filter(
        _all(words, "name", "model__name"), _any(words, "name"), project_id=project_id
    )
    findings = Finding.objects.filter(
        _all(words, "text", "where", "kind", "model__name"), _any(words, "text", "where", "kind")
    )
    instances = Instance.objects.filter(
        _all(words, "label", "host", "node", "instance_id", "gpu", "job"), project_id=project_id
    )
    return SearchResults(
        models=take("models", models.order_by("-last_seen_at")),
        versions=take("versions", versions.select_related("model").order_by("-last_seen_at")),
        findings=take(
            "findings",
            findings.filter(project_id=project_id)
            .select_related("model", "last_version")
            .order_by("-last_seen_at"),
        ),
        instances=take(
            "instances",
            instances.select_related("model", "version")
            .defer("identity", "components")
            .order_by("-last_seen_at"),
        ),
        alerts=take("alerts", _alerts(project_id, text, words)),
        more=frozenset(more),
    )


def _alerts(project_id: int, text: str, words: list[str]) -> QuerySet[Alert]:
    numbered = _ALERT_NUMBER.match(text)
    number = int(numbered[1]) if numbered else -1
    rows = Alert.objects.filter(
        _all(words, "title", "deployment__model__name", "deployment__version__name")
        | Q(number=number),
        project_id=project_id,
    )
    named = Case(When(number=number, then=Value(0)), default=Value(1), output_field=IntegerField())
    return rows.select_related("deployment__model", "deployment__version").order_by(
        named, "-opened_at"
    )


def _all(words: list[str], *names: str) -> Q:
    return reduce(and_, (_any([word], *names) for word in words))


def _any(words: list[str], *names: str) -> Q:
    return reduce(or_, (Q(**{f"{name}__icontains": word}) for word in words for name in names))

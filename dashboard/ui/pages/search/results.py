"""Search results as links, with details that distinguish equal names."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.urls import reverse

from dashboard.alerts.models import Alert
from dashboard.fleet.models import Finding, Instance, ModelVersion, WatchedModel
from dashboard.fleet.names import process_name
from dashboard.ui.pages.findings.list import format_kind
from dashboard.ui.pages.help.search import HelpResult, search_help
from dashboard.ui.pages.search.queries import MAX_WORDS, SearchResults

MAX_TITLE_LENGTH = 120
MAX_HELP_RESULTS = 5


@dataclass(frozen=True)
class SearchHit:
    """One result. `mark` is the shape of the kind, not of the state; `seen` is the last sighting. A
    title that is a `sentence` may contain code in backticks; a name is shown as is."""

    url: str
    title: str
    beside: str
    mark: str
    seen: datetime | None
    sentence: bool = False


@dataclass(frozen=True)
class HitGroup:
    """Results of one kind; `more` is True if further results exist."""

    title: str
    hits: list[SearchHit]
    more: bool


def build_hits(slug: str, found: SearchResults) -> list[HitGroup]:
    """Groups of results; kinds without a result are omitted."""
    groups = [
        HitGroup("Models", [_model(slug, row) for row in found.models], "models" in found.more),
        HitGroup(
            "Versions", [_version(slug, row) for row in found.versions], "versions" in found.more
        ),
        HitGroup("Alerts", [_alert(slug, row) for row in found.alerts], "alerts" in found.more),
        HitGroup(
            "Findings", [_finding(slug, row) for row in found.findings], "findings" in found.more
        ),
        HitGroup(
            "Instances",
            [_instance(slug, row) for row in found.instances],
            "instances" in found.more,
        ),
    ]
    return [group for group in groups if group.hits]


def build_help_group(text: str, limit: int = MAX_HELP_RESULTS) -> HitGroup:
    """Documents and their sections, from memory without a query."""
    results, more = search_help(text.split()[:MAX_WORDS], limit)
    return HitGroup("Help", [_help(result) for result in results], more)


def _help(result: HelpResult) -> SearchHit:
    address = reverse("help_document", args=[result.key])
    url = f"{address}#{result.anchor}" if result.anchor else address
    return SearchHit(url, result.title, result.origin, "document", None)


def _model(slug: str, row: WatchedModel) -> SearchHit:
    return SearchHit(
        _page(slug, row.pk),
        row.name,
        "simulated" if row.simulated else "",
        "model",
        row.last_seen_at,
    )


def _version(slug: str, row: ModelVersion) -> SearchHit:
    return SearchHit(
        f"{reverse('model_compiles', args=[slug, row.model_id])}?version={row.pk}",
        row.name,
        f"of {row.model.name}",
        "deployment",
        row.last_seen_at,
    )


def _alert(slug: str, row: Alert) -> SearchHit:
    beside = f"{row.get_state_display().lower()}, {row.deployment.model.name}"
    return SearchHit(
        reverse("alert", args=[slug, row.number]),
        f"A-{row.number} {row.title}",
        beside,
        row.worst,
        row.opened_at,
        sentence=True,
    )


def _finding(slug: str, row: Finding) -> SearchHit:
    url = reverse("finding", args=[slug, row.pk])
    return SearchHit(
        url,
        row.text[:MAX_TITLE_LENGTH],
        f"{format_kind(row.kind)}, {row.model.name}",
        "finding",
        row.last_seen_at,
    )


def _instance(slug: str, row: Instance) -> SearchHit:
    url = reverse("instance", args=[slug, row.model_id, row.instance_id])
    beside = ", ".join(part for part in (row.gpu, f"{row.model.name} {row.version.name}") if part)
    return SearchHit(url, process_name(row), beside, "instance", row.last_seen_at)


def _page(slug: str, model_id: int) -> str:
    return reverse("model", args=[slug, model_id])

"""Header of a model's pages: verdict, acknowledgement, version pair, range and tabs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlencode

from django.http import QueryDict
from django.urls import reverse

from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.regressions.models import BaselineChoice, Verdict
from dashboard.ui.http.access import ProjectRequest
from dashboard.ui.http.time_range import (
    DEFAULT_SPAN,
    SINCE_DEPLOYMENT,
    SPAN_MINUTES,
    RangePicker,
    TimeRange,
    build_range_picker,
    read_time_range,
    replace_query,
)
from dashboard.ui.pages.model.header_queries import HeaderAlert, HeaderData, read_header_data
from dashboard.ui.pages.model.lookup import parse_whole_number
from dashboard.ui.pages.model.verdict_queries import (
    MAX_VERSIONS_LISTED,
    ModelVerdicts,
    read_model_verdicts,
)
from dashboard.vocabulary.severity import ALERTING_VERDICTS

KEPT = ("env", "region", "clock", "version", "baseline", "range", "from", "to", "until")
"""Parameters that a change of tab keeps."""
MIN_LEAD_MINUTES, MAX_LEAD_MINUTES = 46, 6 * 60
"""Time before a deployment that the range since the deployment includes."""
MAX_DEPLOYMENT_AGE_MINUTES = 2 * 1440
"""Age of a deployment up to which its range is the default of a bad verdict."""


class Tab(NamedTuple):
    """A tab of a model: key, label and URL name."""

    key: str
    label: str
    name: str


TABS = (
    Tab("overview", "Overview", "model"),
    Tab("compare", "Compare", "compare"),
    Tab("versions", "Versions", "model_versions"),
    Tab("instances", "Instances", "instances"),
    Tab("ranks", "Ranks", "ranks"),
    Tab("findings", "Findings", "model_findings"),
    Tab("compiles", "Compiles", "model_compiles"),
    Tab("startup", "Startup", "model_startup"),
    Tab("periods", "28-day", "model_periods"),
)


class TabLink(NamedTuple):
    """A tab of the header; `said` explains the count to screen readers."""

    label: str
    url: str
    current: bool
    number: int | None = None
    said: str = ""


class Choice(NamedTuple):
    """One entry of a menu."""

    name: str
    url: str
    current: bool


@dataclass(frozen=True)
class ModelHeader:
    """The header, and the data that each tab reads first: `standing` and `range`."""

    model: WatchedModel
    standing: ModelVerdicts
    range: TimeRange
    label: str
    tabs: list[TabLink]
    counts: HeaderData
    environments: list[Choice]
    versions: list[Choice]
    baselines: list[Choice]
    picker: RangePicker | None
    kept: str
    """The query of a link to another tab, without a question mark."""
    regions: Sequence[Choice] = ()

    @property
    def verdict(self) -> Verdict | None:
        """The current verdict of the evaluated version."""
        return self.standing.verdict

    @property
    def accepted(self) -> BaselineChoice | None:
        """The acceptance of the evaluated version, if any."""
        judged = self.standing.judged
        return self.counts.choices.accepted.get(judged.version_id) if judged else None

    @property
    def alert(self) -> HeaderAlert | None:
        """The unresolved alert of the evaluated version."""
        return self.counts.alert


def build_model_header(
    request: ProjectRequest,
    model: WatchedModel,
    *,
    active: str,
    standing: ModelVerdicts | None = None,
    spans: Sequence[str] = tuple(SPAN_MINUTES),
    usual: str = "",
) -> ModelHeader:
    """Builds the header in three queries, or in one with `standing`. `active` is the key of a tab;
    `spans` are the ranges of its picker, none for a tab without a range; `usual` is a default range
    of the tab's own."""
    query = request.GET
    standing = standing or read_chosen_verdicts(query, model)
    chosen, counts = (
        read_model_range(query, model, standing, usual),
        read_header_data(model=model, standing=standing),
    )
    slug, kept = request.project.slug, _keep(query)
    return ModelHeader(
        model=model,
        standing=standing,
        range=chosen,
        label=next((tab.label for tab in TABS if tab.key == active), ""),
        tabs=_tabs(slug, model.pk, active, standing, counts, kept),
        counts=counts,
        environments=[
            Choice(
                name,
                replace_query(query, env=name, version="", baseline="", a="", b="", page=""),
                name == standing.environment,
            )
            for name in standing.environments
        ],
        versions=_versions(query, standing, "b" if active == "compare" else "version", 0),
        baselines=_versions(query, standing, "a" if active == "compare" else "baseline", 1),
        picker=build_range_picker(query, chosen, deployed=standing.judged is not None, spans=spans)
        if spans
        else None,
        kept=urlencode(kept),
    )


def read_chosen_verdicts(query: QueryDict, model: WatchedModel) -> ModelVerdicts:
    """Deployments and verdicts, with the environment and the pair of versions from the URL."""
    return read_model_verdicts(
        model=model,
        environment=query.get("env", ""),
        version_id=_read_id(query, "version", "b"),
        baseline_id=_read_id(query, "baseline", "a"),
    )


def read_model_range(
    query: QueryDict, model: WatchedModel, standing: ModelVerdicts, default: str = ""
) -> TimeRange:
    """The range from the URL, else `default`. Without both, the range of a bad verdict is the time
    since the deployment, with some time before it."""
    now = clock.unix()
    minute, since = clock.minute_of(now), None
    usual = DEFAULT_SPAN
    if standing.judged is not None:
        since = standing.judged.started_minute
        bad = standing.verdict is not None and standing.verdict.kind in ALERTING_VERDICTS
        if bad and minute - since <= MAX_DEPLOYMENT_AGE_MINUTES:
            usual = SINCE_DEPLOYMENT
    # In six hours, a line of a few minutes would be a dot.
    if usual == DEFAULT_SPAN and now - model.first_seen_at.timestamp() < 3600:
        usual = "1h"
    if default and since is not None:
        usual = default
    chosen = read_time_range(query, now=minute, since=since, usual=usual)
    if chosen.key != SINCE_DEPLOYMENT:
        return chosen
    lead = min(max(MIN_LEAD_MINUTES, chosen.minutes), MAX_LEAD_MINUTES)
    return replace(chosen, first=chosen.first - lead)


def _read_id(query: QueryDict, *names: str) -> int | None:
    return next(
        (id for name in names if (id := parse_whole_number(query.get(name))) is not None), None
    )


def _keep(query: QueryDict) -> dict[str, str]:
    kept = {name: text for name in KEPT if (text := query.get(name, ""))}
    named = {"version": query.get("b", ""), "baseline": query.get("a", "")}
    return {**{name: id for name, id in named.items() if id}, **kept}


def _tabs(
    slug: str,
    model_id: int,
    active: str,
    standing: ModelVerdicts,
    counts: HeaderData,
    kept: dict[str, str],
) -> list[TabLink]:
    numbers = {
        "versions": (len(standing.latest), "deployed"),
        "instances": (counts.instances, "reporting"),
        "findings": (counts.findings, "current"),
    }
    judged, baseline = standing.pair
    links = []
    for tab in TABS:
        if tab.key == "ranks" and not counts.has_ranks and active != "ranks":
            continue
        params = dict(kept)
        if tab.key == "compare":
            params |= {"a": str(baseline or ""), "b": str(judged or "")}
            params = {
                name: value
                for name, value in params.items()
                if value and name not in ("version", "baseline")
            } | {"env": standing.environment}
        url = reverse(tab.name, args=[slug, model_id])
        said = urlencode(params)
        count, words = numbers.get(tab.key, (None, ""))
        links.append(
            TabLink(
                tab.label, f"{url}?{said}" if said else url, tab.key == active, count or None, words
            )
        )
    return links


def _versions(query: QueryDict, standing: ModelVerdicts, name: str, side: int) -> list[Choice]:
    """The newest versions; a link sets the parameter of its side of the pair. A baseline differs
    from the version, so the choice of the baseline as the version selects another baseline."""
    judged, baseline = standing.pair
    rows = [row for row in standing.latest.values() if not row.version.is_other]
    other = {"version": "baseline", "b": "a"}.get(name)
    choices = []
    for row in rows[:MAX_VERSIONS_LISTED]:
        id = row.version_id
        if side == 1 and id == judged:
            continue
        changes = {name: str(id), "page": "", "vpage": ""}
        if other and id == baseline:
            changes[other] = ""
        url = replace_query(query, **changes)
        choices.append(Choice(row.version.name, url, id == standing.pair[side]))
    return choices

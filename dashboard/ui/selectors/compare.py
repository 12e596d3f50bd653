"""What the Compare page reads across the stages: two versions of a model, over the time in which both ran."""

from __future__ import annotations

from dataclasses import dataclass

from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.fleet.retention import minutes_kept_from
from dashboard.fleet.selectors.findings import FindingFacts, version_findings
from dashboard.fleet.selectors.instances import Configuration, InstanceFacts, version_configurations, version_instances
from dashboard.fleet.selectors.trends import (
    CallPoint,
    InstancePoint,
    ProcessPoint,
    SeriesFacts,
    Span,
    call_points,
    instance_points,
    process_points,
    region_calls,
    series_outermost,
)
from dashboard.regressions.models import Verdict
from dashboard.ui.selectors.model import Standing, model_standing

TOGETHER = 10
"""Minutes side by side from which both are read over the same time."""
HOURS_FROM = 12 * 60
STRIP_MINUTES = 60


@dataclass(frozen=True)
class Asked:
    """What the address asks for; `minutes` limits the span, None is since the deployment."""

    a: int | None
    b: int | None
    environment: str = ""
    region: str = ""
    minutes: int | None = None


@dataclass
class CompareFacts:
    """Everything the page shows; `a` is the baseline, `b` the candidate. `verdict` is of exactly this pair."""

    model: WatchedModel
    standing: Standing
    a: Deployment
    b: Deployment
    verdict: Verdict | None
    turned: bool
    spans: dict[int, Span]
    together: bool
    hourly: bool
    region: str
    regions: dict[str, int]
    series: dict[int, SeriesFacts]
    calls: list[CallPoint]
    processes: list[ProcessPoint]
    instances: list[InstanceFacts]
    points: list[InstancePoint]
    findings: list[FindingFacts]
    configurations: list[Configuration]

    @property
    def pair(self) -> tuple[ModelVersion, ModelVersion]:
        """Baseline and candidate."""
        return self.a.version, self.b.version


def compare_facts(*, model: WatchedModel, asked: Asked) -> tuple[Standing, CompareFacts | None]:
    """Reads the pair in a fixed number of queries; None where there are no two versions to compare."""
    named = tuple(id for id in (asked.a, asked.b) if id is not None)
    standing = model_standing(model=model, environment=asked.environment, always=named)
    judged, baseline = standing.pair
    a, b = (standing.latest.get(id) if id is not None else None for id in (asked.a or baseline, asked.b or judged))
    if a is None or b is None or a.version_id == b.version_id:
        return standing, None
    return standing, _facts(model, asked, standing, a, b)


def _facts(model: WatchedModel, asked: Asked, standing: Standing, a: Deployment, b: Deployment) -> CompareFacts:
    project, environment, ids = model.project_id, standing.environment, [a.version_id, b.version_id]
    spans, together = _spans(a, b, asked.minutes)
    kept_from = minutes_kept_from(project=model.project, now=clock.unix())
    hourly = any(span.last - span.first > HOURS_FROM or span.first < kept_from for span in spans.values())
    series = series_outermost(project_id=project, version_ids=ids, environment=environment)
    whole = Span(min(span.first for span in spans.values()), max(span.last for span in spans.values()))
    regions = region_calls(project_id=project, series=series, span=whole, hourly=hourly)
    region = asked.region if asked.region in regions else max(regions, key=lambda name: (regions[name], name), default="")
    series = {id: facts for id, facts in series.items() if facts.region == region}
    verdict, turned = _verdict(a, b)
    recent = Span(max(spans[b.version_id].first, spans[b.version_id].last - STRIP_MINUTES), spans[b.version_id].last)
    return CompareFacts(
        model=model,
        standing=standing,
        a=a,
        b=b,
        verdict=verdict,
        turned=turned,
        spans=spans,
        together=together,
        hourly=hourly,
        region=region,
        regions=regions,
        series=series,
        calls=call_points(project_id=project, series=series, spans=spans, hourly=hourly),
        processes=process_points(project_id=project, environment=environment, spans=spans, hourly=hourly),
        instances=version_instances(project_id=project, version_ids=ids, environment=environment),
        points=[] if verdict or not together else instance_points(project_id=project, series=list(series), span=recent),
        findings=version_findings(project_id=project, model_id=model.pk, version_ids=ids, environment=environment),
        configurations=version_configurations(project_id=project, version_ids=ids, environment=environment),
    )


def _spans(a: Deployment, b: Deployment, minutes: int | None) -> tuple[dict[int, Span], bool]:
    """The time in which both ran; where they did not, each one's own last day."""
    first, last = max(a.started_minute, b.started_minute), min(a.last_minute, b.last_minute) + 1
    if last - first >= TOGETHER:
        span = Span(max(first, last - minutes) if minutes else first, last)
        return {a.version_id: span, b.version_id: span}, True
    length = minutes or 1440
    return {row.version_id: Span(max(row.started_minute, row.last_minute + 1 - length), row.last_minute + 1) for row in (a, b)}, False


def _verdict(a: Deployment, b: Deployment) -> tuple[Verdict | None, bool]:
    """The newest verdict on this pair; `True` says that the judge compared them only the other way round."""
    pairs = ((a.version_id, b.version_id), (b.version_id, a.version_id))
    rows = Verdict.objects.filter(
        project_id=a.project_id,
        deployment__environment=a.environment,
        deployment__version_id__in=pairs[0],
        baseline__version_id__in=pairs[0],
    )
    newest = list(rows.select_related("deployment", "baseline").order_by("-current", "-created_at").defer("evidence")[:20])
    found = next((row for row in newest if row.baseline and (row.baseline.version_id, row.deployment.version_id) == pairs[0]), None)
    turned = any(row.baseline and (row.baseline.version_id, row.deployment.version_id) == pairs[1] for row in newest)
    return found, found is None and turned

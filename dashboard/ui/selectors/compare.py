"""What the Compare page reads across the stages: two versions of a model, over the time in which both ran."""

from __future__ import annotations

from dataclasses import dataclass, field

from dashboard.common import clock
from dashboard.common.raw_queries import rows_together
from dashboard.fleet.metrics.eager_causes import WhyEager
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.fleet.retention import minutes_kept_from
from dashboard.fleet.selectors.findings.findings import FindingFacts, version_findings
from dashboard.fleet.selectors.instances.instance_traits import MOST, Traits, instance_traits
from dashboard.fleet.selectors.instances.instances import Configuration, InstanceFacts, instances_configured
from dashboard.fleet.selectors.versions.comparison_spans import pair_spans, spans_hourly
from dashboard.fleet.selectors.versions.eager_causes import eager_rows, versions_eager
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    InstancePoint,
    ProcessPoint,
    SeriesFacts,
    Span,
    call_points_of,
    call_rows,
    instance_points,
    process_points_of,
    process_rows,
    region_seconds,
    series_outermost,
    versions_outside,
)
from dashboard.regressions.models import Verdict
from dashboard.regressions.selectors import verdict_of_pair
from dashboard.ui.selectors.model import Standing, model_standing

STRIP_MINUTES = 60


@dataclass(frozen=True)
class Asked:
    """What the address asks for; `minutes` and `within` limit the span, without both it is since the deployment."""

    a: int | None
    b: int | None
    environment: str = ""
    region: str = ""
    minutes: int | None = None
    within: Span | None = None


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
    regions: dict[str, float]
    series: dict[int, SeriesFacts]
    calls: list[CallPoint]
    processes: list[ProcessPoint]
    instances: list[InstanceFacts]
    points: list[InstancePoint]
    findings: list[FindingFacts]
    configurations: list[Configuration]
    traits: dict[int, Traits] = field(default_factory=dict)
    """Of the instances of both sides that were seen last, as many of each."""
    why_eager: dict[int, WhyEager] = field(default_factory=dict)

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


def _traits(project_id: int, instances: list[InstanceFacts]) -> dict[int, Traits]:
    """Of the instances of each side that were seen last, as many of both."""
    by_version: dict[int, list[InstanceFacts]] = {}
    for one in instances:
        by_version.setdefault(one.version_id, []).append(one)
    taken = [one for side in by_version.values() for one in side[: MOST // 2]]
    if not taken:
        return {}
    since, newest = min(one.started_minute for one in taken), max(one.state_minute for one in taken)
    return instance_traits(project_id=project_id, instance_ids=[one.id for one in taken], since=clock.at(since * 60), newest=newest)


def _said(standing: Standing, a: Deployment, b: Deployment) -> tuple[Verdict | None, bool]:
    """The verdict on this pair: the one that stands, which is read already, or an earlier one; and whether they were compared only the
    other way round."""
    stands = standing.verdicts.get(b.pk)
    return (stands, False) if stands and stands.baseline_id == a.pk else verdict_of_pair(a, b)


def _facts(model: WatchedModel, asked: Asked, standing: Standing, a: Deployment, b: Deployment) -> CompareFacts:
    project, environment, ids = model.project_id, standing.environment, [a.version_id, b.version_id]
    spans, together = pair_spans(a, b, asked.minutes, asked.within)
    hourly = spans_hourly(spans.values(), kept_from=minutes_kept_from(project=model.project, now=clock.unix()))
    series = series_outermost(project_id=project, version_ids=ids, environment=environment)
    whole = asked.within or Span(min(span.first for span in spans.values()), max(span.last for span in spans.values()))
    outside = versions_outside(series.values())
    regions = region_seconds(project_id=project, series=series, span=whole, hourly=hourly)
    region = asked.region if asked.region in regions else next(iter(regions), "")
    series = {id: facts for id, facts in series.items() if facts.region == region}
    calls, processes, eager = rows_together(
        call_rows(project_id=project, series=series, spans=spans, hourly=hourly),
        process_rows(project_id=project, environment=environment, spans=spans, hourly=hourly),
        eager_rows(project_id=project, series=series, spans=spans, hourly=hourly),
    )
    verdict, turned = _said(standing, a, b)
    last = max((span.last for span in spans.values()), default=whole.last)
    recent = Span(max(whole.first, last - STRIP_MINUTES), last)
    instances, configurations = instances_configured(project_id=project, version_ids=ids, environment=environment)
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
        calls=call_points_of(calls, series, hourly=hourly),
        processes=process_points_of(processes, outside, hourly=hourly),
        instances=instances,
        points=[] if verdict or not together else instance_points(project_id=project, series=list(series), span=recent),
        findings=version_findings(project_id=project, model_id=model.pk, version_ids=ids, environment=environment),
        configurations=configurations,
        traits=_traits(project, instances),
        why_eager=versions_eager(eager, series),
    )

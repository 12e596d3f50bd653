"""Data of the Compare page across the stages: two versions of a model over the time in which both
ran."""

from __future__ import annotations

from dataclasses import dataclass, field

from dashboard.common import clock
from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.metrics.eager_causes import EagerBreakdown
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.fleet.selectors.findings.findings import FindingData, list_version_findings
from dashboard.fleet.selectors.instances.instance_traits import (
    MAX_INSTANCES,
    Traits,
    read_instance_traits,
)
from dashboard.fleet.selectors.instances.instances import (
    Configuration,
    InstanceData,
    parse_configured_instances,
    query_configured_instances,
)
from dashboard.fleet.selectors.versions.comparison_spans import find_comparison_spans, needs_hours
from dashboard.fleet.selectors.versions.eager_causes import parse_eager_causes, query_eager_causes
from dashboard.fleet.selectors.versions.version_series import (
    CallPoint,
    InstancePoint,
    ProcessPoint,
    SeriesInfo,
    Span,
    list_scraped_versions,
    parse_call_points,
    parse_outermost_series,
    parse_process_points,
    query_calls,
    query_outermost_series,
    query_processes,
    read_instance_points,
    read_region_seconds,
)
from dashboard.regressions.models import Verdict
from dashboard.regressions.selectors import find_pair_verdict
from dashboard.ui.pages.model.queries import ModelVerdicts, read_model_verdicts

STRIP_MINUTES = 60


@dataclass(frozen=True)
class CompareQuery:
    """Parameters of the URL; `minutes` and `within` limit the span. Without both, the span begins
    with the deployment."""

    a: int | None
    b: int | None
    environment: str = ""
    region: str = ""
    minutes: int | None = None
    within: Span | None = None


@dataclass
class CompareData:
    """Data of the page; `a` is the baseline, `b` the candidate. `verdict` belongs to exactly this
    pair."""

    model: WatchedModel
    standing: ModelVerdicts
    a: Deployment
    b: Deployment
    verdict: Verdict | None
    turned: bool
    spans: dict[int, Span]
    together: bool
    hourly: bool
    region: str
    regions: dict[str, float]
    series: dict[int, SeriesInfo]
    calls: list[CallPoint]
    processes: list[ProcessPoint]
    instances: list[InstanceData]
    points: list[InstancePoint]
    findings: list[FindingData]
    configurations: list[Configuration]
    traits: dict[int, Traits] = field(default_factory=dict)
    """The most recent instances of both sides, the same number of each."""
    why_eager: dict[int, EagerBreakdown] = field(default_factory=dict)

    @property
    def pair(self) -> tuple[ModelVersion, ModelVersion]:
        """Baseline and candidate."""
        return self.a.version, self.b.version


def read_compare_data(
    *, model: WatchedModel, asked: CompareQuery
) -> tuple[ModelVerdicts, CompareData | None]:
    """Reads the pair in a fixed number of queries; None if there are no two versions to compare."""
    named = tuple(id for id in (asked.a, asked.b) if id is not None)
    standing = read_model_verdicts(model=model, environment=asked.environment, always=named)
    judged, baseline = standing.pair
    a, b = (
        standing.latest.get(id) if id is not None else None
        for id in (asked.a or baseline, asked.b or judged)
    )
    if a is None or b is None or a.version_id == b.version_id:
        return standing, None
    return standing, _read_data(model, asked, standing, a, b)


def _traits(project_id: int, instances: list[InstanceData]) -> dict[int, Traits]:
    """The most recent instances of each side, the same number of both."""
    by_version: dict[int, list[InstanceData]] = {}
    for one in instances:
        by_version.setdefault(one.version_id, []).append(one)
    taken = [one for side in by_version.values() for one in side[: MAX_INSTANCES // 2]]
    if not taken:
        return {}
    since, newest = min(one.started_minute for one in taken), max(one.state_minute for one in taken)
    return read_instance_traits(
        project_id=project_id,
        instance_ids=[one.id for one in taken],
        since=clock.at(since * 60),
        newest=newest,
    )


def _find_verdict(
    standing: ModelVerdicts, a: Deployment, b: Deployment
) -> tuple[Verdict | None, bool]:
    """The verdict on this pair, current or earlier; and whether only the opposite comparison
    exists."""
    stands = standing.verdicts.get(b.pk)
    return (stands, False) if stands and stands.baseline_id == a.pk else find_pair_verdict(a, b)


def _read_data(
    model: WatchedModel, asked: CompareQuery, standing: ModelVerdicts, a: Deployment, b: Deployment
) -> CompareData:
    project, environment, ids = model.project_id, standing.environment, [a.version_id, b.version_id]
    spans, together = find_comparison_spans(a, b, asked.minutes, asked.within)
    hourly = needs_hours(
        spans.values(), kept_from=find_first_kept_minute(project=model.project, now=clock.unix())
    )
    found, reported = fetch_rows_together(
        query_outermost_series(project_id=project, version_ids=ids, environment=environment),
        query_configured_instances(project_id=project, version_ids=ids, environment=environment),
    )
    series = parse_outermost_series(found)
    instances, configurations = parse_configured_instances(reported)
    whole = asked.within or Span(
        min(span.first for span in spans.values()), max(span.last for span in spans.values())
    )
    outside = list_scraped_versions(series.values())
    regions = read_region_seconds(project_id=project, series=series, span=whole, hourly=hourly)
    region = asked.region if asked.region in regions else next(iter(regions), "")
    series = {id: facts for id, facts in series.items() if facts.region == region}
    calls, processes, eager = fetch_rows_together(
        query_calls(project_id=project, series=series, spans=spans, hourly=hourly),
        query_processes(project_id=project, environment=environment, spans=spans, hourly=hourly),
        query_eager_causes(project_id=project, series=series, spans=spans, hourly=hourly),
    )
    verdict, turned = _find_verdict(standing, a, b)
    last = max((span.last for span in spans.values()), default=whole.last)
    recent = Span(max(whole.first, last - STRIP_MINUTES), last)
    return CompareData(
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
        calls=parse_call_points(calls, series, hourly=hourly),
        processes=parse_process_points(processes, outside, hourly=hourly),
        instances=instances,
        points=[]
        if verdict or not together
        else read_instance_points(project_id=project, series=list(series), span=recent),
        findings=list_version_findings(
            project_id=project,
            model_id=model.pk,
            version_ids=ids,
            environment=environment,
            with_lives=False,
        ),
        configurations=configurations,
        traits=_traits(project, instances),
        why_eager=parse_eager_causes(eager, series),
    )

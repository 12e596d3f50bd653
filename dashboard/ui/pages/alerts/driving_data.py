"""Values of the driving chart: the metrics that led to the alert, for both versions, with
current traffic and instances of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from dashboard.common.raw_queries import fetch_rows_together
from dashboard.fleet.metrics.aggregate import (
    CallGrid,
    Clock,
    ProcessGrid,
    all_report_stalls,
    bin_calls,
    bin_processes,
)
from dashboard.fleet.metrics.first_bucket import QuantileBound
from dashboard.fleet.metrics.time_bins import TimeBins
from dashboard.fleet.metrics.version_metrics import COLD_START, TRENDS, Metric
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.instances.instances import InstanceData, list_version_instances
from dashboard.fleet.selectors.versions.current_traffic import (
    CurrentTraffic,
    query_current_traffic,
    sum_current_traffic,
)
from dashboard.fleet.selectors.versions.version_series import (
    Span,
    list_scraped_versions,
    parse_call_points,
    parse_process_points,
    query_calls,
    query_processes,
    read_outermost_series,
    read_region_seconds,
)
from dashboard.ui.charts.confidence_bands import METRIC_INTERVALS, Interval
from dashboard.ui.charts.driving_chart import ChartSpan
from dashboard.ui.charts.evidence_table import TREND_KEYS
from dashboard.vocabulary.metrics import METRICS, find_metric

GPU_PREFIX = "gpu_"


def _miss(metric: Metric) -> Metric:
    """Cache misses as the judge counts them; the trend shows hits."""

    def read(calls: object, processes: object) -> float | None:
        hits = metric.read(None, processes)  # type: ignore[arg-type]
        return None if hits is None else 1 - hits

    return replace(metric, title=METRICS["cache"].title, read=read, worse="up")


CHARTED: dict[str, Metric] = {one.key: _miss(one) if one.key == "cache" else one for one in TRENDS}


@dataclass
class DrivingData:
    """Bins of one metric by version; `starts` are instances, read only for cold starts."""

    metric: str
    span: ChartSpan
    calls: CallGrid = field(default_factory=dict)
    processes: ProcessGrid = field(default_factory=dict)
    starts: list[InstanceData] = field(default_factory=list)
    traffic: CurrentTraffic = field(default_factory=CurrentTraffic)

    @property
    def charted(self) -> Metric:
        """The metric of the chart."""
        return CHARTED[chart_key(self.metric)]

    def read(self, version: int) -> dict[int, float]:
        """Values by bin."""
        calls, processes = self.calls.get(version, {}), self.processes.get(version, {})
        found = {
            place: self.charted.read(calls.get(place), processes.get(place))
            for place in {*calls, *processes}
        }
        return {place: value for place, value in found.items() if value is not None}

    def read_intervals(self, version: int) -> dict[int, Interval]:
        """Intervals of a quantile or a share by bin, where they are wide enough to show."""
        read = METRIC_INTERVALS.get(self.charted.key)
        if read is None:
            return {}
        found = {place: read(total) for place, total in self.calls.get(version, {}).items()}
        return {place: interval for place, interval in found.items() if interval is not None}

    def read_starts(self, version: int) -> list[tuple[float, float]]:
        """Start minute and seconds of each cold start."""
        return [
            (one.started_minute, one.cold_start)
            for one in self.starts
            if one.version_id == version and one.cold_start is not None
        ]

    def read_bounds(self, version: int) -> list[QuantileBound]:
        """The bins whose quantile lies in an engine's first bucket, oldest first."""
        if self.charted.share is None:
            return []
        bins = sorted(self.calls.get(version, {}).items())
        return [known for _, total in bins if (known := self.charted.below(total)) is not None]


def chart_key(metric: str) -> str:
    """The key of the chart that shows a metric of the judge."""
    return TREND_KEYS.get(metric, metric)


def is_charted(metric: str) -> bool:
    """True if a chart shows this metric of the judge."""
    return chart_key(metric) in CHARTED and find_metric(metric).kind != "fact"


def read_driving_data(
    *,
    deployment: Deployment,
    version_ids: Sequence[int],
    span: ChartSpan,
    region: str,
    metric: str,
) -> DrivingData:
    """Reads calls, processes and traffic in two queries; one more for several regions without a
    named one, and one for cold starts."""
    hourly, window = span.bin % 60 == 0, _window(span)
    project, environment = deployment.project_id, deployment.environment
    series = read_outermost_series(
        project_id=project, version_ids=version_ids, environment=environment
    )
    whole = Span(window.first, window.last)
    spans = dict.fromkeys(version_ids, whole)
    if region not in {facts.region for facts in series.values()}:
        seconds = read_region_seconds(project_id=project, series=series, span=whole, hourly=hourly)
        region = next(iter(seconds), "")
    drawn = {id: facts for id, facts in series.items() if facts.region == region}
    rows = fetch_rows_together(
        query_calls(project_id=project, series=drawn, spans=spans, hourly=hourly),
        query_processes(project_id=project, environment=environment, spans=spans, hourly=hourly),
        *query_current_traffic(deployment),
    )
    points = parse_call_points(rows[0], drawn, hourly=hourly)
    outside = list_scraped_versions(series.values())
    timed_by: Clock = "gpu" if metric.startswith(GPU_PREFIX) else "wall"
    return DrivingData(
        metric=metric,
        span=span,
        calls=bin_calls(points, window, timed_by, all_report_stalls(points)),
        processes=bin_processes(parse_process_points(rows[1], outside, hourly=hourly), window),
        starts=_read_starts(deployment, version_ids) if metric == COLD_START.key else [],
        traffic=sum_current_traffic(rows[2], rows[3], series, deployment.version_id),
    )


def _read_starts(deployment: Deployment, version_ids: Sequence[int]) -> list[InstanceData]:
    return list_version_instances(
        project_id=deployment.project_id,
        version_ids=version_ids,
        environment=deployment.environment,
    )


def _window(span: ChartSpan) -> TimeBins:
    count = (span.end - span.start) // span.bin + 1
    return TimeBins(span.start, span.start + count * span.bin, span.bin)

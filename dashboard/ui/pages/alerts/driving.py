"""Driving chart of the Alert page: which metric led to the alert, its change, and the chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dashboard.alerts.models import AlertCause, AlertState, EventKind
from dashboard.common import clock
from dashboard.fleet.retention import find_first_kept_minute
from dashboard.regressions.evidence_reader import read_changes
from dashboard.regressions.stored_evidence import Change
from dashboard.ui.charts.axis_units import choose_scale
from dashboard.ui.charts.driving_chart import (
    ChartMark,
    ChartSeries,
    ChartSpan,
    DrivingChart,
    choose_span,
    draw_driving_chart,
)
from dashboard.ui.pages.alerts.driving_data import DrivingData, is_charted, read_driving_data
from dashboard.ui.pages.alerts.queries import AlertData
from dashboard.ui.pages.alerts.timeline import find_baseline_version, find_onset
from dashboard.vocabulary import numbers
from dashboard.vocabulary.metrics import find_metric

MAX_METRICS = 4
FIRST_METRIC = "p50"


@dataclass(frozen=True)
class Driving:
    """The chart with its head. `change` is the stored change of the metric, or None if the metric
    is only shown; `choices` are the metrics that the reader can choose."""

    metric: str
    title: str
    unit: str
    change: Change | None
    choices: list[tuple[str, str]]
    versions: list[tuple[int, str]]
    chart: DrivingChart | None
    bounds: list[str]
    data: DrivingData

    @property
    def red(self) -> bool:
        """True if the change drives a ROLL BACK."""
        return self.change is not None and self.change.drives and self.change.hard


def build_driving(page: AlertData, wanted: str = "") -> Driving | None:
    """The chart of the wanted metric, else of the first one that led to the alert; None for an
    alert of the whole fleet, which has no version."""
    if page.alert.cause == AlertCause.FLEET_SILENCE:
        return None
    changes = list_driving_changes(page)
    names = [one.metric for one in changes] or [FIRST_METRIC]
    metric = wanted if wanted in names else names[0]
    change = next((one for one in changes if one.metric == metric), None)
    baseline = find_baseline_version(page)
    deployment = page.alert.deployment
    version_ids = list(dict.fromkeys([*([baseline[0]] if baseline else []), deployment.version_id]))
    data = read_driving_data(
        deployment=deployment,
        version_ids=version_ids,
        span=_choose_span(page),
        region=change.region if change else "",
        metric=metric,
    )
    names_of = {deployment.version_id: deployment.version.name} | dict(
        [baseline] if baseline else []
    )
    scale = choose_scale(
        data.charted,
        [value for id in version_ids for value in _all_values(data, id)],
        "gpu" if metric.startswith("gpu_") else "wall",
    )
    return Driving(
        metric=metric,
        title=find_metric(metric).name if metric != "traffic" else data.charted.title,
        unit=scale.unit.partition(",")[0] if data.charted.kind == "duration" else scale.unit,
        change=change,
        choices=[(name, find_metric(name).name) for name in names[:MAX_METRICS]],
        versions=[(1 if baseline and id == baseline[0] else 2, names_of[id]) for id in version_ids],
        chart=_draw(page, data, version_ids, names_of, scale.factor, baseline),
        bounds=_bounds(data, version_ids, names_of),
        data=data,
    )


def list_driving_changes(page: AlertData) -> list[Change]:
    """The regressed metrics of the alert that a chart shows: those that drive the verdict first,
    one row for each metric."""
    verdict = page.bad
    rows = [one for one in read_changes(verdict.evidence) if one.judged] if verdict else []
    chosen = [one for one in rows if one.drives] or [one for one in rows if one.regressed]
    found: dict[str, Change] = {}
    for one in chosen:
        if is_charted(one.metric):
            found.setdefault(one.metric, one)
    return list(found.values())


def _all_values(data: DrivingData, version: int) -> list[float]:
    return [*data.read(version).values(), *(value for _, value in data.read_starts(version))]


def _choose_span(page: AlertData) -> ChartSpan:
    alert, deployment = page.alert, page.alert.deployment
    until = clock.minute_of(clock.unix())
    if alert.resolved_at is not None:
        until = min(until, clock.minute_of(alert.resolved_at.timestamp()) + 30)
    # A clock that runs ahead can report a later start.
    until = max(until, deployment.started_minute)
    kept = find_first_kept_minute(project=alert.project, now=clock.unix())
    return choose_span(deployment.started_minute, until, minutes_from=kept)


def _draw(
    page: AlertData,
    data: DrivingData,
    version_ids: Sequence[int],
    names: Mapping[int, str],
    factor: float,
    baseline: tuple[int, str] | None,
) -> DrivingChart | None:
    def scaled(values: Mapping[int, float]) -> dict[int, float]:
        return {place: value * factor for place, value in values.items()}

    series = []
    for id in version_ids:
        bands = data.read_intervals(id)
        series.append(
            ChartSeries(
                role=1 if baseline and id == baseline[0] else 2,
                name=names[id],
                points=scaled(data.read(id)),
                low=scaled({place: band[0] for place, band in bands.items()}),
                high=scaled({place: band[1] for place, band in bands.items()}),
                dots=[(minute, value * factor) for minute, value in data.read_starts(id)],
            )
        )
    onset, ended = find_onset(page), page.alert.resolved_at
    level = _find_level(page, data, baseline) if ended is not None else None
    return draw_driving_chart(
        span=data.span,
        series=series,
        marks=_list_marks(page),
        zero=data.charted.kind in ("share", "count"),
        level=level * factor if level is not None else None,
        onset=onset[0] if onset else None,
        until=clock.minute_of(ended.timestamp()) if ended else None,
    )


def _list_marks(page: AlertData) -> list[ChartMark]:
    """The deployment, the verdicts of the alert, and an observed rollback."""
    alert = page.alert
    marks = [ChartMark(alert.deployment.started_minute, "deployment", "deployed")]
    worst = ""
    for event in reversed(page.events):
        minute = clock.minute_of(event.at.timestamp())
        if event.kind == EventKind.ROLLBACK_SEEN:
            marks.append(ChartMark(minute, "deployment", "rolled back"))
        kind = event.verdict.kind if event.verdict else ""
        if kind in ("watch", "roll_back") and kind != worst and worst != "roll_back":
            worst = kind
            marks.append(ChartMark(minute, kind, "ROLL BACK" if kind == "roll_back" else "WATCH"))
    if not worst:
        opened = clock.minute_of(alert.opened_at.timestamp())
        marks.append(ChartMark(opened, alert.worst, "alert"))
    return marks


def _find_level(
    page: AlertData, data: DrivingData, baseline: tuple[int, str] | None
) -> float | None:
    """The baseline's level before the deployment, or over all of its bins if it started later."""
    line = data.read(baseline[0]) if baseline else {}
    deployed = page.alert.deployment.started_minute
    before = [
        value for place, value in line.items() if data.span.start + place * data.span.bin < deployed
    ]
    chosen = sorted(before or line.values())
    return chosen[len(chosen) // 2] if chosen else None


def _bounds(data: DrivingData, version_ids: Sequence[int], names: Mapping[int, str]) -> list[str]:
    """Newest bound and mean of each version with bins that have no point."""
    known = {id: data.read_bounds(id) for id in version_ids}
    return [
        f"{names[id]} {numbers.below(found[-1].bound, found[-1].mean)}"
        for id, found in known.items()
        if found
    ]


def is_open(page: AlertData) -> bool:
    """True while the alert is not resolved."""
    return page.alert.state != AlertState.RESOLVED

"""Version metrics of `/metrics`: verdicts and key metrics of live deployments, in the projects of
the reader."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from dashboard.alerts.current_verdict import resolve_current_verdicts
from dashboard.alerts.models import Alert, AlertCause, AlertState
from dashboard.common import clock
from dashboard.fleet.metrics.first_bucket import find_quantile_bound
from dashboard.fleet.models import Deployment, InstanceState
from dashboard.fleet.selectors.instances.instance_states import instance_state
from dashboard.fleet.selectors.versions.fleet_calls import RECENT_MINUTES
from dashboard.fleet.selectors.versions.fleet_data import BinnedRange, FleetData, VersionData
from dashboard.fleet.selectors.versions.fleet_page import read_fleet
from dashboard.projects.models import Project
from dashboard.projects.selectors import for_project
from dashboard.regressions.models import VerdictKind
from dashboard.regressions.selectors import read_latest_verdicts

MAX_PROJECTS = 20
MAX_DEPLOYMENTS = 200
"""Maximum deployments of one project. The newest are exported, with the number of those left
out."""
HOUR_MINUTES = 60
VERSION_LABELS = ["project", "model", "version"]
QUANTILE_METRICS = ("latency_seconds", "latency_below_seconds")

_METRIC_TEXTS = {
    "calls": f"Calls of the busiest region in the last {RECENT_MINUTES} minutes, over all "
    "environments.",
    "latency_seconds": f"Wall time of the region's calls in {RECENT_MINUTES} minutes, by "
    "quantile; includes stalled calls if agents report them.",
    "latency_below_seconds": "End of an engine's first bucket, if the quantile is in that bucket "
    "and thus missing from latency_seconds.",
    "latency_mean_seconds": "Mean of the same calls, if a quantile is in an engine's first bucket.",
    "compiled_share": "Share of sampled calls that ran compiled, last hour.",
    "stalled_share": "Share of calls that waited for a compilation after warm-up, last hour.",
    "cache_hit_share": "Share of compile seconds saved by a cache, last hour.",
    "cold_start_seconds": "Median start time of reporting instances.",
    "memory_peak_bytes": "Highest GPU memory of an instance, last hour; without a GPU, its host "
    "memory.",
}


class QuantileMetricFamily(Metric):
    """Quantiles of a model version. Prometheus reserves the label `quantile` for summaries."""

    def __init__(self, name: str, documentation: str) -> None:
        super().__init__(name, documentation, "summary")

    def add_metric(self, labels: Sequence[str], value: float) -> None:
        """Adds one quantile. A sliding window has no monotonic count, so `_count` and `_sum` are
        left out."""
        self.add_sample(
            self.name, dict(zip([*VERSION_LABELS, "quantile"], labels, strict=True)), value
        )


class VersionMetrics:
    """Metric families, filled project by project, so that each family appears once in the
    answer."""

    def __init__(self) -> None:
        self._figures: dict[str, GaugeMetricFamily | QuantileMetricFamily] = {
            name: QuantileMetricFamily(f"compilewatch_version_{name}", text)
            if name in QUANTILE_METRICS
            else GaugeMetricFamily(f"compilewatch_version_{name}", text, labels=VERSION_LABELS)
            for name, text in _METRIC_TEXTS.items()
        }
        place = [*VERSION_LABELS, "environment"]
        self._verdict = GaugeMetricFamily(
            "compilewatch_version_verdict",
            "1 for the current verdict of a live deployment: healthy, watch, roll_back or "
            "not_enough_data.",
            labels=[*place, "verdict"],
        )
        self._age = GaugeMetricFamily(
            "compilewatch_version_data_age_seconds",
            "Seconds since the newest minute of data of a live deployment.",
            labels=place,
        )
        self._live = GaugeMetricFamily(
            "compilewatch_version_live_seconds",
            "Seconds for which a deployment has been live.",
            labels=place,
        )
        self._instances = GaugeMetricFamily(
            "compilewatch_instances",
            "Processes that reported in the last half hour, by state; starting and ended "
            "processes are no longer instances.",
            labels=["project", "model", "state"],
        )
        self._alerts = GaugeMetricFamily(
            "compilewatch_alerts_unresolved",
            "Unresolved alerts; without a model label: alerts about the whole fleet.",
            labels=["project", "model", "severity"],
        )
        self._left_out = GaugeMetricFamily(
            "compilewatch_deployments_left_out",
            "Live deployments beyond 200 of a project, not exported here.",
            labels=["project"],
        )

    def add(self, project: Project) -> None:
        """Reads one project with about ten queries and adds its samples."""
        now = clock.minute_of(clock.unix())
        facts = read_fleet(
            project=project, window=BinnedRange(now - HOUR_MINUTES, now, RECENT_MINUTES)
        )
        names = {model.pk: model.name for model in facts.models}
        live = sorted(
            (one for one in facts.deployments if one.ended_minute is None),
            key=lambda one: (-one.started_minute, one.pk),
        )
        told = live[:MAX_DEPLOYMENTS]
        self._left_out.add_metric([project.slug], len(live) - len(told))
        self._add_verdicts(project, told, names, now)
        for deployment in {one.version_id: one for one in reversed(told)}.values():
            version = facts.versions.get(deployment.version_id)
            if version is not None:
                self._add_metrics(
                    [project.slug, names[deployment.model_id], deployment.version.name], version
                )
        self._add_instances(project, facts, names, {one.model_id for one in told})
        self._add_alerts(project)

    def families(self) -> Iterator[Metric]:
        """Yields every family."""
        yield self._verdict
        yield self._live
        yield self._age
        yield from self._figures.values()
        yield self._instances
        yield self._alerts
        yield self._left_out

    def _add_verdicts(
        self, project: Project, told: Sequence[Deployment], names: dict[int, str], now: int
    ) -> None:
        rows = (
            read_latest_verdicts(project=project)
            .filter(deployment__in=[one.pk for one in told])
            .defer("evidence")
        )
        kinds = {row.deployment_id: row.kind for row in resolve_current_verdicts(rows)}
        for one in told:
            place = [project.slug, names[one.model_id], one.version.name, one.environment]
            self._verdict.add_metric([*place, kinds.get(one.pk, VerdictKind.NOT_ENOUGH_DATA)], 1)
            self._live.add_metric(place, (now - one.started_minute) * 60)
            self._age.add_metric(place, (now - one.last_minute) * 60)

    def _add_metrics(self, which: list[str], version: VersionData) -> None:
        """Adds the metrics of one version. Unknown values produce a gap, not a zero."""
        self._figures["calls"].add_metric(which, version.recent_calls)
        read = {
            "compiled_share": version.compiled_share,
            "stalled_share": version.stalled_share,
            "cache_hit_share": version.cache_hit,
            "cold_start_seconds": version.cold_start,
            "memory_peak_bytes": version.peak,
        }
        for name, value in read.items():
            if value is not None:
                self._figures[name].add_metric(which, value)
        for quantile in (0.5, 0.99):
            if (seconds := version.recent.quantile(quantile)) is not None:
                self._figures["latency_seconds"].add_metric([*which, str(quantile)], seconds)
        bounds = {
            quantile: found
            for quantile in (0.5, 0.99)
            if (found := find_quantile_bound(version.recent, quantile)) is not None
        }
        for quantile, one in bounds.items():
            self._figures["latency_below_seconds"].add_metric([*which, str(quantile)], one.bound)
        for mean in {one.mean for one in bounds.values()}:
            self._figures["latency_mean_seconds"].add_metric(which, mean)

    def _add_instances(
        self, project: Project, facts: FleetData, names: dict[int, str], models: set[int]
    ) -> None:
        now = clock.now()
        found = Counter((one.model_id, instance_state(one, now)) for one in facts.instances)
        for model in sorted(models):
            for state in InstanceState:
                self._instances.add_metric(
                    [project.slug, names[model], state.value], found[model, state]
                )

    def _add_alerts(self, project: Project) -> None:
        rows = for_project(Alert, project).exclude(state=AlertState.RESOLVED)
        named = rows.values_list("deployment__model__name", "severity", "cause")
        found = Counter(
            ("" if cause == AlertCause.FLEET_SILENCE else model, severity)
            for model, severity, cause in named
        )
        for (model, severity), count in sorted(found.items()):
            self._alerts.add_metric([project.slug, model, severity], count)


def collect_version_metrics(projects: Sequence[Project]) -> Iterator[Metric]:
    """Collects the metrics of the first `MAX_PROJECTS` projects."""
    versions = VersionMetrics()
    for project in projects[:MAX_PROJECTS]:
        versions.add(project)
    return versions.families()

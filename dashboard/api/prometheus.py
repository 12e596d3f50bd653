"""Prometheus exporter: `/metrics` with the state of the pipeline and of live versions.

The exporter reads the database, so every process returns the same values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from compilewatch.wire.errors import ERROR_CODES
from django.core.handlers.wsgi import WSGIRequest
from django.http import HttpResponse
from django.views.decorators.http import require_safe
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    InfoMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from dashboard import __version__
from dashboard.alerts.selectors import count_deliveries_by_state
from dashboard.api.prometheus_versions import collect_version_metrics
from dashboard.common.counters import totals_read
from dashboard.common.health import list_heartbeats, worker_state
from dashboard.common.http import API_HEADERS, error_response
from dashboard.ingest.body_decoder import RefusalError
from dashboard.ingest.request_checks import key_require
from dashboard.ingest.selectors import (
    count_fold_retries,
    count_inbox_reports,
    count_poison_reports,
    read_inbox_age,
)
from dashboard.projects.models import Project
from dashboard.projects.selectors import list_projects

HEADERS = {**API_HEADERS, "Content-Type": CONTENT_TYPE_PLAIN_0_0_4}
Totals = dict[tuple[str, str], float]


@require_safe
def metrics(request: WSGIRequest) -> HttpResponse:
    """Serves the metrics to a signed-in user or a key that reads: the whole pipeline, and the
    versions of the reader's projects."""
    if request.user.is_authenticated:
        projects = list(list_projects(request.user))
    else:
        try:
            projects = list(
                Project.objects.filter(pk=key_require(request.environ, "api").project_id)
            )
        except RefusalError as refused:
            answer = error_response(ERROR_CODES[refused.code][0], refused.code, refused.detail)
            if answer.status_code == 401:
                answer["WWW-Authenticate"] = "Bearer"
            return answer
    registry = CollectorRegistry(auto_describe=False)
    registry.register(PipelineCollector(projects))
    return HttpResponse(generate_latest(registry), headers=HEADERS)


class PipelineCollector:
    """Prometheus collector of all families."""

    def __init__(self, projects: list[Project]) -> None:
        self._projects = projects

    def describe(self) -> Iterable[Metric]:
        """Empty: the families are built at collection."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yields every family, in the order of the pipeline."""
        totals = totals_read()
        yield InfoMetricFamily(
            "compilewatch", "The version of this server.", value={"version": __version__}
        )
        yield from _build_intake_metrics(totals)
        yield from _build_fold_metrics(totals)
        yield from _build_stage_metrics(totals)
        yield _labelled_gauge(
            "deliveries", "Notifications by delivery state.", "state", count_deliveries_by_state()
        )
        yield from _build_worker_metrics()
        yield from collect_version_metrics(self._projects)


def _build_intake_metrics(totals: Totals) -> Iterator[Metric]:
    """Accepted and refused requests, and the commits of accepted reports."""
    yield _counter(
        "reports_accepted",
        "Acknowledged reports; a report sent again counts again.",
        totals,
        "accepted",
        "reports",
    )
    yield _counter(
        "bytes_accepted",
        "Bytes of acknowledged requests on the wire.",
        totals,
        "accepted",
        "bytes",
    )
    yield _labelled_counter("refused", "Refused requests and reports.", "code", totals, "refused")
    commits = SummaryMetricFamily(
        "compilewatch_commit_seconds",
        "Seconds per commit; one commit stores all requests that arrived in the meantime.",
    )
    commits.add_metric(
        [],
        count_value=int(totals.get(("commits", ""), 0)),
        sum_value=totals.get(("commit_seconds", ""), 0),
    )
    yield commits


def _build_fold_metrics(totals: Totals) -> Iterator[Metric]:
    """The inbox, the delay of folds, and reports that failed to fold."""
    yield _gauge("inbox_rows", "Reports waiting to be folded.", count_inbox_reports())
    yield _gauge(
        "inbox_age_seconds",
        "Seconds that the oldest of these reports has waited.",
        read_inbox_age(),
    )
    lag = SummaryMetricFamily(
        "compilewatch_fold_lag_seconds", "Seconds from a report's arrival to its fold."
    )
    lag.add_metric(
        [],
        count_value=int(totals.get(("fold_lag", "reports"), 0)),
        sum_value=totals.get(("fold_lag", "seconds"), 0),
    )
    yield lag
    yield _gauge(
        "reports_set_aside",
        "Reports that failed to fold in three tries; manage.py refold retries them.",
        count_poison_reports(),
    )
    yield _gauge("fold_retries", "Failed folds that will be retried.", count_fold_retries())


def _build_stage_metrics(totals: Totals) -> Iterator[Metric]:
    """Duration and results of the fold and judge stages."""
    seconds = SummaryMetricFamily(
        "compilewatch_stage_seconds",
        "Seconds of runs that had work.",
        labels=["stage"],
    )
    for stage in ("fold", "judge"):
        ran, took = totals.get(("stage_runs", stage), 0), totals.get(("stage_seconds", stage), 0)
        seconds.add_metric([stage], count_value=int(ran), sum_value=took)
    yield seconds
    yield _labelled_counter(
        "stage_done", "Folded reports, written verdicts.", "stage", totals, "stage_done"
    )


def _build_worker_metrics() -> Iterator[Metric]:
    """Workers of the last day by state."""
    states = Counter(worker_state(worker) for worker in list_heartbeats())
    known = {"works": 0, "idle": 0, "gone": 0}
    yield _labelled_gauge(
        "workers",
        "Workers of the last day: working, alive without a fold, or gone.",
        "state",
        known | states,
    )


def _counter(name: str, text: str, totals: Totals, total: str, label: str) -> Metric:
    return CounterMetricFamily(f"compilewatch_{name}", text, value=totals.get((total, label), 0))


def _labelled_counter(name: str, text: str, label: str, totals: Totals, total: str) -> Metric:
    family = CounterMetricFamily(f"compilewatch_{name}", text, labels=[label])
    for (of, value), count in sorted(totals.items()):
        if of == total:
            family.add_metric([value], count)
    return family


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"compilewatch_{name}", text, value=value)


def _labelled_gauge(name: str, text: str, label: str, values: dict[str, int]) -> Metric:
    family = GaugeMetricFamily(f"compilewatch_{name}", text, labels=[label])
    for value, count in sorted(values.items()):
        family.add_metric([value], count)
    return family

"""Startup tab: one start phase by phase, the distribution of starts, forecasts, payback, and the
deployments of the version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.http import QueryDict

from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.regressions.evidence_reader import read_warm_up
from dashboard.regressions.models import Verdict
from dashboard.ui.charts.cold_start_plot import ColdStartPlot, build_cold_start_plot
from dashboard.ui.charts.forecast_plot import ForecastPlot, build_forecast_plot
from dashboard.ui.charts.version_styles import BASELINE, JUDGED
from dashboard.ui.http.paging import TablePage, paginate
from dashboard.ui.pages.compiles.cache_misses import misses_card, split_start_times
from dashboard.ui.pages.compiles.live_numerics import count_shadow_calls
from dashboard.ui.pages.startup.payback import Payback, compute_payback
from dashboard.ui.pages.startup.rollout_forecast import (
    MOST_REPLICAS,
    Forecast,
    WarmCacheEstimate,
    estimate_warm_cache,
    forecast_rollouts,
)
from dashboard.ui.pages.startup.start_times import (
    StartRow,
    StartsCard,
    WaterfallRow,
    list_waterfall_rows,
    starts_card,
)
from dashboard.ui.pages.version.queries import VersionData
from dashboard.vocabulary import numbers

LISTED, SELECTABLE = 40, 60
LIVE_MINUTES = 5


@dataclass(frozen=True)
class Rollout:
    """Forecasts of the next rollout with their inputs, and the saving of a warm cache."""

    forecasts: list[Forecast]
    plot: ForecastPlot | None
    warm_cache: WarmCacheEstimate
    replicas: int
    at_once: int


@dataclass(frozen=True)
class Deployed:
    """Deployments and processes of the version: `times` is the number of deployments."""

    times: int
    ended: int
    silent: int
    warm_up: str


@dataclass
class StartupTab:
    """All data of the template."""

    data: VersionData
    starts: StartsCard
    waterfall: list[WaterfallRow]
    listed: list[StartRow]
    listed_page: TablePage
    plot: ColdStartPlot | None
    rollout: Rollout
    payback: Payback
    deployed: Deployed

    @property
    def selectable(self) -> list[StartRow]:
        """The starts of the menu: the slowest ones, and the drawn one."""
        rows = self.starts.rows[:SELECTABLE]
        chosen = self.starts.chosen
        return rows if chosen is None or chosen in rows else [chosen, *rows]

    @property
    def compiling(self) -> str:
        """The part of the drawn start that was spent compiling; empty if unknown."""
        chosen = self.starts.chosen
        if chosen is None or chosen.process.start is None or not chosen.told:
            return ""
        seconds = sum(step.seconds for step in self.starts.steps if step.is_compiling)
        if not seconds or not chosen.total:
            return ""
        return (
            f"Compilation is {numbers.duration(seconds)} of {chosen.text} "
            f"({numbers.percent(seconds / chosen.total)})."
        )

    @property
    def phase_key(self) -> list[tuple[str, str]]:
        """The phases of the start bars in order; all marks of the job are one entry."""
        named = {
            ("Marks of the job" if step.is_mark else step.name, step.css): None
            for step in self.starts.steps
            if step.css != "px"
        }
        return list(named)


def startup_tab(
    data: VersionData,
    *,
    query: QueryDict,
    deployments: Sequence[Deployment],
    verdict: Verdict | None,
    instance: int | None,
    replicas: int | None,
    at_once: int | None,
) -> StartupTab:
    """Builds the tab. `instance` selects the drawn start; `replicas` and `at_once` are the inputs
    of the forecast."""
    starts = starts_card(data.own, data.theirs, budget=data.budgets.cold_start, wanted=instance)
    paged = paginate(query, total=len(starts.rows), size=LISTED, name="spage")
    return StartupTab(
        data=data,
        starts=starts,
        waterfall=list_waterfall_rows(starts),
        listed=starts.rows[paged.first : paged.first + LISTED],
        listed_page=paged,
        plot=_plot(data, starts),
        rollout=forecast_rollout_of(data, replicas=replicas, at_once=at_once),
        payback=payback_of(data),
        deployed=_deployed(data, deployments, verdict),
    )


def forecast_rollout_of(data: VersionData, *, replicas: int | None, at_once: int | None) -> Rollout:
    """The forecasts of a version."""
    live = _live(data)
    wanted = min(max(1, replicas or live or len(data.own) or 1), MOST_REPLICAS)
    cold, warm, untold = split_start_times(data.own, data.answers)
    misses = misses_card(data.own, data.processes, data.answers)
    forecasts = forecast_rollouts(cold, warm, wanted, at_once, untold)
    return Rollout(
        forecasts=forecasts,
        plot=build_forecast_plot(
            [(one.kind, one.text, one.low, one.middle, one.high) for one in forecasts],
            data.budgets.cold_start,
        ),
        warm_cache=estimate_warm_cache(cold, warm, missed=misses.seconds, starts=misses.missed),
        replicas=wanted,
        at_once=min(max(1, at_once or wanted), wanted),
    )


def payback_of(data: VersionData) -> Payback:
    """The payback of a version."""
    return compute_payback(
        data.events,
        data.own,
        data.own_calls,
        data.served,
        count_shadow_calls(data.parities, data.version.pk),
        data.recordings,
    )


def _live(data: VersionData) -> int:
    minute = clock.minute_of(data.now.timestamp())
    return sum(one.last_minute >= minute - LIVE_MINUTES and not one.ended for one in data.own)


def _plot(data: VersionData, starts: StartsCard) -> ColdStartPlot | None:
    sides = [
        (
            data.baseline.name if data.baseline else "",
            BASELINE,
            [(one.start.total, one.name) for one in data.theirs if one.start],
        ),
        (data.version.name, JUDGED, [(row.total, row.process.name) for row in starts.rows]),
    ]
    return build_cold_start_plot(sides, data.budgets.cold_start) if starts.rows else None


def _deployed(
    data: VersionData, deployments: Sequence[Deployment], verdict: Verdict | None
) -> Deployed:
    ended = sum(one.ended for one in data.own)
    return Deployed(
        times=sum(one.version_id == data.version.pk for one in deployments),
        ended=ended,
        silent=len(data.own) - _live(data) - ended,
        warm_up=_format_warm_up(verdict),
    )


def _format_warm_up(verdict: Verdict | None) -> str:
    """The first minutes of processes that the verdict excludes, with their share; empty if nothing
    is excluded."""
    excluded = read_warm_up(verdict.evidence) if verdict else None
    if excluded is None or not excluded.candidate.excluded_minutes:
        return ""
    source = f" ({excluded.source_said})" if excluded.source_said else ""
    return (
        f"first {numbers.format_minutes(excluded.minutes)} of each process{source} not "
        f"compared: {excluded.candidate.share_said} of its minutes"
    )

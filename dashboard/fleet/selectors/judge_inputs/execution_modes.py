"""Execution modes: regions with another runtime or torch.compile mode than in the baseline."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django.db.models import Sum

from dashboard.fleet.models import Deployment, Series, VersionHour
from dashboard.ingest.scrapers.to_report import MODE as UNTOLD
from dashboard.ingest.scrapers.to_report import MODES as OUTSIDE

ARROW = " → "
USUAL_SHARE = 0.05
"""A mode with a smaller share of a version's calls is a start or an exception and is ignored."""


class RegionPlacement(NamedTuple):
    """Place of comparable calls: the same region on the same hardware."""

    region: str
    gpu: str
    world_size: int


class ExecutionMode(NamedTuple):
    """Runtime and torch.compile mode of a region; the mode is empty for other runtimes."""

    runtime: str
    mode: str

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


ModeChanges = Mapping[RegionPlacement, str]
"""Change at a place for display: `torch.compile default → eager`."""


def read_mode_changes(
    *, deployment: Deployment, baseline: Deployment
) -> dict[RegionPlacement, str]:
    """Return the places where the two versions share no mode; these are compared across modes.

    Empty while either version has no calls. Series of a rare mode do not count.
    """
    sides = [_series(side) for side in (baseline, deployment)]
    if {(place, way) for place, way in sides[0].values()} == {
        (place, way) for place, way in sides[1].values()
    }:
        return {}
    calls = _calls({**sides[0], **sides[1]}, deployment)
    before, after = (_find_usual_modes(side, calls) for side in sides)
    others = [place for place in before.keys() & after.keys() if not before[place] & after[place]]
    return {
        place: f"{_format_modes(before[place])}{ARROW}{_format_modes(after[place])}"
        for place in others
    }


def _series(side: Deployment) -> dict[int, tuple[RegionPlacement, ExecutionMode]]:
    rows = Series.objects.filter(version_id=side.version_id, environment=side.environment)
    values = rows.values_list(
        "id", "region", "stratum__gpu", "stratum__world_size", "stratum__runtime", "stratum__mode"
    )
    return {
        id: (RegionPlacement(region, gpu, size), ExecutionMode(runtime, normalize_mode(mode)))
        for id, region, gpu, size, runtime, mode in values
    }


def normalize_mode(mode: str) -> str:
    """Normalise the mode of scraped engines: a newer release that counts failures is not another
    mode."""
    return UNTOLD if mode in OUTSIDE else mode


def _calls(series: Iterable[int], deployment: Deployment) -> dict[int, int]:
    """Return the calls of each series since the day before the deployment, which covers an ended
    baseline's last day."""
    since = deployment.started_minute - 1440
    hours = VersionHour.objects.filter(
        project_id=deployment.project_id,
        series_id__in=list(series),
        day__gte=since // 1440,
        hour__gte=since // 60,
    )
    return dict(hours.values_list("series_id").annotate(Sum("calls")))


def _find_usual_modes(
    side: Mapping[int, tuple[RegionPlacement, ExecutionMode]], calls: Mapping[int, int]
) -> dict[RegionPlacement, set[ExecutionMode]]:
    counts: dict[RegionPlacement, dict[ExecutionMode, int]] = {}
    for id, (place, way) in side.items():
        ways = counts.setdefault(place, {})
        ways[way] = ways.get(way, 0) + calls.get(id, 0)
    return {
        place: {way for way, count in ways.items() if count > USUAL_SHARE * sum(ways.values())}
        for place, ways in counts.items()
        if any(ways.values())
    }


def _format_modes(ways: Iterable[ExecutionMode]) -> str:
    return " or ".join(sorted(str(way) for way in ways))

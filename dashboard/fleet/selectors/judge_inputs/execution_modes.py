"""Regions that a version runs in another way than its baseline did: other runtime, or other mode of
torch.compile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from django.db.models import Sum

from dashboard.fleet.models import Deployment, Series, VersionHour
from dashboard.ingest.scrapers.to_report import MODE as UNTOLD
from dashboard.ingest.scrapers.to_report import MODES as OUTSIDE

ARROW = " → "
USUAL_SHARE = 0.05
"""A way that fewer of a version's calls take is a start or an exception, not how it runs."""


class RegionPlacement(NamedTuple):
    """Where calls can be compared at all: the same region on the same hardware."""

    region: str
    gpu: str
    world_size: int


class ExecutionMode(NamedTuple):
    """How a region runs there; the mode is torch.compile's and empty for others."""

    runtime: str
    mode: str

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


ModeChanges = Mapping[RegionPlacement, str]
"""What changed at a place, as people read it: `torch.compile default → eager`."""


def read_mode_changes(
    *, deployment: Deployment, baseline: Deployment
) -> dict[RegionPlacement, str]:
    """Places where the two versions have no way in common; there they are compared across their
    ways, for the way is what changed.

    Empty while either version has no calls. Series of a way that is rare in its version do not
    count.
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
    """That a newer release of an engine counts its failures is no other way to run."""
    return UNTOLD if mode in OUTSIDE else mode


def _calls(series: Iterable[int], deployment: Deployment) -> dict[int, int]:
    """Calls of each series from the day before the deployment on: a baseline that has ended is
    known by its last day."""
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

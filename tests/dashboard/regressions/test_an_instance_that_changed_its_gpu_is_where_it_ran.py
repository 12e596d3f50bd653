"""Memory of a process counts for the GPU type of that minute, even if the process returned on
another GPU type under the same id."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import Deployment, Instance
from dashboard.regressions.comparison_cache import replay_comparison
from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge.process.levels import LevelSeries
from tests.dashboard.regressions.conftest import NOW_MINUTE

pytestmark = pytest.mark.django_db


def types_compared() -> set[str]:
    newer, older = (
        Deployment.objects.get(version__name=name) for name in ("2026.11.3", "2026.11.2")
    )
    comparison = replay_comparison(
        deployment=newer, baseline=older, until=NOW_MINUTE, settings=PRODUCTION
    )
    series = next(
        series for series, _ in comparison.process.entries if isinstance(series, LevelSeries)
    )
    return {str(stratum[0]) for stratum in series.strata() if series.numbers("candidate", stratum)}


def test_memory_stays_in_the_stratum_of_the_calls(
    side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    before = types_compared()
    assert before
    Instance.objects.filter(version__name="2026.11.3").update(gpu="NVIDIA B200")
    assert types_compared() == before

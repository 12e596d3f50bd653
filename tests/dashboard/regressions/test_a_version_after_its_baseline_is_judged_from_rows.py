"""A rollout on the same hosts, from reports to a verdict: the day before is read on demand, and
late data changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from dashboard.demo.simulated_fleet import SimulatedInstance, build_fleet, build_instances
from dashboard.regressions.comparison_cache import clear_comparisons
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.models import Comparison, Verdict
from tests.dashboard.regressions.conftest import NOW_MINUTE, Clock

pytestmark = pytest.mark.django_db

BEFORE, AFTER = 200, 50
CHANGE = NOW_MINUTE - AFTER
Sent = Callable[..., None]


@pytest.fixture
def one_after_the_other(
    time_is: Clock,
) -> Iterator[tuple[list[SimulatedInstance], list[SimulatedInstance]]]:
    """Two instances of the old version until the change, then two of the new, slower version on the
    same hosts; not sent yet."""
    clear_comparisons()
    found = build_instances(build_fleet(judged_minutes=AFTER)[:1], start_minute=NOW_MINUTE)
    versions: dict[str, list[SimulatedInstance]] = {}
    for instance in found:
        versions.setdefault(instance.identity.version, []).append(instance)
    old, new = (versions[name][:2] for name in sorted(versions))
    for number, (before, after) in enumerate(zip(old, new, strict=True)):
        before.first_minute, after.first_minute = CHANGE - BEFORE, CHANGE
        for instance in (before, after):
            instance.identity = replace(instance.identity, host=f"host-{number}")
    yield old, new
    clear_comparisons()


def answer() -> tuple[str, str, dict[str, Any]]:
    verdict = Verdict.objects.get(current=True, deployment__version__name="2026.11.3")
    return verdict.kind, verdict.sentence, verdict.evidence


def test_the_version_is_compared_with_the_past_of_its_hosts(
    one_after_the_other: Any, send: Sent
) -> None:
    old, new = one_after_the_other
    for instance in old:
        send(instance, last=BEFORE)
    for instance in new:
        send(instance)
    deployments_judge()
    kind, sentence, evidence = answer()
    p50 = next(row for row in evidence["evidence"] if row["metric"] == "p50")
    assert (kind, evidence["layouts"], p50["layouts"]) == (
        "roll_back",
        ["past_by_load"],
        ["past_by_load"],
    )
    assert {dot["instance"] for dot in p50["dots"]} == {"host-0", "host-1"}
    assert "than 2026.11.2 on the same hosts earlier, adjusted for load, " in sentence
    assert " ms, on both hosts since " in sentence.replace("\u00a0", " ")


def test_late_data_of_the_day_before_gives_the_same_result_in_the_end(
    one_after_the_other: Any, send: Sent
) -> None:
    old, new = one_after_the_other
    send(old[0], last=BEFORE)
    send(old[1], first=60, last=BEFORE)
    send(new[0])
    send(new[1], first=20)
    deployments_judge()
    incomplete = answer()
    send(old[1], last=59)
    send(new[1], last=19)
    deployments_judge()
    in_the_end = answer()
    assert in_the_end != incomplete

    clear_comparisons()
    Verdict.objects.all().delete()
    Comparison.objects.all().delete()
    deployments_judge()
    assert answer() == in_the_end

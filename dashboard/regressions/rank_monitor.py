"""Rank monitor: checks jobs with several ranks every few seconds, and evaluates a version
immediately when its ranks diverge."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

from dashboard.common import clock
from dashboard.fleet.fold.keys import OTHER
from dashboard.fleet.models import Deployment
from dashboard.fleet.selectors.jobs import LiveRank, list_live_ranks
from dashboard.fleet.selectors.judge_inputs.judge_minutes import closed_minute
from dashboard.regressions.due_deployments import list_deployments
from dashboard.regressions.evidence_reader import read_facts
from dashboard.regressions.judge.certain_facts import FRESH_MINUTES, ObservedFact
from dashboard.regressions.judge_service import deployment_judge
from dashboard.regressions.models import Verdict
from dashboard.regressions.rank_facts import read_rank_facts
from dashboard.regressions.settings_resolver import SettingsResolver

logger = logging.getLogger(__name__)

LIVE_MINUTES = 5
"""Ranks that have been silent for longer have no new data."""
FACT_KIND = "ranks_diverged"

VersionPlace = tuple[int, str]
"""ModelVersion.id and the environment."""
_last_looks: dict[VersionPlace, tuple[tuple[int, datetime], ...]] = {}
"""The last report of every rank when this process last checked."""


def clear_last_looks() -> None:
    """Makes the next check read every job, as after a restart."""
    _last_looks.clear()


def ranks_watch() -> int:
    """Evaluates every version whose ranks diverged since its last evaluation. Returns the number of
    written verdicts.

    The judge finds the same at the end of each minute; the monitor is only earlier.
    """
    now_minute = closed_minute(clock.unix()) + 1
    places: dict[VersionPlace, list[LiveRank]] = {}
    for one in list_live_ranks(since_minute=clock.minute_of(clock.unix()) - LIVE_MINUTES):
        places.setdefault((one.version_id, one.environment), []).append(one)
    for place in _last_looks.keys() - places.keys():
        del _last_looks[place]
    written = 0
    for place, instances in sorted(places.items()):
        reported = tuple(sorted((one.pk, one.last_seen_at) for one in instances))
        if _last_looks.get(place) == reported:
            continue
        try:
            written += _place_watch(
                place, read_rank_facts(instances=instances, arm="candidate"), now_minute
            )
            _last_looks[place] = reported
        except Exception:
            # A version whose evaluation fails must not block the others. It is checked again.
            logger.exception("the ranks of version %s in %s could not be checked", *place)
    return written


def _place_watch(place: VersionPlace, facts: list[ObservedFact], now_minute: int) -> int:
    version, environment = place
    if not facts or environment == OTHER:
        return 0
    found = (
        Deployment.objects.filter(version_id=version, environment=environment, ended_minute=None)
        .exclude(version__name=OTHER)
        .first()
    )
    if found is None or not {
        (fact.about, fact.instance) for fact in facts if _fresh(fact, now_minute)
    } - _list_reported(found):
        return 0
    ordered = list_deployments(model_id=found.model_id, environment=environment)
    number = next(number for number, one in enumerate(ordered) if one.pk == found.pk)
    settings = SettingsResolver(project_id=found.project_id).of(
        project_id=found.project_id, model_id=found.model_id
    )
    return int(
        deployment_judge(
            deployment=ordered[number],
            earlier=ordered[:number],
            now_minute=now_minute,
            settings=settings,
        )
    )


def _fresh(fact: ObservedFact, now_minute: int) -> bool:
    return fact.until is None or now_minute - fact.until <= FRESH_MINUTES


def _list_reported(deployment: Deployment) -> set[tuple[str, str]]:
    """The divergences that are part of this deployment's verdict."""
    evidence: Any = (
        Verdict.objects.filter(deployment=deployment, current=True)
        .values_list("evidence", flat=True)
        .first()
    )
    return {
        (fact.about, instance)
        for fact in read_facts(evidence)
        if fact.kind == FACT_KIND
        for instance in fact.instances or ()
    }

"""Every metric that the judge compares and every certain fact has an entry in the metric table,
with the judge's unit and direction."""

from typing import get_args

import pytest

from dashboard.regressions.judge.certain_facts import FactKind
from dashboard.regressions.judge.settings import PRODUCTION
from dashboard.vocabulary.metrics import ALIASES, METRICS, find_metric

JUDGED = (*PRODUCTION.metrics, *PRODUCTION.process_metrics)


@pytest.mark.parametrize("metric", JUDGED, ids=lambda metric: metric.name)
def test_a_judged_metric_has_its_unit_and_its_direction(metric) -> None:
    entry = METRICS[metric.name]
    worse = "down" if getattr(metric, "worse", 1) < 0 else "up"
    assert (entry.unit, entry.direction) == (metric.unit, worse)
    assert entry.title and entry.detail and entry.phrase


@pytest.mark.parametrize("kind", get_args(FactKind))
def test_a_certain_fact_has_a_title(kind: str) -> None:
    assert METRICS[kind].kind == "fact"


@pytest.mark.parametrize("old", ALIASES)
def test_an_old_key_has_the_entry_of_its_new_key(old: str) -> None:
    assert old not in METRICS
    assert find_metric(old) is METRICS[ALIASES[old]]


def test_an_unknown_key_is_its_own_name() -> None:
    assert find_metric("power_draw").name == "power draw"


def test_a_share_names_its_whole() -> None:
    shares = {entry.key: entry.share_of for entry in METRICS.values() if entry.kind == "share"}
    assert shares == {
        "eager": "calls",
        "errors": "calls",
        "stalled": "calls",
        "stalled_time": "call time",
        "cache": "compile seconds",
    }

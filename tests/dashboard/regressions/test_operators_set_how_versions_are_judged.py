"""Detection settings: each has bounds and an error sentence; a model's setting overrides its
project's, and a muted metric is shown but not evaluated."""

from __future__ import annotations

import pytest

from dashboard.regressions.judge import PRODUCTION, judge
from dashboard.regressions.judge.settings import Metric
from dashboard.regressions.judge.settings_overrides import (
    ENOUGH_PAIRS,
    LearnedMetric,
    OverrideError,
    build_settings,
    check_overrides,
    list_muted_metrics,
    list_settings,
    merge_layers,
)
from tests.dashboard.regressions.fleets import every_minute, instance

NAMES = list_settings()


def metric(settings: object, name: str) -> Metric:
    return next(found for found in settings.metrics if found.name == name)  # type: ignore[attr-defined,no-any-return]


def test_without_overrides_the_settings_are_the_calibrated_ones() -> None:
    assert build_settings({}) == PRODUCTION


def test_every_metric_except_stand_ins_can_be_muted() -> None:
    stand_ins = {found.name for found in PRODUCTION.metrics if getattr(found, "instead_of", None)}
    assert {
        name.removesuffix(".muted") for name in NAMES if name.endswith(".muted")
    } | stand_ins == {found.name for found in (*PRODUCTION.metrics, *PRODUCTION.process_metrics)}


def test_every_default_is_within_its_bounds_and_is_read_back_as_written() -> None:
    for setting in NAMES.values():
        assert setting.effect
        assert setting.read(f"{setting.said(setting.default)} {setting.unit}") == pytest.approx(
            setting.default
        )
    assert check_overrides({name: setting.default for name, setting in NAMES.items()})


def test_a_stand_in_metric_follows_the_settings_of_its_original() -> None:
    settings = build_settings({"p50.smallest_effect": 0.08, "p50.muted": True})
    assert {
        getattr(metric(settings, name), "smallest_effect", None) for name in ("p50", "gpu_p50")
    } == {0.08}
    assert metric(settings, "gpu_p50").muted


def test_equal_overrides_give_equal_settings() -> None:
    choices = {"p50.smallest_effect": 0.08, "watch_alpha": 0.1}
    assert build_settings(choices) == build_settings(dict(reversed(choices.items())))
    assert build_settings(choices) != build_settings(choices | {"eager.muted": True})


def test_a_models_override_has_priority_over_its_projects() -> None:
    settings = build_settings(
        merge_layers({"p50.tolerated": 0.2, "roll_back_alpha": 0.02}, {"p50.tolerated": 0.15})
    )
    assert getattr(metric(settings, "p50"), "tolerated", None) == 0.15
    assert settings.roll_back_alpha == 0.02


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        (
            "p50.smallest_effect",
            "0.05",
            "Smallest effect of p50 is 0.05%, expected a number from 0.5 to 100%.",
        ),
        (
            "p50.smallest_effect",
            "much",
            "Smallest effect of p50 is 'much', expected a number from 0.5 to 100%.",
        ),
        (
            "p50.smallest_effect",
            "nan",
            "Smallest effect of p50 is nan%, expected a number from 0.5 to 100%.",
        ),
        (
            "p50.hold_minutes",
            "2.5",
            "Minutes before ROLL BACK of p50 is 2.5 min, expected a whole number of "
            "minutes from 2 to 240.",
        ),
        (
            "roll_back_alpha",
            "inf",
            "False-positive rate of ROLL BACK is inf%, expected a number from 0.1 to 20%.",
        ),
        ("eager.muted", "perhaps", "Muted of eager is 'perhaps', expected yes or no."),
    ],
)
def test_an_invalid_value_is_a_sentence_that_names_the_setting(
    name: str, text: str, said: str
) -> None:
    with pytest.raises(OverrideError) as refused:
        NAMES[name].read(text)
    assert str(refused.value) == said
    assert refused.value.field == name


@pytest.mark.parametrize(
    ("choices", "said"),
    [
        (
            {"p50.smallest_effect": 0.20},
            "Smallest effect of p50 is 20%, expected at most 10%: a change too small",
        ),
        (
            {"p50.smallest_effect": 0.20, "p50.tolerated": 0.1},
            "Tolerated change of p50 is 10%, expected at least 20%: a change too",
        ),
        (
            {"roll_back_alpha": 0.05},
            "False-positive rate of ROLL BACK is 5%, expected at most 2.5%: WATCH must be raised "
            "before ROLL BACK.",
        ),
        (
            {"roll_back_alpha": 0.05, "watch_alpha": 0.03},
            "False-positive rate of WATCH is 3%, expected at least 5%: WATCH must be raised "
            "before ROLL BACK.",
        ),
        (
            {"p51.muted": True},
            "p51.muted is not a setting, expected one of roll_back_alpha, watch_alpha",
        ),
    ],
)
def test_contradictory_overrides_are_refused(choices: dict[str, float], said: str) -> None:
    with pytest.raises(OverrideError) as refused:
        check_overrides(choices)
    assert str(refused.value).startswith(said)


def test_stored_overrides_that_are_no_longer_valid_are_ignored() -> None:
    assert (
        build_settings(
            {
                "gone.muted": True,
                "p50.tolerated": 99.0,
                "watch_alpha": "x",
                "p50.hold_minutes": True,
            }
        )
        == PRODUCTION
    )


def test_learned_values_apply_from_thirty_pairs() -> None:
    taught = ((10, 0.00268), (60, 0.00113))
    few = {"p50": LearnedMetric(ENOUGH_PAIRS - 1, taught)}
    assert build_settings({}, few) == PRODUCTION
    enough = build_settings({}, {"p50": LearnedMetric(ENOUGH_PAIRS, taught)})
    assert getattr(metric(enough, "p50"), "prior_variance", None) == ((10, 0.0027), (60, 0.0011))


def test_a_negligible_lesson_changes_no_settings() -> None:
    one, other = (
        build_settings({}, {"p50": LearnedMetric(40, ((10, variance),))})
        for variance in (0.002701, 0.002744)
    )
    assert one == other


def slow_fleet() -> list[object]:
    rows = [instance(name) for name in ("b1", "b2", "b3")] + [
        instance(name, p50=0.015) for name in ("c1", "c2", "c3")
    ]
    return list(every_minute(rows, 60))


def test_a_muted_metric_is_shown_and_not_evaluated() -> None:
    loud = judge(slow_fleet(), now_minute=60, deployed_minute=0)  # type: ignore[arg-type]
    settings = build_settings({"p50.muted": True})
    quiet = judge(slow_fleet(), now_minute=60, deployed_minute=0, settings=settings)  # type: ignore[arg-type]
    assert loud.verdict == "roll_back"
    assert quiet.verdict == "not_enough_data"
    row = next(row for row in quiet.evidence if row.metric == "p50")
    assert row.muted
    assert not row.judged
    assert row.change == pytest.approx(0.5)
    assert list_muted_metrics(settings)[:1] == ["p50"]


def test_with_every_level_muted_no_version_is_healthy() -> None:
    every = build_settings({name: True for name in NAMES if name.endswith(".muted")})
    rows = every_minute([instance(name) for name in ("b1", "b2", "b3", "c1", "c2", "c3")], 120)
    outcome = judge(rows, now_minute=120, deployed_minute=0, settings=every)
    assert (outcome.verdict, outcome.reason) == ("not_enough_data", "muted")


def test_a_larger_smallest_effect_ignores_a_small_change() -> None:
    settings = build_settings({"p50.smallest_effect": 0.9, "p50.tolerated": 0.9})
    outcome = judge(slow_fleet(), now_minute=60, deployed_minute=0, settings=settings)  # type: ignore[arg-type]
    assert outcome.verdict != "roll_back"

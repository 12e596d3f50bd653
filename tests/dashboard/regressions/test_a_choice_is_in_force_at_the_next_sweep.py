"""Detection settings: a change is audited, and live versions are re-evaluated immediately; other
projects and models are unaffected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dashboard.accounts.models import AuditEntry, User
from dashboard.common import clock
from dashboard.demo.simulated_fleet import SimulatedInstance
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.judge import PRODUCTION
from dashboard.regressions.judge.settings_overrides import ENOUGH_PAIRS, OverrideError
from dashboard.regressions.judge_service import deployments_judge
from dashboard.regressions.judging_settings import detection_settings_set
from dashboard.regressions.models import JudgingChoice, LearnedVariance, Verdict
from dashboard.regressions.settings_resolver import SettingsResolver

pytestmark = pytest.mark.django_db


@pytest.fixture
def model(project: Project) -> WatchedModel:
    return WatchedModel.objects.create(
        project=project, name="ranker", first_seen_at=clock.now(), last_seen_at=clock.now()
    )


def test_a_setting_of_a_model_applies_only_to_this_model(
    project: Project, other_project: Project, model: WatchedModel
) -> None:
    detection_settings_set(
        project=project, values={"watch_alpha": 0.1, "p50.smallest_effect": 0.04}
    )
    detection_settings_set(project=project, model=model, values={"p50.smallest_effect": 0.03})
    book = SettingsResolver()
    own, others = (
        book.of(project_id=project.pk, model_id=model.pk),
        book.of(project_id=project.pk, model_id=model.pk + 1),
    )
    assert (own.watch_alpha, others.watch_alpha) == (0.1, 0.1)
    assert [getattr(found.metrics[0], "smallest_effect", None) for found in (own, others)] == [
        0.03,
        0.04,
    ]
    assert book.of(project_id=other_project.pk) == PRODUCTION
    assert book.of(project_id=project.pk) is others


def test_the_audit_log_names_person_and_change(
    project: Project, user: User, model: WatchedModel
) -> None:
    detection_settings_set(
        project=project, values={"watch_alpha": 0.1, "eager.muted": True}, actor=user
    )
    assert detection_settings_set(project=project, values={"eager.muted": True}, actor=user)
    assert not detection_settings_set(project=project, values={"eager.muted": True}, actor=user)
    detection_settings_set(project=project, model=model, values={"eager.muted": False}, actor=user)
    rows = (
        AuditEntry.objects.filter(action="judging.set")
        .order_by("pk")
        .values_list("actor_name", "subject", "before", "after")
    )
    assert list(rows) == [
        ("ada", "ranking", {}, {"eager.muted": True, "watch_alpha": 0.1}),
        ("ada", "ranking", {"watch_alpha": 0.1}, {}),
        ("ada", "ranker", {"model": model.pk}, {"eager.muted": False, "model": model.pk}),
    ]


def test_an_invalid_value_changes_nothing(project: Project, model: WatchedModel) -> None:
    detection_settings_set(project=project, values={"p50.smallest_effect": 0.09})
    with pytest.raises(OverrideError, match="Tolerated change of p50 is 6%, expected at least 9%"):
        detection_settings_set(project=project, model=model, values={"p50.tolerated": 0.06})
    assert JudgingChoice.objects.count() == 1


def test_a_change_re_evaluates_live_versions_and_its_reversal_does_too(
    project: Project, side_by_side: list[SimulatedInstance], send: Callable[..., None]
) -> None:
    for instance in side_by_side:
        send(instance)
    deployments_judge()
    current = Verdict.objects.filter(current=True, deployment__version__name="2026.11.3")
    assert current.get().kind == "roll_back"
    model = WatchedModel.objects.get()
    muted = {
        f"{metric.name}.muted": True
        for metric in (*PRODUCTION.metrics, *PRODUCTION.process_metrics)
        if not getattr(metric, "instead_of", None)
    }
    detection_settings_set(project=project, model=model, values=muted)
    deployments_judge()
    assert current.get().kind == "not_enough_data"
    assert all(row["muted"] and not row["judged"] for row in current.get().evidence["evidence"])
    detection_settings_set(project=project, model=model, values={})
    deployments_judge()
    assert current.get().kind == "roll_back"


def test_learned_settings_apply_from_the_required_number_of_pairs(
    project: Project, other_project: Project
) -> None:
    common = {"metric": "p50", "layout": "", "learned_at": clock.now()}
    for minutes, variance in ((10, 0.0027), (60, 0.0011)):
        LearnedVariance.objects.create(
            project=project, minutes=minutes, variance=variance, pairs=ENOUGH_PAIRS, **common
        )
        LearnedVariance.objects.create(
            project=other_project,
            minutes=minutes,
            variance=variance,
            pairs=ENOUGH_PAIRS - 1,
            **common,
        )
    book = SettingsResolver()
    assert getattr(book.of(project_id=project.pk).metrics[0], "prior_variance", None) == (
        (10, 0.0027),
        (60, 0.0011),
    )
    assert book.of(project_id=other_project.pk) == PRODUCTION

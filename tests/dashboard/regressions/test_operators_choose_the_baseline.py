"""An operator pins a version or accepts it as the new baseline: later versions in its environment
are compared with it until the choice ends."""

from __future__ import annotations

import pytest

from dashboard.accounts.models import AuditEntry, User
from dashboard.alerts.models import Alert
from dashboard.alerts.services import alerts_sync
from dashboard.common import clock
from dashboard.fleet.models import Deployment, ModelVersion, WatchedModel
from dashboard.projects.models import Project
from dashboard.regressions.baseline_choices import ChoiceError, baseline_choice_end, baseline_choose
from dashboard.regressions.baseline_selection import select_baseline
from dashboard.regressions.models import BaselineChoice, Comparison, Verdict
from dashboard.regressions.selectors import group_baseline_choices, list_baseline_choices

pytestmark = pytest.mark.django_db
START = 29_900_000


@pytest.fixture
def model(project: Project) -> WatchedModel:
    return WatchedModel.objects.create(
        project=project, name="ranker", first_seen_at=clock.now(), last_seen_at=clock.now()
    )


def deployed(
    model: WatchedModel, name: str, *, start: int, environment: str = "production"
) -> Deployment:
    seen = {"first_seen_at": clock.now(), "last_seen_at": clock.now()}
    version, _ = ModelVersion.objects.get_or_create(
        project=model.project, model=model, name=name, defaults=seen
    )
    return Deployment.objects.create(
        project=model.project,
        model=model,
        version=version,
        environment=environment,
        started_minute=start,
        last_minute=START + 50,
    )


def choose(
    model: WatchedModel,
    name: str,
    user: User,
    kind: str = "pin",
    note: str = "",
    environment: str = "production",
) -> BaselineChoice:
    return baseline_choose(
        model=model, environment=environment, version=name, kind=kind, note=note, actor=user
    )


def baseline_sentence(deployment: Deployment, kind: str) -> Verdict:
    Verdict.objects.filter(deployment=deployment, current=True).update(current=False)
    return Verdict.objects.create(
        project=deployment.project,
        deployment=deployment,
        kind=kind,
        sentence="p50 rose.",
        evidence={},
        minute=START,
        created_at=clock.now(),
    )


def test_a_pin_applies_until_it_ends(model: WatchedModel, user: User) -> None:
    earlier = [deployed(model, "1", start=START - 1000), deployed(model, "2", start=START - 500)]
    newest = deployed(model, "3", start=START)
    Verdict.objects.create(
        project=model.project,
        deployment=earlier[1],
        kind="healthy",
        sentence="",
        evidence={},
        minute=START,
        created_at=clock.now(),
    )
    assert select_baseline(deployment=newest, earlier=earlier) == earlier[1]
    choice = choose(model, "1", user, note="before the rewrite")
    assert select_baseline(deployment=newest, earlier=earlier) == earlier[0]
    baseline_choice_end(choice=choice, actor=user)
    baseline_choice_end(choice=choice, actor=user)
    assert select_baseline(deployment=newest, earlier=earlier) == earlier[1]
    choice.refresh_from_db()
    assert choice.ended_by_name == "ada"
    record = AuditEntry.objects.filter(action__startswith="baseline.").order_by("pk")
    sides = [[side and side["version"] for side in (entry.before, entry.after)] for entry in record]
    assert sides == [[None, "1"], ["1", None]]


def test_a_new_choice_ends_the_previous_one(model: WatchedModel, user: User) -> None:
    for number in ("1", "2"):
        deployed(model, number, start=START)
    first = choose(model, "1", user)
    assert choose(model, "1", user) == first
    second = choose(model, "2", user)
    assert list(BaselineChoice.objects.filter(ended_at=None)) == [second]
    assert (
        group_baseline_choices(list_baseline_choices(model=model, environment="production")).active
        == second
    )


def test_one_version_name_in_two_environments_is_two_choices(
    model: WatchedModel, user: User
) -> None:
    sides = {}
    for environment in ("production", "staging"):
        earlier = [
            deployed(model, name, start=START - 100 * age, environment=environment)
            for name, age in (("1", 2), ("2", 1))
        ]
        sides[environment] = (deployed(model, "3", start=START, environment=environment), earlier)
    choose(model, "1", user, environment="staging")
    found = {
        name: select_baseline(deployment=newest, earlier=earlier)
        for name, (newest, earlier) in sides.items()
    }
    assert {name: baseline.version.name for name, baseline in found.items() if baseline} == {
        "production": "2",
        "staging": "1",
    }
    assert (
        group_baseline_choices(list_baseline_choices(model=model, environment="production")).active
        is None
    )


def test_any_of_five_hundred_versions_can_be_pinned(model: WatchedModel, user: User) -> None:
    seen = {
        "project": model.project,
        "model": model,
        "first_seen_at": clock.now(),
        "last_seen_at": clock.now(),
    }
    versions = ModelVersion.objects.bulk_create(
        [ModelVersion(name=f"v{number}", **seen) for number in range(500)]
    )
    common = {
        "project": model.project,
        "model": model,
        "environment": "production",
        "last_minute": START + 50,
    }
    rows = [
        Deployment(version=version, started_minute=START - 500 + at, **common)
        for at, version in enumerate(versions)
    ]
    deployments = Deployment.objects.bulk_create(rows)
    choose(model, "v3", user)
    assert select_baseline(deployment=deployments[-1], earlier=deployments[:-1]) == deployments[3]
    assert select_baseline(deployment=deployments[2], earlier=deployments[:2]) != deployments[3]


def test_live_versions_are_re_evaluated(model: WatchedModel, user: User) -> None:
    deployment = deployed(model, "1", start=START)
    Comparison.objects.create(project=model.project, deployment=deployment, judged_minute=START)
    choose(model, "1", user)
    assert Comparison.objects.get().judged_minute == 0


@pytest.mark.parametrize(
    ("name", "kind", "note", "expected"),
    [
        ("9", "pin", "", "production has no version '9': choose a version that has run there."),
        (
            "staged",
            "pin",
            "",
            "production has no version 'staged': choose a version that has run there.",
        ),
        (
            "other",
            "pin",
            "",
            "production has no version 'other': choose a version that has run there.",
        ),
        (
            "1",
            "accept",
            " ",
            "Enter a note that explains why this level is the new baseline; the note is shown with the verdict.",
        ),
        ("1", "pin", "x" * 2001, "The note has 2,001 characters, expected at most 2,000."),
        ("1", "guess", "", "Choose an action: pin the version or accept it."),
    ],
)
def test_an_invalid_choice_is_one_sentence(
    model: WatchedModel, user: User, name: str, kind: str, note: str, expected: str
) -> None:
    deployed(model, "1", start=START)
    deployed(model, "other", start=START)
    deployed(model, "staged", start=START, environment="staging")
    with pytest.raises(ChoiceError) as refused:
        choose(model, name, user, kind=kind, note=note)
    assert str(refused.value) == expected


def test_accepting_closes_the_alert_with_the_note_and_keeps_the_verdict(
    model: WatchedModel, user: User
) -> None:
    elsewhere = deployed(model, "2", start=START, environment="staging")
    deployment = deployed(model, "2", start=START)
    for one in (elsewhere, deployment):
        baseline_sentence(one, "watch")
    alerts_sync()
    choose(model, "2", user, kind="accept", note="it does more work now")
    alert = Alert.objects.get(deployment=deployment)
    assert (alert.state, alert.outcome) == ("resolved", "accepted")
    last = alert.events.order_by("-pk").first()
    assert last is not None
    assert last.text == "Accepted as new baseline by ada: it does more work now"
    assert Verdict.objects.get(deployment=deployment, current=True).kind == "watch"
    assert Alert.objects.get(deployment=elsewhere).state == "open"


def test_an_accepted_version_raises_no_alert_unless_it_gets_worse(
    model: WatchedModel, user: User
) -> None:
    deployment = deployed(model, "2", start=START)
    baseline_sentence(deployment, "watch")
    alerts_sync()
    choose(model, "2", user, kind="accept", note="it does more work now")
    for kind in ("healthy", "watch"):
        baseline_sentence(deployment, kind)
        alerts_sync()
    assert Alert.objects.count() == 1
    baseline_sentence(deployment, "roll_back")
    alerts_sync()
    assert Alert.objects.filter(deployment=deployment).exclude(state="resolved").count() == 1

"""Deploy gate: HEALTHY passes, ROLL BACK fails, everything else is inconclusive; missing data never
passes."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.alerts.models import Alert
from dashboard.alerts.services import alert_dismiss, alerts_sync
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project
from dashboard.regressions.baseline_choices import baseline_choice_end, baseline_choose
from dashboard.regressions.judging_settings import schedule_rejudge
from dashboard.regressions.models import Comparison
from tests.dashboard.alerts.conftest import fleet, new, old, time
from tests.dashboard.alerts.fleet import Fleet, Time

__all__ = ["fleet", "new", "old", "time"]
pytestmark = pytest.mark.django_db


@pytest.fixture
def ask(client: Client, api_key: str) -> Any:
    """`ask(version="2026.11.3")`: the answer of the gate as a dictionary."""

    def asked(status: int = 200, **query: str) -> dict[str, Any]:
        query = {"model": "ranker", "version": "2026.11.3", "environment": "prod", **query}
        answer = client.get("/api/v1/gate", query, headers={"authorization": f"Bearer {api_key}"})
        assert answer.status_code == status, answer.content
        found: dict[str, Any] = answer.json()
        return found

    return asked


def judged(deployment: Deployment) -> None:
    minute = clock.minute_of(clock.unix())
    Comparison.objects.update_or_create(
        deployment=deployment,
        defaults={"project_id": deployment.project_id, "judged_minute": minute},
    )
    Deployment.objects.filter(pk=deployment.pk).update(last_minute=minute)


@pytest.mark.parametrize(
    ("kind", "state", "wait"),
    [
        ("healthy", "pass", False),
        ("watch", "inconclusive", True),
        ("roll_back", "fail", False),
        ("not_enough_data", "inconclusive", True),
    ],
)
def test_each_verdict_maps_to_one_of_three_states(
    ask: Any, fleet: Fleet, old: Deployment, new: Deployment, kind: str, state: str, wait: bool
) -> None:
    verdict = fleet.say(new, kind, "The sentence.", baseline=old)
    judged(new)
    found = ask()
    assert (found["state"], found["wait"], found["verdict"], found["sentence"]) == (
        state,
        wait,
        kind,
        "The sentence.",
    )
    assert (found["model"], found["version"], found["environment"], found["baseline"]) == (
        "ranker",
        "2026.11.3",
        "prod",
        "2026.11.2",
    )
    assert found["since"] == clock.at_minute(verdict.since_minute or 0).isoformat()
    assert found["evidence_url"].endswith(
        f"/p/ranking/models/{new.model_id}/compare?a={old.version_id}&b={new.version_id}"
    )
    assert found["reasons"] and all(
        reason["code"] and reason["text"] for reason in found["reasons"]
    )
    if kind == "roll_back":
        assert found["reasons"][0]["text"].startswith("p50: +31")


def test_the_bound_of_healthy_is_in_the_answer(ask: Any, fleet: Fleet, new: Deployment) -> None:
    verdict = fleet.say(new, "healthy")
    verdict.evidence = {**verdict.evidence, "bound": 0.06}
    verdict.save()
    judged(new)
    assert ask()["bound"] == 0.06


SWAP = {
    "kind": "swap_hosts",
    "arm": "candidate",
    "stratum": "H100",
    "count": 1,
    "visible": None,
    "minutes": 60,
}
HELD_BY = {
    "metric": "throughput",
    "region": "forward",
    "change": 0.25,
    "low": -0.2,
    "high": 1.0,
    "visible_90": 1.0,
    "helps": "instances",
}


def test_the_answer_has_the_advice_and_the_metric_that_holds_it(
    ask: Any, fleet: Fleet, new: Deployment
) -> None:
    verdict = fleet.say(new, "not_enough_data")
    verdict.evidence = {**verdict.evidence, "next_step": SWAP, "held_by": HELD_BY}
    verdict.save()
    judged(new)
    found = ask()
    assert found["state"] == "inconclusive"
    assert (found["next_step"]["kind"], found["next_step"]["minutes"]) == ("swap_hosts", 60)
    assert found["next_step"]["text"].startswith("Swap the versions between the two hosts for 1")
    held_by = found["held_by"]
    assert (held_by["metric"], held_by["helps"]) == ("throughput", "instances")
    assert [round(held_by[key], 3) for key in ("change", "low", "high", "visible_90")] == [
        *(-0.2, -0.5, 0.25, -0.5)
    ], "a change of the metric itself"


@pytest.mark.parametrize("kind", ["healthy", "roll_back", "not_enough_data"])
def test_a_verdict_without_advice_has_none(
    ask: Any, fleet: Fleet, new: Deployment, kind: str
) -> None:
    fleet.say(new, kind)
    judged(new)
    assert (ask()["next_step"], ask()["held_by"]) == (None, None)


def test_unknown_names_are_inconclusive(ask: Any, fleet: Fleet, new: Deployment) -> None:
    for query, code in (
        ({"model": "nobody"}, "unknown_model"),
        ({"version": "9"}, "unknown_version"),
        ({"environment": "moon"}, "not_deployed"),
        ({}, "not_judged"),
    ):
        found = ask(**query)
        assert (found["state"], found["wait"], found["verdict"], found["reasons"][0]["code"]) == (
            "inconclusive",
            True,
            None,
            code,
        )


@pytest.mark.parametrize("what", ["silent", "judge_late", "ended"])
def test_an_old_healthy_verdict_does_not_pass(
    ask: Any, fleet: Fleet, new: Deployment, time: Time, what: str
) -> None:
    fleet.say(new, "healthy")
    judged(new)
    assert ask()["state"] == "pass"
    time.go(11 * 60)
    if what != "silent":
        Deployment.objects.filter(pk=new.pk).update(last_minute=clock.minute_of(clock.unix()))
    if what == "ended":
        fleet.end(new)
    found = ask()
    assert (found["state"], found["reasons"][0]["code"], found["wait"]) == (
        "inconclusive",
        what,
        what != "ended",
    )


def test_a_judge_that_stopped_before_the_re_evaluation_does_not_pass(
    ask: Any, fleet: Fleet, new: Deployment, time: Time
) -> None:
    fleet.say(new, "healthy")
    judged(new)
    schedule_rejudge(project_id=new.project_id)
    assert ask()["state"] == "pass", "the re-evaluation is due within seconds"
    time.go(11 * 60)
    Deployment.objects.filter(pk=new.pk).update(last_minute=clock.minute_of(clock.unix()))
    found = ask()
    assert (found["state"], found["reasons"][0]["code"], found["wait"]) == (
        "inconclusive",
        "judge_late",
        True,
    )


def test_roll_back_still_fails_after_the_version_has_ended(
    ask: Any, fleet: Fleet, new: Deployment, time: Time
) -> None:
    fleet.say(new, "roll_back")
    time.go(3600)
    fleet.end(new)
    assert ask()["state"] == "fail"


def test_a_first_version_does_not_ask_to_wait(ask: Any, fleet: Fleet, new: Deployment) -> None:
    verdict = fleet.say(new, "not_enough_data")
    verdict.evidence = {"reason": "first_version", "evidence": []}
    verdict.save()
    judged(new)
    assert (ask()["state"], ask()["wait"]) == ("inconclusive", False)


def test_an_operators_decision_passes_until_the_version_gets_worse(
    ask: Any, fleet: Fleet, new: Deployment, user: User
) -> None:
    fleet.say(new, "watch")
    judged(new)
    alerts_sync()
    alert_dismiss(alert=Alert.objects.get(), user=user, note="Another team's load test.")
    assert (ask()["state"], ask()["reasons"][0]["code"]) == ("pass", "dismissed")
    fleet.say(new, "roll_back")
    assert ask()["state"] == "fail"


def test_the_newest_deployment_counts(ask: Any, fleet: Fleet, new: Deployment, time: Time) -> None:
    fleet.say(new, "roll_back")
    fleet.end(new)
    time.go(7200)
    again = fleet.deploy("2026.11.3")
    fleet.say(again, "healthy")
    judged(again)
    assert ask()["state"] == "pass"


def test_a_name_is_matched_as_its_job_reported_it(ask: Any, fleet: Fleet, old: Deployment) -> None:
    deployment = fleet.deploy("7<U+200B>")
    fleet.say(deployment, "healthy")
    judged(deployment)
    assert (ask(version="7\u200b")["state"], ask(version="7\u200b")["version"]) == (
        "pass",
        "7\u200b",
    )


def test_an_unchanged_answer_is_not_sent_twice(
    client: Client, api_key: str, fleet: Fleet, new: Deployment
) -> None:
    fleet.say(new, "healthy")
    judged(new)
    headers = {"authorization": f"Bearer {api_key}"}
    address = "/api/v1/gate?model=ranker&version=2026.11.3&environment=prod"
    first = client.get(address, headers=headers)
    again = client.get(address, headers={**headers, "if-none-match": first["ETag"]})
    assert (first.status_code, again.status_code, again.content) == (200, 304, b"")
    fleet.say(new, "roll_back")
    assert (
        client.get(address, headers={**headers, "if-none-match": first["ETag"]}).json()["state"]
        == "fail"
    )


def test_only_a_read_key_of_the_project_gets_an_answer(
    client: Client,
    api_key: str,
    ingest_key: str,
    fleet: Fleet,
    new: Deployment,
    other_project: Project,
    ask: Any,
) -> None:
    from dashboard.projects.services import key_create

    fleet.say(new, "healthy")
    judged(new)
    address = "/api/v1/gate?model=ranker&version=2026.11.3&environment=prod"
    for key, status, code in (
        (None, 401, "bad_key"),
        (ingest_key, 403, "wrong_scope"),
        ("nonsense", 401, "bad_key"),
    ):
        answer = client.get(address, headers={"authorization": f"Bearer {key}"} if key else {})
        assert (answer.status_code, answer.json()["code"]) == (status, code)
    _, foreign = key_create(project=other_project, kind="api")
    answer = client.get(address, headers={"authorization": f"Bearer {foreign}"}).json()
    assert (answer["state"], answer["reasons"][0]["code"], answer["verdict"]) == (
        "inconclusive",
        "unknown_model",
        None,
    )
    assert client.get(f"{address}&key={api_key}").json()["code"] == "key_in_url"
    assert client.post(address, headers={"authorization": f"Bearer {api_key}"}).status_code == 405
    assert (
        ask(400, model="")["code"]
        == ask(400, wait="9")["code"]
        == ask(400, version="x" * 201)["code"]
        == "bad_request"
    )


def test_the_number_of_queries_is_fixed(
    ask: Any, fleet: Fleet, old: Deployment, new: Deployment, django_assert_max_num_queries: Any
) -> None:
    for number in range(20):
        fleet.say(fleet.deploy(f"2026.11.{10 + number}"), "healthy")
    fleet.say(new, "healthy", baseline=old)
    judged(new)
    ask()
    with django_assert_max_num_queries(5):
        ask()


def test_an_accepted_version_passes_without_an_alert_until_it_gets_worse(
    ask: Any, fleet: Fleet, new: Deployment, user: User, time: Time
) -> None:
    fleet.say(new, "watch")
    judged(new)
    assert (ask()["state"], Alert.objects.count()) == ("inconclusive", 0)
    choice = baseline_choose(
        model=fleet.model,
        environment="prod",
        version=new.version.name,
        kind="accept",
        note="more work per call",
        actor=user,
    )
    judged(new)
    answer = ask()
    assert (answer["state"], answer["reasons"]) == (
        "pass",
        [{"code": "accepted", "text": "ada accepted this version as the new baseline."}],
    )
    time.go(60)
    baseline_choice_end(choice=choice, actor=user)
    judged(new)
    assert ask()["state"] == "inconclusive"
    baseline_choose(
        model=fleet.model,
        environment="prod",
        version=new.version.name,
        kind="accept",
        note="still",
        actor=user,
    )
    time.go(60)
    fleet.say(new, "roll_back")
    judged(new)
    assert ask()["state"] == "fail"

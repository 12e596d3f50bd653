"""The Alert page: the story with its evidence, what to do, who was told, and what a person
answers."""

from datetime import timedelta

from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Instance, ModelVersion
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from dashboard.ui.evidence import build_change_rows


def page(client: Client, alert: Alert) -> str:
    answer = client.get(f"/p/ranking/alerts/{alert.number}/")
    assert answer.status_code == 200
    return answer.content.decode()


def act(client: Client, alert: Alert, action: str, **fields: str) -> str:
    answer = client.post(f"/p/ranking/alerts/{alert.number}/{action}/", fields, follow=True)
    assert answer.redirect_chain == [(f"/p/ranking/alerts/{alert.number}/", 302)]
    alert.refresh_from_db()
    return answer.content.decode()


def test_the_time_line_is_newest_first_with_the_evidence_of_each_moment(
    signed_in: Client, alert: Alert
) -> None:
    html = page(signed_in, alert)
    places = [
        html.index(text)
        for text in (
            "Message delivered.",
            "ROLL BACK.</bdi></b>",
            "WATCH, alert opened.",
            "2026.11.3 deployed",
        )
    ]
    assert places == sorted(places)
    evidence = html[places[1] : places[2]]
    assert "+31\u00a0%" in evidence
    assert "24 to 38\u00a0%" in evidence
    assert "6 of 6" in evidence
    assert 'class="label worse drives"' in evidence
    assert 'class="label worse caution"' in html[places[2] :]


def test_a_metric_of_which_less_is_worse_is_told_as_it_is() -> None:
    entry = {
        "metric": "throughput",
        "label": "REGRESSED",
        "worse": -1,
        "change": 0.31,
        "low": 0.1,
        "high": 0.55,
    }
    row = build_change_rows({"evidence": [entry]})[0]
    assert (row.frozen.change_said, row.interval) == (
        "\u221224\u00a0%",
        "\u221235 to \u22129.1\u00a0%",
    )


def test_it_says_what_to_do_with_the_owners_words_filled_in(
    signed_in: Client, alert: Alert
) -> None:
    html = page(signed_in, alert)
    assert "Send calls back to <bdi>2026.11.2</bdi>" in html
    assert "kubectl argo rollouts undo ranker" in html
    assert "score_batch reached its recompile limit of 8" in html


def test_deliveries_show_what_the_channels_answered(signed_in: Client, alert: Alert) -> None:
    html = page(signed_in, alert)
    assert "200 ok" in html
    assert "503 Service Unavailable, again at" in html


def test_the_machines_of_a_certain_fact_are_named_and_one_step_away(
    signed_in: Client, alert: Alert
) -> None:
    version = alert.deployment.version
    sick = Instance.objects.filter(version=version).order_by("pk")[0]
    fact = {
        "kind": "ranks_diverged",
        "severity": "watch",
        "about": "step",
        "instances": [sick.instance_id, "gone"],
    }
    opened = alert.events.earliest("at").verdict
    assert opened is not None
    opened.evidence = {
        **opened.evidence,
        "facts": [fact, fact | {"kind": "parity", "severity": "known"}],
    }
    opened.save()
    html = page(signed_in, alert)
    told = html.split('aria-label="On which machines"')[1].split("</ul>")[0]
    assert (
        f'/instances/{sick.instance_id}/"><bdi>{sick.host} / rank 0</bdi></a>, <bdi>gone</bdi>; see'
        in told
    )
    assert "/ranks/?env=production" in told and "parity" not in told, (
        "what the baseline shows as well is no news"
    )


def test_a_name_that_turns_text_round_turns_itself_only(signed_in: Client, alert: Alert) -> None:
    ModelVersion.objects.filter(pk=alert.deployment.version_id).update(name="v\u202e1")
    assert "<bdi>v\u202e1 deployed</bdi>" in page(signed_in, alert)
    assert (
        "<bdi>ranker v\u202e1</bdi></a> deployed to"
        in signed_in.get("/p/ranking/").content.decode()
    )


def test_an_alert_whose_version_starts_only_tomorrow_has_a_page(
    signed_in: Client, alert: Alert
) -> None:
    Deployment.objects.filter(pk=alert.deployment_id).update(
        started_minute=clock.minute_of(clock.unix()) + 3000
    )
    html = page(signed_in, alert)
    assert "p50 of both versions" in html and "under 1\u00a0s" in html


def test_what_ended_unanswered_waits_for_nobody(signed_in: Client, alert: Alert) -> None:
    assert "no acknowledgement" in page(signed_in, alert)
    Alert.objects.filter(pk=alert.pk).update(state="resolved", resolved_at=clock.now())
    html = page(signed_in, alert)
    assert "no acknowledgement" not in html and "it ended before" in html


def test_a_first_version_is_not_put_beside_a_baseline_that_is_not_there(
    signed_in: Client, alert: Alert
) -> None:
    Alert.objects.filter(pk=alert.pk).update(worst="watch")
    Verdict.objects.update(baseline=None)
    assert "which has nothing to be compared with" in page(signed_in, alert)


def test_without_a_channel_it_says_that_nobody_was_told(signed_in: Client, alert: Alert) -> None:
    Delivery.objects.all().delete()
    Channel.objects.all().delete()
    assert "This project has no channel, so no message was sent." in page(signed_in, alert)


def test_acknowledging_makes_it_yours_with_one_line_and_one_audit_row(
    signed_in: Client, alert: Alert
) -> None:
    html = act(signed_in, alert, "acknowledge", note="rolling back <now>")
    assert "Assigned to you." in html
    assert "rolling back &lt;now&gt;" in html
    assert alert.state == "acknowledged"
    assert AlertEvent.objects.filter(alert=alert, kind="acknowledged").count() == 1
    assert AuditEntry.objects.filter(action="alert.acknowledge", address="127.0.0.1").count() == 1


def test_snoozing_takes_only_the_offered_times(signed_in: Client, alert: Alert) -> None:
    assert "Choose one of the offered times." in act(signed_in, alert, "snooze", hours="9999999")
    assert alert.state == "open"
    act(signed_in, alert, "snooze", hours="4")
    assert alert.state == "snoozed"


def test_a_false_alarm_needs_a_reason(signed_in: Client, alert: Alert) -> None:
    assert "Say why this is a false alarm." in act(signed_in, alert, "dismiss", note="  ")
    assert alert.state == "open"
    assert "False alarm" in act(signed_in, alert, "dismiss", note="the load test did it")
    assert alert.outcome == "dismissed"


def test_a_resolved_alert_takes_no_more_answers(signed_in: Client, alert: Alert) -> None:
    html = act(signed_in, alert, "resolve", note="went back by hand")
    assert alert.state == "resolved"
    assert "/acknowledge/" not in html
    assert "already resolved" in act(signed_in, alert, "acknowledge")


def test_an_unknown_action_does_not_exist(signed_in: Client, alert: Alert) -> None:
    assert signed_in.post(f"/p/ranking/alerts/{alert.number}/explode/").status_code == 404


def test_the_list_shows_open_alerts_and_says_when_there_are_none(
    signed_in: Client, alert: Alert
) -> None:
    assert "A-418" in signed_in.get("/p/ranking/alerts/?state=open").content.decode()
    act(signed_in, alert, "resolve")
    html = signed_in.get("/p/ranking/alerts/?state=open").content.decode()
    assert "Nothing is open" in html
    assert "A-418" in signed_in.get("/p/ranking/alerts/").content.decode()


def test_a_project_without_alerts_says_how_one_comes(signed_in: Client, project: Project) -> None:
    assert (
        "One opens by itself when a version is judged WATCH or ROLL BACK."
        in signed_in.get("/p/ranking/alerts/").content.decode()
    )


def test_the_figures_and_the_time_line_tell_the_same_delays(
    signed_in: Client, alert: Alert
) -> None:
    started = clock.at_minute(alert.deployment.started_minute)
    AlertEvent.objects.filter(alert=alert, kind="opened").update(
        at=started + timedelta(seconds=24 * 60 + 40)
    )
    Alert.objects.update(opened_at=started + timedelta(seconds=24 * 60 + 40))
    html = page(signed_in, alert)
    assert "<dt>Seen after</dt><dd>24\u00a0min<" in html
    assert "after 24\u00a0min" in html
    assert "after 25\u00a0min" not in html

"""The Alert page: the answer, the evidence, the runbook, the activity, the notifications, and the
actions of a user."""

from collections.abc import Callable
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Alert, AlertEvent, Channel, Delivery, RollbackGuide
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Instance, ModelVersion
from dashboard.projects.models import Project, Role
from dashboard.regressions.models import Verdict
from dashboard.ui.layout.change_rows import build_change_rows


def page(client: Client, alert: Alert) -> str:
    answer = client.get(f"/p/ranking/alerts/{alert.number}/")
    assert answer.status_code == 200
    return answer.content.decode()


def act(client: Client, alert: Alert, action: str, **fields: str) -> str:
    answer = client.post(f"/p/ranking/alerts/{alert.number}/{action}/", fields, follow=True)
    assert answer.redirect_chain == [(f"/p/ranking/alerts/{alert.number}/", 302)]
    alert.refresh_from_db()
    return answer.content.decode()


def test_the_timeline_is_newest_first_with_the_evidence_of_each_time(
    signed_in: Client, alert: Alert
) -> None:
    html = page(signed_in, alert)
    places = [
        html.index(text)
        for text in (
            "Notification delivered.",
            "ROLL BACK.</bdi></b>",
            "WATCH, alert opened.",
            "2026.11.3 deployed",
        )
    ]
    assert places == sorted(places)
    evidence = html.split('id="ev"')[1].split("</section>")[0]
    assert "+31%" in evidence
    assert "24% to 38%" in evidence
    assert "6 of 6" in evidence
    assert 'class="label worse drives"' in evidence
    assert 'class="label worse caution"' in html[places[2] :]
    assert "Evidence at this time" not in html[places[1] : places[2]], "it is not shown twice"


def test_a_metric_where_lower_is_worse_is_shown_as_a_decrease() -> None:
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
        "\u221224%",
        "\u221235% to \u22129.1%",
    )


def test_the_page_shows_the_next_steps_with_the_runbook_of_the_owners(
    signed_in: Client, alert: Alert
) -> None:
    html = page(signed_in, alert)
    assert "Route traffic back to 2026.11.2" in html
    assert "kubectl argo rollouts undo ranker" in html
    assert "kubectl rollout undo" not in html, "the text of the owners replaces the default"
    assert "score_batch reached its recompile limit of 8" in html


def test_deliveries_show_the_answers_of_the_channels(signed_in: Client, alert: Alert) -> None:
    html = page(signed_in, alert)
    assert "200 ok" in html
    assert "503 Service Unavailable, next attempt at" in html


def test_the_instances_of_a_confirmed_fact_are_named_and_linked(
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
    told = html.split('aria-label="Affected hosts"')[1].split("</ul>")[0]
    assert (
        f'/instances/{sick.instance_id}/"><bdi>{sick.host} / rank 0</bdi></a>, <bdi>gone</bdi>; see'
        in told
    )
    assert "/ranks/?env=production" in told and "parity" not in told, (
        "a fact that the baseline shows too is not listed"
    )


def test_a_name_with_a_bidi_override_does_not_affect_other_text(
    signed_in: Client, alert: Alert
) -> None:
    ModelVersion.objects.filter(pk=alert.deployment.version_id).update(name="v\u202e1")
    assert "<bdi>v\u202e1 deployed</bdi>" in page(signed_in, alert)
    assert (
        "<bdi>ranker v\u202e1</bdi></a> deployed to"
        in signed_in.get("/p/ranking/").content.decode()
    )


def test_an_alert_whose_version_starts_in_the_future_has_a_page(
    signed_in: Client, alert: Alert
) -> None:
    Deployment.objects.filter(pk=alert.deployment_id).update(
        started_minute=clock.minute_of(clock.unix()) + 3000
    )
    html = page(signed_in, alert)
    assert 'id="ch"' in html and "under 1\u00a0s" in html


def test_the_answer_states_since_impact_confidence_and_cause(
    signed_in: Client, alert: Alert
) -> None:
    html = page(signed_in, alert).replace("\u00a0", " ")
    answer = html.split('aria-label="Answer"')[1].split("</dl>")[0]
    places = [answer.index(f"<dt>{name}</dt>") for name in ("Since", "Impact", "Confidence")]
    assert places == sorted(places) and answer.count("<dt>") == 4
    assert "20 min after deployment of 2026.11.3" in answer
    assert "6 of 12 instances" in answer and "of traffic" in answer and "calls/s" in answer
    assert "High" in answer and "p50 +31%, 95% CI 24% to 38%, matched 130 min." in answer
    assert "score_batch reached its recompile limit of 8" in answer
    assert "Confirmed on 6 of 6 instances." in answer


def test_an_unknown_cause_names_the_next_step(signed_in: Client, alert: Alert) -> None:
    Verdict.objects.update(cause="")
    answer = page(signed_in, alert).split("<dt>Likely cause</dt>")[1].split("</dl>")[0]
    assert "Unknown" in answer and "Next step" in answer and "#differs" in answer


def test_the_guard_of_the_cause_is_shown_as_code_and_fixed_by_a_command(
    signed_in: Client, alert: Alert
) -> None:
    guard = "tensor 'candidates' size mismatch at index 0. expected 96, actual 128"
    Verdict.objects.update(cause=f"`score_batch` recompiles repeatedly (guard: {guard})")
    html = unescape(page(signed_in, alert))
    assert f"<code><bdi>{guard}</bdi></code>" in html
    assert "torch._dynamo.mark_dynamic(candidates, 0)" in html


def test_the_chart_shows_the_metric_of_the_address(signed_in: Client, alert: Alert) -> None:
    address = f"/p/ranking/alerts/{alert.number}/"
    for query, title in (("", "p50, ms"), ("?metric=eager", "Eager calls, % of calls")):
        html = signed_in.get(address + query).content.decode()
        assert f'<h2 id="ch">{title}</h2>' in html
    assert '<h2 id="ch">p50, ms</h2>' in signed_in.get(f"{address}?metric=<b>").content.decode()
    assert "19.3" not in html and "0% → 28%" in html, "the two values of the change are shown"


def test_a_resolved_alert_shows_how_it_ended_and_offers_no_action(
    signed_in: Client, alert: Alert
) -> None:
    assert "Open, not acknowledged" in page(signed_in, alert)
    Alert.objects.filter(pk=alert.pk).update(
        state="resolved", outcome="recovered", resolved_at=clock.now()
    )
    html = page(signed_in, alert)
    assert "not acknowledged" not in html and ": auto-recovered" in html
    assert "/acknowledge/" not in html and "alert open for" in html


def test_a_first_version_is_not_compared_with_a_missing_baseline(
    signed_in: Client, alert: Alert
) -> None:
    Alert.objects.filter(pk=alert.pk).update(worst="watch")
    Verdict.objects.update(baseline=None)
    html = page(signed_in, alert)
    assert "has no baseline version" in html
    assert " and 2026.11.2" not in html, "the chart names one version only"


def test_a_viewer_reads_the_reason_instead_of_buttons(
    as_role: Callable[[Role], Client], alert: Alert
) -> None:
    html = page(as_role(Role.VIEWER), alert)
    assert "Actions require the Operator role" in html
    assert "/acknowledge/" not in html and "settings/guides" not in html
    RollbackGuide.objects.all().delete()
    assert "settings/guides" not in page(as_role(Role.OPERATOR), alert)


def test_without_a_channel_the_page_states_that_no_notification_was_sent(
    signed_in: Client, alert: Alert
) -> None:
    Delivery.objects.all().delete()
    Channel.objects.all().delete()
    assert "No notification sent: this project has no notification channel." in page(
        signed_in, alert
    )


def test_acknowledging_assigns_the_alert_with_one_timeline_entry_and_one_audit_row(
    signed_in: Client, alert: Alert
) -> None:
    html = act(signed_in, alert, "acknowledge", note="rolling back <now>")
    assert "Assigned to you." in html
    assert "rolling back &lt;now&gt;" in html
    assert alert.state == "acknowledged"
    assert AlertEvent.objects.filter(alert=alert, kind="acknowledged").count() == 1
    assert AuditEntry.objects.filter(action="alert.acknowledge", address="127.0.0.1").count() == 1


def test_snoozing_accepts_only_the_offered_durations(signed_in: Client, alert: Alert) -> None:
    assert "Choose one of the listed durations." in act(signed_in, alert, "snooze", hours="9999999")
    assert alert.state == "open"
    act(signed_in, alert, "snooze", hours="4")
    assert alert.state == "snoozed"


def test_a_false_positive_is_one_click_and_its_reason_is_added_afterwards(
    signed_in: Client, alert: Alert
) -> None:
    assert "Marked as false positive" in act(signed_in, alert, "dismiss")
    assert alert.outcome == "dismissed"
    html = act(signed_in, alert, "note", note="the load test <did> it")
    assert "“the load test &lt;did&gt; it”" in html and alert.outcome == "dismissed"
    assert "Enter a note." in act(signed_in, alert, "note", note=" ")


@pytest.mark.parametrize("action", ["acknowledge", "snooze", "resolve", "dismiss"])
def test_each_action_offers_an_undo_without_scripts(
    signed_in: Client, alert: Alert, action: str
) -> None:
    html = act(signed_in, alert, action)
    assert alert.state != "open"
    undo = f"/p/ranking/alerts/{alert.number}/undo/"
    assert f'action="{undo}"' in html and ">Undo</button>" in html
    assert "Undone." in act(signed_in, alert, "undo")
    assert (alert.state, alert.outcome, alert.owner) == ("open", "", None)
    assert "no action of yours to undo" in act(signed_in, alert, "undo")


def test_a_resolved_alert_accepts_no_actions(signed_in: Client, alert: Alert) -> None:
    html = act(signed_in, alert, "resolve", note="went back by hand")
    assert alert.state == "resolved"
    assert "/acknowledge/" not in html
    assert "already resolved" in act(signed_in, alert, "acknowledge")


def test_an_unknown_action_is_not_found(signed_in: Client, alert: Alert) -> None:
    assert signed_in.post(f"/p/ranking/alerts/{alert.number}/explode/").status_code == 404


def test_the_list_shows_open_alerts_and_states_if_there_are_none(
    signed_in: Client, alert: Alert
) -> None:
    assert "A-418" in signed_in.get("/p/ranking/alerts/").content.decode()
    act(signed_in, alert, "resolve")
    html = signed_in.get("/p/ranking/alerts/").content.decode()
    assert "No open alerts" in html
    assert "A-418" in signed_in.get("/p/ranking/alerts/?state=all").content.decode()


def test_a_project_without_alerts_states_how_one_opens(signed_in: Client, project: Project) -> None:
    assert (
        "An alert opens automatically when a version gets a WATCH or ROLL BACK verdict."
        in signed_in.get("/p/ranking/alerts/").content.decode()
    )


def test_the_metrics_and_the_timeline_show_the_same_delays(signed_in: Client, alert: Alert) -> None:
    started = clock.at_minute(alert.deployment.started_minute)
    AlertEvent.objects.filter(alert=alert, kind="opened").update(
        at=started + timedelta(seconds=24 * 60 + 40)
    )
    Alert.objects.update(opened_at=started + timedelta(seconds=24 * 60 + 40))
    html = page(signed_in, alert)
    assert "Time to detect\n          24\u00a0min" in html or "Time to detect 24\u00a0min" in html
    assert "after 24\u00a0min" in html
    assert "after 25\u00a0min" not in html

"""The Fleet page: most urgent model first, with the verdict sentence, and missing data stated in
words."""

import re

from django.test import Client

from dashboard.alerts.models import Alert, AlertState
from dashboard.common import clock
from dashboard.fleet.models import Deployment, Series, VersionHour, VersionMinute, WatchedModel
from dashboard.fleet.selectors.versions import fleet_data, fleet_page
from dashboard.projects.models import Project
from dashboard.regressions.models import Verdict
from tests.dashboard.ui import stories
from tests.dashboard.ui.factory import Shape, model


def page(client: Client, query: str = "") -> str:
    answer = client.get(f"/p/ranking/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def first_row(client: Client, query: str = "") -> str:
    """The first model of the table, and its expanded row."""
    return page(client, query).split("<tbody>")[1].split("</tbody>")[0].split('id="m', 2)[1]


def test_models_are_in_order_of_urgency_with_their_sentence(
    signed_in: Client, alert: Alert
) -> None:
    html = page(signed_in)
    places = [html.index(f">{name}</bdi></a>") for name in ("ranker", "llm-7b-chat", "vit-embed")]
    assert places == sorted(places)
    assert stories.SLOWER in html
    assert html.index("ROLL BACK") < html.index("WATCH</span>") < html.index("HEALTHY</span>")


def test_a_row_shows_shares_metrics_and_the_evaluated_change(
    signed_in: Client, alert: Alert
) -> None:
    row = first_row(signed_in)
    assert "Share of calls: 2026.11.3 50%, 2026.11.2 50%" in row
    assert re.search(
        r'<span class="d rb" title="matched\s130\smin"><svg.*?</svg>\+31%</span>'
        r'<span class="pair">14 → 18.3\sms</span>',
        row,
    )
    assert "71.7%" in row
    assert "31.6\u00a0GiB" in row
    assert "6 degraded" in row
    assert f"/p/ranking/alerts/{alert.number}/" in row


def test_an_acknowledged_alert_is_not_called_open(signed_in: Client, alert: Alert) -> None:
    second = Alert.objects.get(pk=alert.pk)
    second.pk, second.number, second.state, second.cause = (
        None,
        alert.number + 1,
        AlertState.ACKNOWLEDGED,
        "other",
    )
    second.save(force_insert=True)
    row = first_row(signed_in)
    assert ">1 open<" in row and ">1 acknowledged<" in row and "2 open" not in row
    listed = " ".join(signed_in.get("/p/ranking/alerts/").content.decode().split())
    assert "2 alerts; 1 open, 1 acknowledged of 2" in listed
    Alert.objects.update(state=AlertState.SNOOZED, snoozed_until=clock.now())
    row = first_row(signed_in)
    assert ">2 snoozed<" in row and " open<" not in row and "alert-open" not in row


def test_every_simulated_model_is_marked(signed_in: Client, alert: Alert) -> None:
    assert page(signed_in).count(">simulated</span>") == 3


def test_a_model_without_data_states_this_and_shows_no_zeros(
    signed_in: Client, project: Project
) -> None:
    made = model(project, "silent-one", [Shape("1", 0.01, 100, 300, instances=1)], every=60)
    VersionMinute.objects.all().delete()
    VersionHour.objects.all().delete()
    row = first_row(signed_in, f"?open={made.pk}")
    assert made.name in row
    assert "is waiting for its first verdict" in row
    assert "no calls now" in row and "no calls in 24\u00a0h" in row
    assert ">0%" not in row


def test_a_model_whose_versions_all_stopped_stays_in_the_list(
    signed_in: Client, project: Project
) -> None:
    made = model(project, "gone", [Shape("1", 0.01, 100, 300, end=100)], every=60)
    assert not Deployment.objects.filter(model=made, ended_minute=None).exists()
    row = first_row(signed_in, f"?open={made.pk}")
    assert "No version has reported in the last 30 minutes." in row
    assert "none live" in row


def test_an_empty_project_links_to_setup_and_shows_its_steps(
    signed_in: Client, project: Project
) -> None:
    html = page(signed_in)
    assert "0 of 6 steps finished" in html
    assert "No model has reported yet" in html
    assert 'href="/p/ranking/setup/"' in html


def test_blind_spots_are_listed(signed_in: Client, alert: Alert) -> None:
    html = page(signed_in)
    assert "1\u00a0silent instance" in html
    assert "9% of ranker&#x27;s calls" in html
    assert "are not compared: no baseline call of the same shape in the same minutes" in html


def test_recent_changes_list_deployments_and_verdicts(signed_in: Client, alert: Alert) -> None:
    feed = page(signed_in).split('class="feed"')[1]
    assert "changed to ROLL BACK: p50 is 31% slower" in feed
    assert "deployed to production (detected from traffic)" in feed


def test_a_first_verdict_is_a_change_unless_it_has_too_little_data(
    signed_in: Client, project: Project
) -> None:
    made = model(
        project, "ranker", [Shape("1", 0.01, 100, 900), Shape("2", 0.013, 100, 60)], every=60
    )
    said = stories.verdict(made, "not_enough_data", "Not evaluated yet.", [], previous="")
    assert "became" not in page(signed_in)
    said.kind = "roll_back"
    said.save()
    assert "changed to ROLL BACK" in page(signed_in)


def test_the_verdict_filter_keeps_only_its_models(signed_in: Client, alert: Alert) -> None:
    table = page(signed_in, "?verdict=watch").split("<tbody>")[1].split("</tbody>")[0]
    assert "llm-7b-chat" in table
    assert "vit-embed" not in table


def test_the_environment_filter_leaves_out_models_of_other_environments(
    signed_in: Client, alert: Alert
) -> None:
    moved = WatchedModel.objects.get(name="vit-embed")
    Deployment.objects.filter(model=moved).update(environment="staging")
    table = page(signed_in, "?env=production").split("<tbody>")[1].split("</tbody>")[0]
    assert "ranker" in table
    assert "vit-embed" not in table


def test_every_range_has_values_and_an_unknown_one_is_the_default(
    signed_in: Client, alert: Alert
) -> None:
    for query in ("?range=1h", "?range=6h", "?range=24h", "?range=7d"):
        assert "71.7%" in first_row(signed_in, query)
    html = page(signed_in, "?range=3000y")
    assert re.search(r'data-set="range=24h" aria-current="true">24\sh', html)


def test_the_root_redirects_to_the_only_project(signed_in: Client, project: Project) -> None:
    assert signed_in.get("/").headers["Location"] == "/p/ranking/"


def test_a_row_shows_the_newest_version_unless_another_needs_action(
    signed_in: Client, project: Project
) -> None:
    made = model(
        project, "chat", [Shape("1", 0.01, 100, 300), Shape("2", 0.01, 100, 200)], every=60
    )
    stories.verdict(made, "healthy", "No regression above 7% in 1 h compared with 1.", [])
    newest = Deployment.objects.get(model=made, version__name="2")
    older = Deployment.objects.get(model=made, version__name="1")
    first = Verdict.objects.create(
        project=project,
        deployment=older,
        kind="not_enough_data",
        sentence="1 is the first version seen here.",
        evidence={},
        minute=older.started_minute,
        created_at=clock.now(),
        current=True,
    )
    row = first_row(signed_in, f"?open={made.pk}")
    assert "No regression above 7% in 1 h compared with 1." in row
    assert "NOT ENOUGH DATA" not in row
    assert signed_in.get(f"/p/ranking/models/{made.pk}/").context["verdict"].deployment == newest
    Verdict.objects.filter(pk=first.pk).update(
        kind="roll_back", sentence="Roll back 1: it is slower."
    )
    assert "Roll back 1: it is slower." in first_row(signed_in)


def test_a_region_with_few_timed_calls_is_weighted_by_all_its_calls(
    signed_in: Client, project: Project
) -> None:
    made = model(project, "decoder", [Shape("1", 0.01, 100, 300, instances=1)], every=60)
    [version] = made.versions.all()
    [prefill] = Series.objects.filter(version=version)
    decode = Series.objects.create(
        project=project,
        version=version,
        environment="production",
        stratum=prefill.stratum,
        region="decode",
        last_minute=prefill.last_minute,
    )
    minutes = VersionMinute.objects.filter(series_id=prefill.pk)
    for row in list(minutes):
        row.series_id, row.calls, row.latency_count, row.latency_sum, row.p50 = (
            decode.pk,
            200_000,
            6_250,
            6_250 * 55e-6,
            55e-6,
        )
        row.save(force_insert=True)
    minutes.update(calls=100, latency_count=100, latency_sum=1.0)
    window = fleet_data.BinnedRange(prefill.last_minute - 60, prefill.last_minute, 1)
    facts = fleet_page.read_fleet(project=project, window=window).versions[version.pk]
    # 11 s per minute in decode (0.3 s of it timed) and 1 s in prefill.
    assert facts.calls % 200_000 == 0 and facts.calls > 0
    assert {round(point.p50 / point.weight, 9) for point in facts.points.values()} == {55e-6}

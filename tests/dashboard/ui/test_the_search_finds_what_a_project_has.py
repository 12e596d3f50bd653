"""The search: every word must match, results are limited to the project, and the search works as a
plain page."""

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.fleet.models import Finding, Instance, WatchedModel
from dashboard.projects.models import Project
from dashboard.ui.layout import icons
from tests.dashboard.ui.factory import Shape, model
from tests.dashboard.ui.test_pages_ask_a_fixed_number_of_questions import FRAME, queries

ADDRESS = "/p/ranking/search/"


@pytest.fixture
def finding(alert: Alert) -> Finding:
    """A finding of the model that the alert concerns."""
    version = alert.deployment.version
    return Finding.objects.create(
        project=alert.project,
        model=version.model,
        kind="graph_break",
        fingerprint="f" * 32,
        text="Tensor.item() called in <b>score</b>",
        first_version=version,
        last_version=version,
        first_seen_at=alert.opened_at,
        last_seen_at=alert.opened_at,
    )


def found(client: Client, text: str) -> str:
    answer = client.get(ADDRESS, {"q": text})
    assert answer.status_code == 200
    return answer.content.decode().split("<main", 1)[1]


def test_models_versions_findings_instances_and_alerts_are_found(
    signed_in: Client, alert: Alert, finding: Finding
) -> None:
    host = Instance.objects.filter(model=alert.deployment.model).order_by("pk")[0].host
    name = alert.deployment.model.name
    assert f'href="/p/ranking/models/{alert.deployment.model_id}/"' in found(
        signed_in, name.upper()
    )
    version = alert.deployment.version
    assert f'href="/p/ranking/models/{version.model_id}/compiles/?version={version.pk}"' in found(
        signed_in, f"{name} {version.name[-3:]}"
    )
    assert "Tensor.item() called in &lt;b&gt;score&lt;/b&gt;" in found(signed_in, "item score")
    instances = found(signed_in, host[:6])
    assert (
        host in instances
        and str(icons.draw_mark("instance")) in instances
        and str(icons.draw_mark("state-healthy")) not in instances
    )
    assert f"/alerts/{alert.number}/" in found(signed_in, f"A-{alert.number}")


def test_every_word_must_match(signed_in: Client, alert: Alert) -> None:
    name = alert.deployment.model.name
    assert "No results" in found(signed_in, f"{name} nowhere-to-be-found")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "%%%",
        "_",
        "\\",
        "'; drop table alert; --",
        "x" * 5000,
        "<script>alert(1)</script>",
        "9" * 40,
        "A-0",
    ],
)
def test_an_invalid_query_finds_nothing_and_stays_text(
    signed_in: Client, alert: Alert, text: str
) -> None:
    html = found(signed_in, text)
    assert "No results" in html or "Search this project" in html
    assert "<script>alert" not in html


def test_nothing_of_another_project_is_found(signed_in: Client, alert: Alert) -> None:
    other = Project.objects.create(name="Other", slug="other", created_at=alert.opened_at)
    model(other, "secret-model", [Shape("1", 0.01, 50, 60)], every=60)
    assert "No results" in found(signed_in, "secret-model")


def test_a_single_result_is_opened_on_request(signed_in: Client, alert: Alert) -> None:
    answer = signed_in.get(ADDRESS, {"q": f"A-{alert.number}", "go": "1"})
    assert (answer.status_code, answer["Location"]) == (302, f"/p/ranking/alerts/{alert.number}/")


def test_the_list_under_the_field_is_short_and_states_that_there_are_more_results(
    signed_in: Client, project: Project
) -> None:
    for number in range(12):
        model(project, f"ranker-{number:02d}", [Shape("1", 0.01, 50, 60)], every=60)
    part = signed_in.get(ADDRESS, {"q": "ranker"}, headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in part
    assert part.count("/models/") < 12 * 2
    assert "More results exist" in part
    assert found(signed_in, "ranker").count('class="t"') >= 12


def test_a_search_needs_one_query_for_each_kind(
    signed_in: Client, alert: Alert, finding: Finding
) -> None:
    asked = queries(signed_in, f"{ADDRESS}?q=a")
    assert len(asked) <= FRAME + 5, asked


def test_code_in_the_title_of_an_alert_is_formatted_and_a_name_is_unchanged(
    signed_in: Client, alert: Alert
) -> None:
    Alert.objects.filter(pk=alert.pk).update(title="ranker: `score_batch` is slower")
    WatchedModel.objects.filter(pk=alert.deployment.model_id).update(
        name="score `batch` ranker", simulated=True
    )
    html = signed_in.get("/p/ranking/search/?q=score").content.decode()
    assert "<code>score_batch</code> is slower" in html
    assert "score `batch` ranker</bdi>" in html
    assert "<bdi>simulated</bdi>" in html

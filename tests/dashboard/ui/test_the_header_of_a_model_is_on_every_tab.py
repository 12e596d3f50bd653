"""The header of a model: verdict, acknowledgement, version pair, range and counts, on every tab."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet.models import Deployment
from dashboard.projects.models import Project, Role
from dashboard.regressions.models import Verdict
from tests.dashboard.ui.charts_factory import Made, Plan, charted
from tests.dashboard.ui.charts_story import judged, rolled_back

TABS = ("", "versions/", "instances/", "findings/", "weeks/", "compiles/", "startup/", "ranks/")


@pytest.fixture
def made(project: Project) -> Made:
    return rolled_back(project)


@pytest.fixture
def opened(made: Made) -> Alert:
    return Alert.objects.create(
        project=made.project,
        deployment=Verdict.objects.get().deployment,
        number=418,
        severity="roll_back",
        worst="roll_back",
        title="x",
        opened_at=clock.now(),
    )


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("tab", TABS)
def test_each_tab_shows_the_verdict_and_marks_itself(
    signed_in: Client, made: Made, opened: Alert, tab: str
) -> None:
    text = text_of(signed_in, made.url(tab))
    assert "ROLL BACK" in text and "not acknowledged" in text
    assert text.count('aria-current="page"') == 1
    assert f'href="{made.url(tab)}" aria-current="page"' in text


def test_an_operator_acknowledges_from_any_tab_and_stays_there(
    as_role: Callable[[Role], Client], made: Made, opened: Alert
) -> None:
    client, tab = as_role(Role.OPERATOR), made.url("findings/")
    assert f'<input type="hidden" name="next" value="{tab}">' in text_of(client, tab)
    done = client.post("/p/ranking/alerts/418/acknowledge/", {"next": tab})
    assert done["Location"] == tab
    text = text_of(client, tab)
    assert "by <bdi>operator-person</bdi>" in text and "not acknowledged" not in text


def test_an_acknowledgement_does_not_lead_to_another_server(
    as_role: Callable[[Role], Client], opened: Alert
) -> None:
    client = as_role(Role.OPERATOR)
    done = client.post("/p/ranking/alerts/418/acknowledge/", {"next": "https://example.org/"})
    assert done["Location"] == "/p/ranking/alerts/418/"


def test_a_viewer_sees_the_reason_instead_of_the_button(
    as_role: Callable[[Role], Client], made: Made, opened: Alert
) -> None:
    text = text_of(as_role(Role.VIEWER), made.url())
    assert "Acknowledging requires the Operator role" in text
    assert "/alerts/418/acknowledge/" not in text


def test_parameters_survive_a_change_of_tab(signed_in: Client, made: Made) -> None:
    first = made.versions["2026.11.2"].pk
    header = signed_in.get(made.url(f"?range=24h&version={first}&vsort=name")).context["header"]
    links = {tab.label: tab.url for tab in header.tabs}
    assert links["Instances"] == made.url(f"instances/?version={first}&range=24h")
    assert "vsort" not in "".join(links.values())
    assert f"b={first}" in links["Compare"] and "range=24h" in links["Compare"]


def test_the_baseline_of_the_address_replaces_that_of_the_verdict(
    signed_in: Client, project: Project
) -> None:
    made = charted(project, Plan("1", start=90), Plan("2", start=60), Plan("3", start=30))
    judged(made, "2", "3")
    usual = signed_in.get(made.url()).context["header"].standing
    chosen = signed_in.get(made.url(f"?baseline={made.versions['1'].pk}")).context["header"]
    assert usual.baseline == made.versions["2"]
    assert chosen.standing.baseline == made.versions["1"]
    assert chosen.verdict == usual.verdict


def test_a_bad_verdict_is_shown_since_the_deployment_with_time_before_it(
    signed_in: Client, made: Made
) -> None:
    judged_one = Verdict.objects.get().deployment
    shown = signed_in.get(made.url()).context["header"].range
    runs = shown.last - judged_one.started_minute
    assert shown.key == "deployment"
    assert judged_one.started_minute - shown.first == max(46, runs)


def test_an_old_deployment_is_shown_with_six_hours(signed_in: Client, made: Made) -> None:
    long_ago = clock.minute_of(clock.unix()) - 3 * 1440
    Deployment.objects.filter(pk=Verdict.objects.get().deployment_id).update(
        started_minute=long_ago
    )
    assert signed_in.get(made.url()).context["header"].range.key == "6h"


def test_a_healthy_version_is_shown_with_six_hours(signed_in: Client, made: Made) -> None:
    Verdict.objects.update(kind="healthy")
    assert signed_in.get(made.url()).context["header"].range.key == "6h"


def test_the_tab_of_ranks_exists_only_for_a_job_with_several_ranks(
    signed_in: Client, made: Made
) -> None:
    assert made.url("ranks/") not in text_of(signed_in, made.url())
    one = made.model.instances.first()
    assert one is not None
    one.job, one.world_size = "train-7", 8
    one.save()
    assert made.url("ranks/") in text_of(signed_in, made.url())

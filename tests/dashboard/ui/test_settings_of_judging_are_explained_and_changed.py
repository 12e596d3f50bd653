"""The Detection page shows every setting with its default and effect, saves all fields or none, and
shows the change history."""

from __future__ import annotations

from collections.abc import Callable

from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.projects.models import Project, Role
from dashboard.regressions.judge.settings_overrides import list_settings
from dashboard.regressions.judging_settings import detection_settings_set
from dashboard.regressions.models import JudgingChoice, LearnedVariance, LearnedWarmUp
from dashboard.ui.pages.settings.detection.presenter import format_unit

PAGE, SAVE = "/p/ranking/settings/judging/", "/p/ranking/settings/judging/save/"


def html(client: Client, address: str = PAGE) -> str:
    return client.get(address).content.decode()


def test_every_setting_is_shown_with_its_effect_and_default(
    signed_in: Client, project: Project
) -> None:
    page = html(signed_in)
    for setting in list_settings().values():
        assert f'name="{setting.name}"' in page
        assert setting.effect in page
        if not isinstance(setting.default, bool):
            assert f"Default {setting.said(setting.default)}{format_unit(setting)}" in page
    assert "No changes. All settings have their calibrated defaults." in page
    assert "Using the default spread" in page


def test_saved_values_are_in_the_fields_and_in_the_audit_log(
    signed_in: Client, project: Project
) -> None:
    answer = signed_in.post(
        SAVE, {"p50.smallest_effect": " 8 % ", "eager.muted": "yes", "watch_alpha": ""}, follow=True
    )
    page = answer.content.decode()
    assert "Saved. The change applies to live versions within seconds." in page
    assert JudgingChoice.objects.get().values == {"p50.smallest_effect": 0.08, "eager.muted": True}
    assert 'value="8"' in page
    assert "Smallest effect of p50: not set to 8%" in page
    assert "Muted of eager: not set to yes" in page
    assert AuditEntry.objects.get(action="judging.set").actor_name == "ada"
    assert (
        "No changes to save"
        in signed_in.post(
            SAVE, {"p50.smallest_effect": "8", "eager.muted": "yes"}, follow=True
        ).content.decode()
    )


def test_an_invalid_value_is_reported_at_its_field_and_nothing_is_saved(
    signed_in: Client, project: Project
) -> None:
    answer = signed_in.post(
        SAVE, {"p50.smallest_effect": "lots", "watch_alpha": "10", "p50.hold_minutes": "5"}
    )
    page = answer.content.decode()
    assert answer.status_code == 400
    assert "Smallest effect of p50 is &#x27;lots&#x27;, expected a number from 0.5 to 100%." in page
    assert 'value="lots"' in page
    assert 'value="10"' in page
    assert 'aria-invalid="true"' in page
    assert not JudgingChoice.objects.exists()


def test_the_page_of_a_model_shows_the_values_of_its_project(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    detection_settings_set(project=project, values={"p50.tolerated": 0.15}, actor_name="tests")
    address = f"{PAGE}?model={alert.deployment.model_id}"
    assert "; project 15%." in html(signed_in, address)
    answer = signed_in.post(SAVE, {"model": alert.deployment.model_id, "p50.smallest_effect": "16"})
    assert "expected at most 15%" in answer.content.decode()
    answer = signed_in.post(SAVE, {"model": alert.deployment.model_id, "p50.smallest_effect": "12"})
    assert answer.headers["Location"] == address
    assert JudgingChoice.objects.get(model=alert.deployment.model).values == {
        "p50.smallest_effect": 0.12
    }


def test_learned_variance_is_shown_with_its_pairs_and_whether_it_is_in_effect(
    signed_in: Client, project: Project
) -> None:
    for minutes, variance in ((10, 0.0025), (60, 0.0016)):
        common = {"project": project, "metric": "p50", "layout": "", "learned_at": clock.now()}
        LearnedVariance.objects.create(minutes=minutes, variance=variance, pairs=12, **common)
    page = html(signed_in)
    assert "5% after 10\u00a0min, 4% after 60\u00a0min" in page
    assert "12 pairs, used from 30" in page
    LearnedVariance.objects.update(pairs=31)
    assert "31 pairs, in use<" in html(signed_in)


def test_other_roles_have_read_only_access(
    as_role: Callable[[Role], Client], project: Project
) -> None:
    for role in (Role.VIEWER, Role.OPERATOR):
        client = as_role(role)
        page = html(client)
        assert "Ask an admin to edit." in page
        assert ">Save<" not in page
        assert client.post(SAVE, {"p50.muted": "yes"}).status_code == 403
    assert not JudgingChoice.objects.exists()


def test_input_stays_text(signed_in: Client, project: Project) -> None:
    page = signed_in.post(SAVE, {"p50.tolerated": '"><script>alert(1)</script>'}).content.decode()
    assert "<script>alert" not in page


def learn_warm_up(alert: Alert) -> None:
    model = alert.deployment.model
    found = {"minutes": 30, "processes": 34, "versions": 8, "learned_at": clock.now()}
    LearnedWarmUp.objects.create(project=model.project, model=model, **found)


def text(client: Client, address: str = PAGE) -> str:
    return " ".join(html(client, address).replace("\u00a0", " ").split())


def test_the_learned_warm_up_is_shown_with_its_processes(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    assert "None yet: 5 min unless set." in text(signed_in)
    learn_warm_up(alert)
    page, of_model = text(signed_in), text(signed_in, f"{PAGE}?model={alert.deployment.model_id}")
    for found in (page, of_model):
        assert '30 min <span class="dim">in use</span>' in found
        assert "34 processes of 8 versions" in found
    assert 'name="warm_up_minutes" value="" placeholder="5"' in page
    assert 'name="warm_up_minutes" value="" placeholder="30"' in of_model
    assert "Default 5 min; learned 30 min from 34 processes of 8 versions." in of_model


def test_a_set_warm_up_replaces_the_learned_one(
    signed_in: Client, project: Project, alert: Alert
) -> None:
    learn_warm_up(alert)
    model = alert.deployment.model_id
    signed_in.post(SAVE, {"warm_up_minutes": "12"})
    of_model = text(signed_in, f"{PAGE}?model={model}")
    assert "not used: set to 12 min" in of_model
    assert 'name="warm_up_minutes" value="" placeholder="12"' in of_model
    assert "learned 30 min from 34 processes of 8 versions; project 12 min." in of_model
    assert "Warm-up: not set to 12 min" in of_model
    assert AuditEntry.objects.get(action="judging.set").after == {"warm_up_minutes": 12}
    answer = signed_in.post(SAVE, {"model": model, "warm_up_minutes": "300"})
    assert "expected a whole number of minutes from 0 to 240" in answer.content.decode()

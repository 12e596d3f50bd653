"""Expanded rows of the Fleet table: always for urgent verdicts, for others on request."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.ui import stories
from tests.dashboard.ui.factory import Shape, model
from tests.dashboard.ui.fleet_page import create_models, read_page

pytestmark = pytest.mark.django_db
CALM = "p50 is 6% faster than 2026.11.1"


def test_urgent_models_are_expanded_and_calm_ones_are_not(signed_in: Client, alert: Alert) -> None:
    html = read_page(signed_in)
    assert stories.SLOWER in html and "Cache hits fell from 94% to 41%" in html
    assert CALM not in html.split('class="rail"')[0]


def test_a_link_opens_a_row_and_closes_it(signed_in: Client, alert: Alert) -> None:
    pk = WatchedModel.objects.get(name="vit-embed").pk
    closed = read_page(signed_in, "?sort=model").split(f'id="m{pk}"')[1]
    assert f"sort=model&open={pk}" in closed and 'aria-expanded="false"' in closed
    opened = read_page(signed_in, f"?sort=model&open={pk}").split(f'id="m{pk}"')[1]
    assert CALM in opened and 'aria-expanded="true"' in opened
    assert re.search(rf'href="\?sort=model#m{pk}"', opened)


def test_a_row_without_a_comparison_states_the_window_of_its_values(
    signed_in: Client, project: Project
) -> None:
    made = model(project, "new", [Shape("1", 0.01, 100, 300, instances=1)], every=60)
    assert (
        "last\u00a015\u00a0min"
        in read_page(signed_in, f"?open={made.pk}").split("sentence calm")[1]
    )


@pytest.mark.parametrize("opened", ["x", "-1", "1.5", "9" * 400, "1," * 500, "²"])
def test_no_list_of_open_rows_breaks_the_page(
    signed_in: Client, project: Project, opened: str
) -> None:
    create_models(project, ["one"])
    assert read_page(signed_in, f"?open={opened}").count('class="mname"') == 1

"""Shapes of states: an open alert, a delivered notification and a healthy instance differ without
their colors."""

from __future__ import annotations

import re
from itertools import combinations

import pytest
from django.test import Client

from dashboard.alerts.models import Alert, AlertState, DeliveryState
from dashboard.fleet.models import InstanceState
from dashboard.projects.models import Project
from dashboard.ui.layout.icons import MARKS, draw_mark
from dashboard.ui.templatetags.badges import state_mark
from tests.dashboard.ui import stories

pytestmark = pytest.mark.django_db
ALERTS = [f"alert-{state}" for state in AlertState.values]
DELIVERIES = [f"delivery-{state}" for state in DeliveryState.values]
WORKERS = [f"worker-{state}" for state in ("works", "idle", "gone")]
INSTANCES = [f"state-{state.value}" for state in InstanceState]
VERDICTS = ["roll_back", "watch", "not_enough_data", "healthy"]
CELL = re.compile(r'<td data-l="State"><span class="state">(<svg.*?</svg>)(\w+)')


@pytest.mark.parametrize("name", [*ALERTS, *DELIVERIES, *WORKERS, *INSTANCES, *VERDICTS])
def test_each_state_has_a_shape(name: str) -> None:
    assert name in MARKS


def test_no_two_states_share_a_shape() -> None:
    kinds = (ALERTS, DELIVERIES, WORKERS, INSTANCES, VERDICTS)
    same = [
        (one, other)
        for one, other in combinations([name for kind in kinds for name in kind], 2)
        if MARKS[one] == MARKS[other]
    ]
    assert same == []


@pytest.mark.parametrize("state", AlertState.values)
def test_the_list_shows_the_shape_and_the_word_of_each_state(
    signed_in: Client, project: Project, state: str
) -> None:
    stories.fleet(project, every=400)
    Alert.objects.update(state=state)
    shapes = CELL.findall(signed_in.get(f"/p/{project.slug}/alerts/?state=all").content.decode())
    assert shapes and all(
        shape == state_mark("alert", state) != draw_mark("state-healthy") for shape, _ in shapes
    )
    assert {word for _, word in shapes} <= {AlertState(state).label, "Resolved", "Rolled"}

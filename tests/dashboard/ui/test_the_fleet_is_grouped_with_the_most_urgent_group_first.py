"""Groups of the Fleet table: a head per group with its counts, the most urgent group first."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from dashboard.alerts.models import Alert
from dashboard.fleet.models import Deployment, Instance
from tests.dashboard.ui.fleet_page import list_names, read_page

pytestmark = pytest.mark.django_db
HEAD = re.compile(r'<span class="grpx">(.*?)</th>', re.S)


def list_heads(client: Client, query: str) -> list[str]:
    heads = HEAD.findall(read_page(client, query))
    return [" ".join(re.sub(r"<.*?>", " ", head).split()) for head in heads]


def test_a_group_states_its_models_instances_and_verdicts(signed_in: Client, alert: Alert) -> None:
    Deployment.objects.filter(model__name="vit-embed").update(environment="staging")
    Deployment.objects.filter(model__name="llm-7b-chat").update(environment="a-test")
    heads = list_heads(signed_in, "?group=environment")
    assert [head.split()[0] for head in heads] == ["production", "a-test", "staging"]
    assert re.fullmatch(r"production 1 model, \d+ instances 1 roll back", heads[0])
    assert list_names(signed_in, "?group=environment") == ["ranker", "llm-7b-chat", "vit-embed"]


def test_models_are_grouped_by_gpu(signed_in: Client, alert: Alert) -> None:
    Instance.objects.filter(version__model__name="vit-embed").update(gpu="NVIDIA L4")
    assert [head.split()[0] for head in list_heads(signed_in, "?group=gpu")] == ["H200", "L4"]


def test_an_unknown_group_is_none(signed_in: Client, alert: Alert) -> None:
    assert list_heads(signed_in, "?group=owner") == []
    assert len(list_names(signed_in, "?group=owner")) == 3

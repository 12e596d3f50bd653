"""Pages show the node of an instance if it differs from the host; files and the API always have
it."""

from __future__ import annotations

import csv
from html import unescape

import pytest
from django.test import Client

from dashboard.fleet.models import Instance
from dashboard.projects.models import Project
from tests.dashboard.api.reading import ROOT, read
from tests.dashboard.ui.charts_factory import Made, Plan, charted

NODE = "rack-7-node-4"


@pytest.fixture
def made(project: Project) -> Made:
    return charted(project, Plan("1", start=3, per_gpu=1))


def shown(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode()).replace("\xa0", " ")


def pod(made: Made, **columns: object) -> Instance:
    found = Instance.objects.filter(version=made.versions["1"]).earliest("pk")
    Instance.objects.filter(pk=found.pk).update(**columns)
    found.refresh_from_db()
    return found


@pytest.mark.parametrize("label", ["", "ranker-7d9f8b6c5-x2x4q"], ids=["no label", "label"])
def test_another_node_is_on_the_pages_of_instances(
    signed_in: Client, made: Made, label: str
) -> None:
    one = pod(made, node=NODE, label=label)
    for address in ("instances/", f"instances/{one.instance_id}/", f"instances/?q={NODE}"):
        assert f"node {NODE}" in shown(signed_in, made.url(address)), address


def test_a_node_that_is_the_host_is_not_repeated(signed_in: Client, made: Made) -> None:
    one = pod(made, label="ranker-0")
    pod(made, node=one.host)
    for address in ("instances/", f"instances/{one.instance_id}/"):
        text = shown(signed_in, made.url(address))
        assert one.host in text and f"node {one.host}" not in text


def test_the_rank_board_has_the_node_below_the_host(signed_in: Client, made: Made) -> None:
    pod(made, node=NODE, job="train-7", world_size=2)
    assert f"node <bdi>{NODE}</bdi>" in shown(signed_in, made.url("ranks/?job=train-7"))
    [row] = csv.DictReader(shown(signed_in, made.url("ranks.csv?job=train-7")).splitlines())
    assert row["node"] == NODE
    [row] = signed_in.get(made.url("ranks.json?job=train-7")).json()["rows"]
    assert row["node"] == NODE


def test_files_and_the_api_have_the_node(signed_in: Client, made: Made) -> None:
    one = pod(made, node=NODE)
    rows = csv.DictReader(shown(signed_in, made.url("instances.csv")).splitlines())
    assert {row["instance"]: row["node"] for row in rows}[one.instance_id] == NODE
    rows = signed_in.get(made.url("instances.json")).json()["instances"]
    assert {row["id"]: row["node"] for row in rows}[one.instance_id] == NODE
    read_rows = read(signed_in, f"{ROOT}/instances")["items"]
    assert {row["instance_id"]: row["node"] for row in read_rows}[one.instance_id] == NODE


def test_the_search_finds_a_node(signed_in: Client, made: Made) -> None:
    one = pod(made, node=NODE)
    text = shown(signed_in, f"/p/ranking/search/?q={NODE}")
    assert f"instances/{one.instance_id}/" in text

"""The node of an identity is optional: it is stored next to the host, and a wrong node is refused
with the name of the field."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from compilewatch.wire.codec import encode
from compilewatch.wire.messages import Request

from dashboard.fleet.fold_service import fold_all
from dashboard.fleet.models import Instance
from dashboard.ingest.models import InboxRow
from tests.dashboard.ingest.conftest import Endpoint

Make = Callable[..., Request]
POD = "ranker-7d9f8b6c5-x2x4q"

pytestmark = pytest.mark.django_db(transaction=True)


def places() -> list[tuple[str, str]]:
    return list(Instance.objects.order_by("instance_id").values_list("host", "node"))


def test_a_node_is_stored_next_to_the_host(endpoint: Endpoint, make_request: Make) -> None:
    assert endpoint.report(make_request(host=POD, node="gpu-node-4")).status == 200
    fold_all()
    assert places() == [(POD, "gpu-node-4")]


def test_an_agent_without_the_field_has_no_node_until_it_reports_one(
    endpoint: Endpoint, make_request: Make
) -> None:
    earlier = make_request(host=POD)
    assert "node" not in encode(earlier)["instance"]
    assert endpoint.report(earlier).status == 200
    fold_all()
    assert places() == [(POD, "")]
    assert endpoint.report(make_request(host=POD, node="gpu-node-4", first_seq=2)).status == 200
    fold_all()
    assert places() == [(POD, "gpu-node-4")]


def test_a_node_of_another_type_is_refused_with_the_name_of_the_field(
    endpoint: Endpoint, make_request: Make
) -> None:
    for wrong in (7, None, True, ["gpu-node-4"], {"name": "gpu-node-4"}):
        data: dict[str, Any] = encode(make_request())
        data["instance"]["node"] = wrong
        answer = endpoint.send_json(json.dumps(data))
        assert answer.status == 400, wrong
        assert answer.json["detail"].startswith("instance.node: expected `str`"), wrong
    assert not InboxRow.objects.exists()


def test_a_long_node_is_cut_like_a_host_and_stays_distinct(
    endpoint: Endpoint, make_request: Make
) -> None:
    for number in range(2):
        name = f"{'n' * 300}{number}"
        assert endpoint.report(make_request(instance=number, host=name, node=name)).status == 200
    fold_all()
    (_, first), (_, second) = places()
    assert first != second and first[:150] == second[:150] == "n" * 150
    assert all(host == node and len(node) == 200 for host, node in places())

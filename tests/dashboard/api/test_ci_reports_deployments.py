"""POST /api/v1/deployments: stored once for repeated requests, shown as a mark, and refused with
the reason if it is wrong."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from dashboard.accounts.models import AuditEntry
from dashboard.alerts.models import Alert
from dashboard.common import clock
from dashboard.fleet import deployment_marks
from dashboard.fleet.models import Deployment, DeploymentMark
from dashboard.projects.models import Project
from dashboard.projects.services import key_create
from tests.dashboard.ui import stories

pytestmark = pytest.mark.django_db
ADDRESS = "/api/v1/deployments"


@pytest.fixture
def key(project: Project) -> str:
    return key_create(project=project, kind="dep", name="ci")[1]


@pytest.fixture
def post(client: Client, key: str) -> Any:
    """`post(note="...")`: the status and the answer."""

    def posted(*, as_key: str = "", **body: Any) -> tuple[int, dict[str, Any]]:
        at = (clock.now() - timedelta(minutes=5)).replace(microsecond=0).isoformat()
        body = {
            "model": "ranker",
            "version": "2026.11.3",
            "environment": "production",
            "at": at,
            **body,
        }
        headers = {"authorization": f"Bearer {as_key or key}"}
        answer = client.post(
            ADDRESS,
            {k: v for k, v in body.items() if v is not None},
            content_type="application/json",
            headers=headers,
        )
        return answer.status_code, answer.json()

    return posted


def test_repeated_requests_store_one_mark(post: Any) -> None:
    at = (clock.now() - timedelta(minutes=3)).replace(microsecond=0).isoformat()
    status, first = post(at=at, by="jenkins", note="Release.")
    again_status, again = post(at=at, by="jenkins", note="Release.")
    assert (status, again_status, first["new"], again["new"]) == (201, 200, True, False)
    assert first["id"] == again["id"] and DeploymentMark.objects.count() == 1
    assert AuditEntry.objects.filter(action="deployment.post", actor_name="key ci").count() == 1
    status, changed = post(at=at, by="jenkins", note="Release 7.")
    assert (status, changed["id"], DeploymentMark.objects.get().note) == (
        200,
        first["id"],
        "Release 7.",
    )
    assert AuditEntry.objects.filter(action="deployment.post").count() == 2
    assert post(at=at, environment="staging")[0] == 201


def test_a_mark_opens_no_deployment(post: Any) -> None:
    post()
    assert not Deployment.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [
        {"at": None},
        {"at": "2026-11-21T10:00:00"},
        {"at": "yesterday"},
        {"at": "2031-01-01T00:00:00Z"},
        {"at": "2019-01-01T00:00:00Z"},
        {"at": "0001-01-01T00:00:00+14:00"},
        {"model": ""},
        {"model": "m" * 201},
        {"version": 3},
        {"version": None},
        {"link": "javascript:alert(1)"},
        {"link": "https://ci.example/a b"},
        {"note": "n" * 2001},
        {"by": "\u202e" * 100},
        {"colour": "red"},
    ],
)
def test_a_wrong_field_is_named_and_stores_nothing(post: Any, wrong: dict[str, Any]) -> None:
    status, answer = post(**wrong)
    assert (status, answer["code"]) == (400, "bad_request") and answer["detail"]
    assert not DeploymentMark.objects.exists()


def test_bodies_that_are_not_json_are_refused(client: Client, key: str) -> None:
    headers = {"authorization": f"Bearer {key}"}
    for body in (b"[]", b"{", b"\xff", b'{"model": "\\ud800"}', b"[" * 9000):
        assert (
            client.post(ADDRESS, body, content_type="application/json", headers=headers).status_code
            == 400
        )
    assert (
        client.post(
            ADDRESS, b"x" * 20_000, content_type="application/json", headers=headers
        ).status_code
        == 413
    )
    assert (
        client.post(ADDRESS, b"model=1", content_type="text/plain", headers=headers).status_code
        == 415
    )
    assert client.get(ADDRESS, headers=headers).status_code == 405


def test_only_a_deployment_key_may_post(
    post: Any, api_key: str, ingest_key: str, client: Client, key: str
) -> None:
    assert [post(as_key=other)[1]["code"] for other in (api_key, ingest_key, "nonsense")] == [
        "wrong_scope",
        "wrong_scope",
        "bad_key",
    ]
    gate = client.get("/api/v1/gate?model=a&version=b", headers={"authorization": f"Bearer {key}"})
    assert (gate.status_code, gate.json()["code"]) == (403, "wrong_scope")
    assert not DeploymentMark.objects.exists()


def test_too_many_marks_are_refused_with_429(post: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment_marks, "MAX_MARKS_PER_HOUR", 2)
    at = (clock.now() - timedelta(minutes=3)).replace(microsecond=0).isoformat()
    assert [post(version=str(number), at=at)[0] for number in range(3)] == [201, 201, 429]
    assert post(version="1", at=at, note="An existing mark may be posted again.")[0] == 200


def test_the_model_page_and_the_alert_show_the_mark(
    post: Any, signed_in: Client, project: Project, other_project: Project
) -> None:
    alert: Alert = stories.fleet(project, every=30)
    post(version="2026.11.3", by="jenkins", link="https://ci.example/7", note="Canary to 10%.")
    DeploymentMark.objects.create(
        project=other_project,
        model_name="ranker",
        environment="production",
        version_name="foreign",
        at=clock.now(),
        created_at=clock.now(),
    )
    model = signed_in.get(
        f"/p/ranking/models/{alert.deployment.model_id}/?environment=production"
    ).content.decode()
    page = signed_in.get(f"/p/ranking/alerts/{alert.number}/").content.decode()
    assert "CI: 2026.11.3 by jenkins" in model and 'href="https://ci.example/7"' in model
    assert (
        "CI: 2026.11.3 deployed by jenkins." in page
        and "Canary to 10" in page
        and 'href="https://ci.example/7"' in page
    )
    assert "foreign" not in model and "foreign" not in page

"""Keys that read and members read their own projects; every other caller gets the reason, and a
foreign project does not exist."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from dashboard.accounts.models import User
from dashboard.api.openapi import build_document
from dashboard.api.read import auth
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create
from dashboard.regressions.models import Verdict
from tests.dashboard.api.reading import ROOT, read, refused
from tests.dashboard.ui import stories

pytestmark = pytest.mark.django_db


def addresses(project: Project) -> list[str]:
    """Every path that reads, filled in with ids of the project."""
    model, verdict = (
        WatchedModel.objects.filter(project=project).first(),
        Verdict.objects.filter(project=project).first(),
    )
    assert model and verdict
    filled = {
        "project": project.slug,
        "model_id": model.pk,
        "verdict_id": verdict.pk,
        "number": 418,
    }
    found = []
    for path, operations in build_document()["paths"].items():
        if "{project}" in path:
            assert set(operations) == {"get"}
            found.append(path.format(**filled))
    assert len(found) == 11
    return found


def test_every_path_requires_a_read_key_or_a_member(
    client: Client,
    project: Project,
    other_project: Project,
    api_key: str,
    ingest_key: str,
    make_user: Callable[..., User],
) -> None:
    stories.fleet(project, every=400)
    foreign_key = key_create(project=other_project, kind="api", name="theirs")[1]
    stranger, viewer = Client(), Client()
    stranger.force_login(make_user("stranger", other_project, Role.ADMIN))
    viewer.force_login(make_user("viewer", project, Role.VIEWER))
    versions = (
        WatchedModel.objects.filter(project=project)
        .first()
        .versions.order_by("pk")
        .values_list("pk", flat=True)
    )  # type: ignore[union-attr]
    for path in addresses(project):
        wanted = dict(zip("ab", versions, strict=True)) if path.endswith("comparisons") else {}
        assert refused(client, path, **wanted)[:2] == (401, "bad_key")
        assert client.get(path)["WWW-Authenticate"] == "Bearer"
        assert refused(client, path, ingest_key, **wanted)[:2] == (403, "wrong_scope")
        assert refused(client, path, foreign_key, **wanted)[:2] == (404, "not_found")
        assert refused(stranger, path, **wanted)[:2] == (404, "not_found")
        for who, key in ((viewer, ""), (client, api_key)):
            answer = who.get(
                path, wanted, headers={"authorization": f"Bearer {key}"} if key else {}
            )
            assert answer.status_code == 200, path
            assert who.post(path).status_code in (403, 405)


def test_rows_of_another_project_are_not_in_this_one(
    signed_in: Client, project: Project, other_project: Project
) -> None:
    stories.fleet(project, every=400)
    stories.fleet(other_project, every=400)
    foreign, said = (
        WatchedModel.objects.filter(project=other_project).first(),
        Verdict.objects.filter(project=other_project).first(),
    )
    mine = WatchedModel.objects.filter(project=project, name="ranker").get()
    theirs = WatchedModel.objects.filter(project=other_project, name="ranker").get()
    assert foreign and said
    for part in ("", "/versions", "/series", "/findings"):
        assert refused(signed_in, f"{ROOT}/models/{foreign.pk}{part}")[0] == 404
    assert refused(signed_in, f"{ROOT}/verdicts/{said.pk}")[0] == 404
    a, b = theirs.versions.order_by("pk").values_list("pk", flat=True)
    assert refused(signed_in, f"{ROOT}/models/{mine.pk}/comparisons", a=a, b=b)[0] == 404
    assert refused(signed_in, f"{ROOT}/models/{mine.pk}/series", version=a)[:2] == (
        400,
        "bad_request",
    )
    assert read(signed_in, f"{ROOT}/instances", version=a)["items"] == []
    assert read(signed_in, f"{ROOT}/verdicts", model=theirs.pk)["items"] == []
    assert {item["id"] for item in read(signed_in, f"{ROOT}/models")["items"]}.isdisjoint(
        {foreign.pk, theirs.pk}
    )


def test_a_key_lists_its_project_and_a_person_their_projects(
    client: Client, signed_in: Client, api_key: str, project: Project
) -> None:
    quota = {"reports_per_second": 5000.0, "reports_waiting": 200_000}
    assert read(Client(), "/api/v1/projects", api_key)["items"] == [
        {"slug": "ranking", "name": "Ranking", "quota": quota}
    ]
    assert read(signed_in, "/api/v1/projects") == read(Client(), "/api/v1/projects", api_key)
    assert refused(signed_in, "/api/v1/projects", token=api_key)[1] == "key_in_url"


def test_the_read_rate_is_limited_per_key(
    client: Client, api_key: str, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auth, "MAX_READS_PER_SECOND", 0.01)
    other = key_create(project=project, kind="api", name="other")[1]
    for key, status in ((api_key, 200), (api_key, 429), (other, 200), (api_key, 429)):
        answer = client.get("/api/v1/projects", headers={"authorization": f"Bearer {key}"})
        assert answer.status_code == status
        if status == 429:
            assert answer.json()["code"] == "too_many" and 1 <= int(answer["Retry-After"]) <= 100

"""Read API: pages by cursor, ETags, errors that name the field, and one OpenAPI document with its
page."""

from __future__ import annotations

import gzip
import json

import jsonschema
import pytest
from django.test import Client
from schemathesis.specs.openapi.definitions import OPENAPI_31  # type: ignore[import-untyped,unused-ignore]

from dashboard.common import clock
from dashboard.fleet.models import WatchedModel
from dashboard.projects.models import Project
from tests.dashboard.api.reading import ROOT, read, refused

pytestmark = pytest.mark.django_db
PUBLISHED = [
    "alert_one",
    "alerts_list",
    "comparison_read",
    "findings_list",
    "gate",
    "instances_list",
    "model_one",
    "models_list",
    "post",
    "projects_list",
    "receive",
    "series_read",
    "verdict_one",
    "verdicts_list",
    "versions_list",
]
"""The operation names, which generated clients call."""


@pytest.fixture
def models(project: Project) -> list[WatchedModel]:
    now = clock.now()
    rows = [
        WatchedModel(project=project, name=f"model-{number}", first_seen_at=now, last_seen_at=now)
        for number in range(5)
    ]
    return WatchedModel.objects.bulk_create(rows)


def test_a_cursor_leads_through_all_items_once(
    signed_in: Client, models: list[WatchedModel], project: Project
) -> None:
    found, cursor, pages = [], "", 0
    while cursor is not None:
        answer = read(
            signed_in, f"{ROOT}/models", limit=2, **({"cursor": cursor} if cursor else {})
        )
        found += [item["name"] for item in answer["items"]]
        cursor, pages = answer["next"], pages + 1
        if pages == 1:
            WatchedModel.objects.create(
                project=project, name="late", first_seen_at=clock.now(), last_seen_at=clock.now()
            )
    assert found == [f"model-{number}" for number in range(5)] + ["late"] and pages == 3
    assert read(signed_in, f"{ROOT}/models", name="model-3")["items"][0]["name"] == "model-3"


def test_an_unchanged_compressed_answer_is_304(
    signed_in: Client, models: list[WatchedModel]
) -> None:
    first = signed_in.get(f"{ROOT}/models", headers={"accept-encoding": "gzip"})
    assert first["Content-Encoding"] == "gzip"
    assert len(json.loads(gzip.decompress(first.content))["items"]) == len(models)
    headers = {"accept-encoding": "gzip", "if-none-match": first["ETag"]}
    assert signed_in.get(f"{ROOT}/models", headers=headers).status_code == 304


def test_an_unchanged_answer_is_304(signed_in: Client, models: list[WatchedModel]) -> None:
    first = signed_in.get(f"{ROOT}/models")
    assert (
        first["ETag"]
        and first["Cache-Control"] == "private, no-cache"
        and "Cookie" in first["Vary"]
    )
    again = signed_in.get(f"{ROOT}/models", headers={"if-none-match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    models[0].delete()
    assert (
        signed_in.get(f"{ROOT}/models", headers={"if-none-match": first["ETag"]}).status_code == 200
    )
    head = signed_in.head(f"{ROOT}/models")
    assert head.status_code == 200 and head.content == b"" and head["ETag"] != first["ETag"]


@pytest.mark.parametrize(
    ("path", "asked", "said"),
    [
        ("/models", {"limit": "500"}, "limit: "),
        ("/models", {"limit": "many"}, "limit: "),
        ("/models", {"cursor": "bm9wZQ"}, "cursor: expected the value of `next`"),
        (
            "/models",
            {"cursor": "YWZ0ZXIgOTk5OTk5OTk5OTk5OTk5OTk5OTk5"},
            "cursor: expected the value of `next`",
        ),
        (
            "/models",
            {"nam": "x"},
            "nam: unknown parameter, expected one of cursor, limit, name.",
        ),
        ("/models", {"name": "a\0b"}, "name: contains the character U+0000; remove it."),
        ("/models/0", {}, "model_id: "),
        ("/models/99999999999999999999", {}, "model_id: "),
        ("/alerts", {"state": "closed"}, "state: "),
        ("/verdicts", {"current": "perhaps"}, "current: "),
        (
            "/models/MODEL/series",
            {"metric": "p51"},
            "metric: 'p51' is unknown, expected p50_seconds, ",
        ),
        ("/models/MODEL/series", {"minutes": "1440", "step": "0"}, ""),
        (
            "/models/MODEL/series",
            {"minutes": "2880", "step": "1"},
            "step: results in 2,880 bins, expected at most 1,500.",
        ),
        (
            "/models/MODEL/series",
            {"minutes": "576000", "step": "7"},
            "step: 7 is less than an hour",
        ),
        (
            "/models/MODEL/series",
            {"until": "2026-11-22T10:00:00"},
            "until: expected a time with its zone",
        ),
        (
            "/models/MODEL/series",
            {"until": "9999-01-01T00:00:00Z"},
            "until: expected a time since 1970",
        ),
        (
            "/models/MODEL/series",
            {"version": "7"},
            "version: 7 is not a version of this model in production.",
        ),
        ("/models/MODEL/comparisons", {"a": "1"}, "b: "),
        ("/models/MODEL/comparisons", {"a": "3", "b": "3"}, "b: must differ from a."),
    ],
)
def test_an_error_names_its_field(
    signed_in: Client, models: list[WatchedModel], path: str, asked: dict[str, str], said: str
) -> None:
    path = ROOT + path.replace("MODEL", str(models[0].pk))
    if not said:
        assert read(signed_in, path, **asked)["series"] == []
        return
    status, code, detail = refused(signed_in, path, **asked)
    assert (status, code) == (400, "bad_request") and said in detail


def test_an_unknown_path_is_an_error_of_the_usual_shape(signed_in: Client) -> None:
    assert refused(signed_in, f"{ROOT}/nothing")[:2] == (404, "not_found")
    assert signed_in.delete(f"{ROOT}/models").json()["code"] in ("wrong_method", "forbidden")


def test_one_openapi_document_contains_every_path(client: Client) -> None:
    described = client.get("/api/v1/openapi.json").json()
    jsonschema.validate(described, OPENAPI_31)
    assert {"/api/v1/reports", "/api/v1/gate", "/api/v1/deployments", "/api/v1/projects"} <= set(
        described["paths"]
    )
    operations = [one for path in described["paths"].values() for one in path.values()]
    assert sorted(one["operationId"] for one in operations) == PUBLISHED
    used = set(str(described).split("#/components/schemas/")) and {
        part.split("'")[0] for part in str(described).split("#/components/schemas/")[1:]
    }
    assert used <= set(described["components"]["schemas"])


def test_the_reference_page_needs_no_script_and_no_other_host(client: Client) -> None:
    answer = client.get("/api/v1/")
    text = answer.content.decode()
    assert answer.status_code == 200 and "default-src 'none'" in answer["Content-Security-Policy"]
    for path in client.get("/api/v1/openapi.json").json()["paths"]:
        assert path in text
    assert "style=" not in text and "<script>" not in text and "cache_hit_share" in text
    assert "`" not in text and "<code>next</code>" in text

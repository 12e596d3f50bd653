"""Client of the read API that checks each answer against the published OpenAPI document."""

from __future__ import annotations

from typing import Any

import jsonschema
from django.test import Client

from dashboard.api.openapi import build_document

ROOT = "/api/v1/projects/ranking"


def read(client: Client, path: str, key: str = "", **asked: Any) -> dict[str, Any]:
    """The answer to a GET that must succeed."""
    answer = client.get(path, asked, headers={"authorization": f"Bearer {key}"} if key else {})
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    described = build_document()
    schema = described["paths"][_described(path)]["get"]["responses"]["200"]["content"][
        "application/json"
    ]["schema"]
    jsonschema.validate(
        body, {**schema, "components": described["components"]}, jsonschema.Draft202012Validator
    )
    return body


def refused(client: Client, path: str, key: str = "", **asked: Any) -> tuple[int, str, str]:
    """Status, code and detail of an error answer."""
    answer = client.get(path, asked, headers={"authorization": f"Bearer {key}"} if key else {})
    body = answer.json()
    assert answer["Content-Type"] == "application/json" and set(body) == {"cw", "code", "detail"}
    return answer.status_code, body["code"], body["detail"]


def _described(path: str) -> str:
    """The path as the OpenAPI document writes it."""
    parts = path.strip("/").split("/")
    for place, part in enumerate(parts):
        before = parts[place - 1] if place else ""
        name = {
            "projects": "project",
            "models": "model_id",
            "verdicts": "verdict_id",
            "alerts": "number",
        }.get(before)
        parts[place] = f"{{{name}}}" if name else part
    return "/" + "/".join(parts)

"""OpenAPI document of every interface for programs: reports, read API, deploy gate, deployment
marks."""

from __future__ import annotations

import re
from copy import deepcopy
from functools import cache
from typing import Any

import msgspec
from django.conf import settings

from dashboard.api.deployments import Posted
from dashboard.api.read.router import read_document
from dashboard.ingest.openapi import build_openapi_document

ABOUT = (
    "Times are ISO 8601 in UTC, durations seconds, sizes bytes, shares between 0 and 1; null "
    "means not reported, which is not zero. Fields are only ever added. Every GET response has "
    "an ETag: send it as If-None-Match to receive 304 while nothing has changed. Lists return "
    "`next`: pass it as `cursor` for the next page. An error is {cw, code, detail}; the detail "
    "names the field."
)
_ERROR_RESPONSES = {
    "400": "A parameter or field is wrong; the detail names it.",
    "401": "The key is missing, mistyped, unknown, revoked or expired.",
    "403": "The key is of another kind, or was sent over plain http.",
    "404": "Not found, or not readable with this key.",
    "429": "Too many requests; retry after the seconds of Retry-After.",
    "503": "The database does not respond; retry after the seconds of Retry-After.",
}
_SCHEMES = {"ing": "sends reports", "api": "reads", "dep": "records deployments"}
_READ_MODULE = re.compile(
    r".*_read_(?:findings_instances|models_versions|timeseries|verdicts_alerts)_|^(?:deployment|reports)_"
)
"""Prefix of an operation ID before its published name: the module, or the kind of posted body."""
_TAGS = {
    "/api/v1/reports": "Reports",
    "/api/v1/gate": "Deployments",
    "/api/v1/deployments": "Deployments",
}


@cache
def build_document() -> dict[str, Any]:
    """Builds the OpenAPI 3.1 document, once per process."""
    read, reports = deepcopy(read_document()), deepcopy(build_openapi_document())
    (posted,), components = msgspec.json.schema_components(
        (Posted,), ref_template="#/components/schemas/{name}"
    )
    schemas = {
        name: schema
        for name, schema in read["components"]["schemas"].items()
        if not name.endswith("Query")
    }
    schemas |= reports["components"]["schemas"] | components
    paths = (
        reports["paths"]
        | read["paths"]
        | {"/api/v1/gate": {"get": _gate()}, "/api/v1/deployments": {"post": _deployments(posted)}}
    )
    kinds = {"/api/v1/reports": "ing", "/api/v1/deployments": "dep"}
    for path, operations in paths.items():
        for operation in operations.values():
            operation["security"] = [{f"{kinds.get(path, 'api')}_key": []}]
            operation["tags"] = operation.get("tags") or [_TAGS[path]]
            operation["operationId"] = _READ_MODULE.sub("", operation["operationId"])
            if path != "/api/v1/reports":
                operation["responses"] |= {
                    status: _json(_ref("Error"), text) for status, text in _ERROR_RESPONSES.items()
                }
    return {
        "openapi": "3.1.0",
        "info": {"title": "compilewatch", "version": "1", "description": ABOUT},
        "servers": [{"url": settings.BASE_URL}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                f"{kind}_key": _scheme(kind, does) for kind, does in _SCHEMES.items()
            },
        },
    }


def _scheme(kind: str, does: str) -> dict[str, str]:
    return {
        "type": "http",
        "scheme": "bearer",
        "description": f"A project's key that {does}; it begins with cw_{kind}_.",
    }


def _gate() -> dict[str, Any]:
    return {
        "operationId": "gate",
        "summary": "Gate",
        "description": "Passes only on data or a person's decision; missing data never passes. "
        "An unknown version is inconclusive, with status 200.",
        "parameters": [
            _parameter("model"),
            _parameter("version"),
            _parameter("environment", default="production"),
        ],
        "responses": {
            "200": _json({"type": "object", "properties": _gate_fields()}, "The response.")
        },
    }


_ONSET = {
    "type": ["object", "null"],
    "description": "The times between which the change began, with 95% confidence; null if "
    "unknown, or if the change was there in the first compared minute.",
    "properties": {
        name: {"type": "string", "format": "date-time"} for name in ("earliest", "latest")
    },
}


def _gate_fields() -> dict[str, Any]:
    """The properties of the gate's answer, by name."""
    texts = {
        "state": "pass, fail or inconclusive",
        "sentence": "The finding, for people.",
        "verdict": "",
        "baseline": "",
    }
    texts |= {
        "since": "Start of the change, or of the verdict.",
        "judged_at": "",
        "bound": "",
        "evidence_url": "",
        "alert_url": "",
        "model": "",
        "version": "",
        "environment": "",
    }
    nullable = {"verdict", "baseline", "since", "judged_at", "evidence_url", "alert_url"}
    fields: dict[str, Any] = {
        name: {"type": ["string", "null"] if name in nullable else "string"}
        | ({"description": text} if text else {})
        for name, text in texts.items()
    }
    reason = {
        "type": "object",
        "properties": {"code": {"type": "string"}, "text": {"type": "string"}},
    }
    return fields | {
        "cw": {"type": "integer"},
        "wait": {
            "type": "boolean",
            "description": "Whether a request a minute later may return another result.",
        },
        "reasons": {"type": "array", "items": reason},
        "simulated": {"type": ["boolean", "null"]},
        "onset": _ONSET,
        "bound": {"description": "The change that HEALTHY rules out, by metric; null if unknown."},
        "held_by": _held_by(),
        "next_step": _next_step(),
    }


def _held_by() -> dict[str, Any]:
    number = {"type": ["number", "null"]}
    return {
        "type": ["object", "null"],
        "description": "The metric that holds back HEALTHY. Changes are ratios minus 1.",
        "properties": {
            "metric": {"type": "string"},
            "region": {"type": "string"},
            "change": number,
            "low": number,
            "high": number,
            "visible_90": number | {"description": "Would be detected in 90% of cases."},
            "helps": {"type": "string", "description": "time, calls or instances"},
        },
    }


def _next_step() -> dict[str, Any]:
    return {
        "type": ["object", "null"],
        "description": "The step that leads to a verdict, while the state is inconclusive.",
        "properties": {
            "kind": {
                "type": "string",
                "description": "add_instances, run_side_by_side, add_traffic, swap_hosts or wait",
            },
            "text": {"type": "string", "description": "The advice, for people."},
            "minutes": {"type": "integer"},
        },
    }


def _deployments(posted: dict[str, Any]) -> dict[str, Any]:
    fields = {name: {"type": "string"} for name in ("model", "version", "environment", "at")}
    answer = {
        "type": "object",
        "properties": {
            "cw": {"type": "integer"},
            "id": {"type": "integer"},
            "new": {"type": "boolean"},
            **fields,
        },
    }
    return {
        "operationId": "deployment_post",
        "summary": "Record a deployment",
        "description": "The deployment is shown as a mark; verdicts follow the traffic. A "
        "repeated request refers to the same deployment.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": posted}}},
        "responses": {
            "200": _json(answer, "The mark already exists."),
            "201": _json(answer, "A new mark."),
        },
    }


def _parameter(name: str, default: str = "") -> dict[str, Any]:
    schema = {"type": "string", "minLength": 1, "maxLength": 200} | (
        {"default": default} if default else {}
    )
    return {"in": "query", "name": name, "required": not default, "schema": schema}


def _ref(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


def _json(schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"description": text, "content": {"application/json": {"schema": schema}}}

"""OpenAPI document of the report endpoint, generated from the classes of the wire so that it
matches the decoder. Pure code."""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from compilewatch.wire.ack import Ack
from compilewatch.wire.errors import ERROR_CODES, Error
from compilewatch.wire.messages import ACCEPTED_VERSIONS, MAX_REPORTS, VERSION, Request

from dashboard.ingest.validation import MAX_INT32, MAX_UNIX_TIME_S

_UNIX_TIME = {"minimum": 0, "maximum": MAX_UNIX_TIME_S, "description": "Unix seconds."}


@cache
def build_openapi_document() -> dict[str, Any]:
    """The OpenAPI 3.1 document. JSON Schema cannot express that sketches add up or that ranges are
    valid; the answer's `rejected` reports those errors."""
    (request, ack, error), components = msgspec.json.schema_components(
        (Request, Ack, Error), ref_template="#/components/schemas/{name}"
    )
    _add_bounds(components)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "compilewatch reports",
            "version": str(VERSION),
            "description": "Report intervals of an instrumented process. A 200 response lists "
            "the durable reports; nothing else was stored.",
        },
        "paths": {"/api/v1/reports": {"post": _operation(request, ack, error)}},
        "components": {
            "schemas": components,
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A project's key that begins with cw_ing_.",
                }
            },
        },
        "security": [{"key": []}],
    }


def _add_bounds(components: dict[str, Any]) -> None:
    """Adds the limits that refuse a whole request and are not types: ranges, lengths and the
    alphabet of the identity."""
    request, identity = components["Request"]["properties"], components["Identity"]["properties"]
    request["v"] |= {"enum": list(ACCEPTED_VERSIONS)}
    request["sent"] |= _UNIX_TIME
    request["reports"] |= {"maxItems": MAX_REPORTS}
    identity["started"] |= _UNIX_TIME
    for field in identity.values():
        if field.get("type") == "integer":
            field |= {"minimum": 0, "maximum": MAX_INT32}
        elif field.get("type") == "string":
            field |= {"pattern": "^[^\\x00]*$"}
        else:
            field |= {"propertyNames": {"pattern": "^[^\\x00]*$"}}
    identity["id"] |= {"pattern": "^[0-9a-z]{26}$"}
    for name in ("model", "version"):
        identity[name] |= {"pattern": "^[^\\x00\\s][^\\x00]*$"}


def _operation(
    request: dict[str, Any], ack: dict[str, Any], error: dict[str, Any]
) -> dict[str, Any]:
    return {
        "operationId": "reports_receive",
        "summary": "Stores up to 32 reports of one instance.",
        "description": "The body may be compressed: Content-Encoding "
        "gzip. At most 1 MiB on the wire and "
        "4 MiB inflated.",
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": {
            "200": _json(ack, "The durable reports, and the permanently refused ones."),
            **_refusals(error),
        },
    }


def _refusals(error: dict[str, Any]) -> dict[str, Any]:
    """One answer per HTTP status, with all of its codes."""
    meanings: dict[str, list[str]] = {}
    for code, (status, meaning) in ERROR_CODES.items():
        meanings.setdefault(str(status), []).append(f"`{code}`: {meaning}")
    return {status: _json(error, ". ".join(lines)) for status, lines in meanings.items()}


def _json(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"description": description, "content": {"application/json": {"schema": schema}}}

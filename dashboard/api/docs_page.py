"""API reference page, rendered from the OpenAPI document without scripts or other hosts."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from dashboard.api.openapi import ABOUT, build_document

TAG_ORDER = (
    "Models",
    "Figures",
    "Findings and instances",
    "Verdicts and alerts",
    "Deployments",
    "Reports",
)


@dataclass(frozen=True)
class FieldRow:
    """A parameter or a field of a response."""

    name: str
    kind: str
    text: str
    link: str = ""
    required: bool = False


@dataclass(frozen=True)
class OperationRow:
    """One path and method."""

    id: str
    method: str
    path: str
    summary: str
    text: str
    key: str
    parameters: list[FieldRow]
    body: str
    answer: str


@dataclass(frozen=True)
class ShapeRow:
    """One object of the responses."""

    name: str
    text: str
    fields: list[FieldRow]


@require_safe
def reference(request: HttpRequest) -> HttpResponse:
    """Serves the API reference to everyone. The page describes the interface and contains no
    data."""
    groups, shapes = _build_content()
    return render(
        request,
        "api/reference.html",
        {"groups": groups, "shapes": shapes, "about": ABOUT, "base": settings.BASE_URL},
    )


@cache
def _build_content() -> tuple[list[tuple[str, list[OperationRow]]], list[ShapeRow]]:
    described = build_document()
    rows: dict[str, list[OperationRow]] = {}
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            rows.setdefault(operation["tags"][0], []).append(_operation(path, method, operation))
    shapes = [
        ShapeRow(
            name, schema.get("description", "") if schema.get("properties") else "", _fields(schema)
        )
        for name, schema in sorted(described["components"]["schemas"].items())
    ]
    return sorted(rows.items(), key=lambda item: TAG_ORDER.index(item[0])), [
        shape for shape in shapes if shape.fields
    ]


def _operation(path: str, method: str, operation: dict[str, Any]) -> OperationRow:
    parameters = [
        FieldRow(
            one["name"],
            _describe_type(one["schema"])[0],
            _describe_bounds(one["schema"], one.get("description", "")),
            required=bool(one.get("required")),
        )
        for one in operation.get("parameters", [])
    ]
    answers = [
        answer for status, answer in operation["responses"].items() if status.startswith("2")
    ]
    body = (
        operation.get("requestBody", {})
        .get("content", {})
        .get("application/json", {})
        .get("schema")
    )
    return OperationRow(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        summary=operation["summary"],
        text=operation.get("description", ""),
        key=next(iter(operation["security"][0])).removesuffix("_key"),
        parameters=parameters,
        body=_describe_type(body)[1] if body else "",
        answer=_describe_type(answers[0]["content"]["application/json"]["schema"])[1],
    )


def _fields(schema: dict[str, Any]) -> list[FieldRow]:
    rows = []
    for name, field in schema.get("properties", {}).items():
        kind, link = _describe_type(field)
        rows.append(
            FieldRow(
                name, kind, field.get("description", ""), link, name in schema.get("required", [])
            )
        )
    return rows


def _describe_type(schema: dict[str, Any]) -> tuple[str, str]:
    """Describes a type in words, with a link to its object."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return name, name
    if "anyOf" in schema:
        kinds = [_describe_type(one) for one in schema["anyOf"]]
        return " or ".join(kind for kind, _ in kinds), next((link for _, link in kinds if link), "")
    kind = schema.get("type", "anything")
    if kind == "array":
        items = schema.get("items")
        inner, link = _describe_type(items) if isinstance(items, dict) else ("anything", "")
        return f"list of {inner}", link
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    return {"date-time": "time"}.get(schema.get("format", ""), kind), ""


def _describe_bounds(schema: dict[str, Any], text: str) -> str:
    """The description, and the limits of the JSON Schema in words."""
    said = [text.rstrip(".") + "." if text else ""]
    if choices := [one for one in schema.get("enum", []) if one]:
        said.append(f"One of {', '.join(choices)}.")
    if "minimum" in schema and schema.get("maximum", 0) < 1 << 53:
        said.append(f"From {schema['minimum']:,} to {schema['maximum']:,}.")
    default = schema.get("default")
    if default not in (None, "", []):
        words = (
            ", ".join(default)
            if isinstance(default, list)
            else str(default).lower()
            if isinstance(default, bool)
            else default
        )
        said.append(f"Default {words}.")
    return " ".join(part for part in said if part)

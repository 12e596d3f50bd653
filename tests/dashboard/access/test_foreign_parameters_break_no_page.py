"""Every readable URL with hostile parameter values: no failure, no slow answer, and no unescaped
text."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.test import Client

from dashboard.accounts.models import User
from dashboard.projects.models import Project, Role
from dashboard.projects.services import key_create
from tests.dashboard.access.belongings import addresses, belongings, filled, looked_at
from tests.dashboard.access.matrix import line_of
from tests.dashboard.conftest import sign_in

pytestmark = pytest.mark.timeout(600)
MARK = "<i>cw'\"&</i>"
SLOW_S = 5.0
VALUES = {
    "huge": "9" * 40,
    "beyond int8": str(1 << 63),
    "negative": "-1",
    "NaN": "NaN",
    "infinity": "1e999",
    "null byte": "a\0b",
    "lone surrogate": "\udc80",
    "not UTF-8": "%ff%fe",
    "bidi": "\u202eabc\u2066",
    "digits of Thai": "\u0e51\u0e52",
    "superscript": "\u00b2",
    "year 10000": "10000-01-01T00:00",
    "year 0001": "0001-01-01T00:00",
    "with a zone": "2026-01-01T00:00+23:59",
    "markup": MARK,
    "SQL": "1'); DROP TABLE project;--",
    "format": "%s%n{0.__class__}{{ 7 }}",
    "long": "x" * 3000,
    "lists": "-a,b,,-",
    "header": "a\r\nX-Cw: b",
}
_NAME = re.compile(
    r"""(?:GET|query|data|given|asked)(?:\.get|\.getlist)?[\[(]\s*["']([\w-]+)["']"""
)


def parameter_names() -> list[str]:
    """The query parameters that the code reads; the parameters of the read API come from its
    OpenAPI document."""
    from dashboard.api.read.router import API

    found = {
        name
        for file in (Path(settings.BASE_DIR) / "dashboard").rglob("*.py")
        for name in _NAME.findall(file.read_text())
    }
    for ways in API.get_openapi_schema()["paths"].values():
        found |= {
            one["name"]
            for way in ways.values()
            for one in way.get("parameters", ())
            if one["in"] == "query"
        }
    return sorted(found | {"page", "sort", "from", "to", "until", "next", "o", "p", "e", "all"})


@pytest.fixture
def ids(project: Project, user: User, make_user: Callable[..., User]) -> Iterator[dict[str, Any]]:
    key_create(project=project)
    yield belongings(project, user, make_user("guest", project, Role.VIEWER))


def _readers(
    project: Project, user: User, make_user: Callable[..., User]
) -> tuple[Client, Client, Client]:
    staff = make_user("staff")
    User.objects.filter(pk=staff.pk).update(is_staff=True)
    key = Client(
        headers={"authorization": f"Bearer {key_create(project=project, kind='api')[1]}"},
        raise_request_exception=False,
    )
    return (
        sign_in(Client(raise_request_exception=False), user),
        sign_in(Client(raise_request_exception=False), staff),
        key,
    )


def readable_paths(ids: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Name and path of every URL that accepts GET."""
    for name, route in addresses():
        if "GET" in (line_of(name) or {}) and name != "account_logout":
            yield (
                name,
                filled(route, {**ids, "action": "acknowledge", "object_id": looked_at(route)}),
            )


def _quoted(text: str) -> str:
    return text if text.startswith("%ff") else quote(text, errors="surrogatepass")


def _queries(every: list[str], turn: int) -> tuple[str, list[str]]:
    """All parameters in one query, each with a different value; and single-parameter queries for
    the read API, which refuses unknown parameters."""
    values = [_quoted(value) for value in VALUES.values()]
    pairs = [(name, values[(turn + number) % len(values)]) for number, name in enumerate(every)]
    return "&".join(f"{name}={value}&{name}=1&{name}={value}" for name, value in pairs), [
        f"{name}={value}" for name, value in pairs
    ]


def test_hostile_parameter_values_break_no_page(
    ids: dict[str, Any], project: Project, user: User, make_user: Callable[..., User]
) -> None:
    person, staff, key = _readers(project, user, make_user)
    every, wrong = parameter_names(), []
    assert len(every) > 25
    for turn, (name, path) in enumerate(readable_paths(ids)):
        client = (
            staff
            if name.startswith("admin:")
            else key
            if path.startswith(("/api/", "/metrics"))
            else person
        )
        together, alone = _queries(every, turn)
        for query in alone if client is key else [together]:
            began = time.perf_counter()
            answer = client.get(f"{path}?{query}")
            body = b"".join(answer) if answer.streaming else answer.content  # type: ignore[arg-type]
            took = time.perf_counter() - began
            if answer.status_code >= 500 or took > SLOW_S:
                wrong.append(f"{name}: {query[:80]!r} gets {answer.status_code} in {took:.1f} s")
            if MARK.encode() in body and "html" in answer.headers.get("Content-Type", ""):
                wrong.append(f"{name}: {query[:80]!r} is not escaped")
            if "X-Cw" in answer.headers:
                wrong.append(f"{name}: {query[:80]!r} creates a header")
    assert not wrong, "\n" + "\n".join(wrong)

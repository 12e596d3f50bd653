"""A body that stalls is refused at its deadline, a body above the lowest rate is not; refusals have
the usual error shape and are counted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from dashboard.ingest.group_commit import COMMITTER
from dashboard.ingest.models import Refusal
from dashboard.serving import request_limits
from dashboard.serving.asgi_front import AsgiFront

pytestmark = pytest.mark.django_db(transaction=True)
HOST = [(b"host", b"testserver")]


def echo(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
    body = environ["wsgi.input"].read()
    start("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def asked(
    front: AsgiFront,
    parts: list[bytes],
    *,
    pause: float = 0.0,
    ends: bool = True,
    path: str = "/api/v1/reports",
    **more: str,
) -> Any:
    """Status, headers and JSON or text of the response to a body in parts; a body that does not end
    continues indefinitely."""
    headers = HOST + [
        (name.replace("_", "-").encode(), value.encode()) for name, value in more.items()
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "raw_path": path.encode(),
        "query_string": b"",
        "scheme": "http",
        "http_version": "1.1",
    }
    scope |= {"server": ("127.0.0.1", "80"), "client": ("127.0.0.1", "9"), "headers": headers}
    left, sent = list(parts), []

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(pause)
        if left:
            return {"type": "http.request", "body": left.pop(0), "more_body": True}
        if ends:
            return {"type": "http.disconnect"}
        await asyncio.Event().wait()
        raise AssertionError

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    asyncio.run(front(scope, receive, send))
    text = sent[1]["body"]
    return (
        sent[0]["status"],
        dict(sent[0]["headers"]),
        json.loads(text) if text[:1] == b"{" else text,
    )


@pytest.fixture
def front(monkeypatch: pytest.MonkeyPatch) -> AsgiFront:
    """The front with a short deadline."""
    monkeypatch.setattr(request_limits, "GRACE_SECONDS", 0.2)
    return AsgiFront(echo)


def counted() -> dict[str, int]:
    """The refusals without a project that the committer recorded."""
    COMMITTER.stop()
    return dict(Refusal.objects.filter(project_id=0).values_list("code", "count"))


@pytest.mark.parametrize("path", ["/api/v1/reports", "/accounts/login/"])
def test_a_stalled_body_is_a_408_in_the_usual_error_shape(front: AsgiFront, path: str) -> None:
    status, headers, found = asked(front, [b"abc"], ends=False, path=path, content_length="100")
    assert (status, found["cw"], found["code"]) == (408, 1, "too_slow")
    assert headers[b"connection"] == b"close" and headers[b"x-request-id"]
    assert counted() == {"too_slow": 1}


def test_a_body_above_the_lowest_rate_may_take_longer_than_the_grace(front: AsgiFront) -> None:
    parts = [b"x" * 400] * 8
    assert asked(front, parts, pause=0.1, content_length="3200")[::2] == (200, b"x" * 3200)


def test_a_client_that_disconnects_within_a_body_gets_a_400(front: AsgiFront) -> None:
    status, _, found = asked(front, [b"abc"], content_length="100")
    assert (status, found["code"]) == (400, "bad_request") and "3 bytes" in found["detail"]


@pytest.mark.parametrize(
    ("more", "status", "code"),
    [
        ({"content_length": "99999999"}, 413, "too_large"),
        ({"transfer_encoding": "chunked"}, 411, "no_length"),
    ],
)
def test_a_body_that_no_endpoint_accepts_is_refused_unread(
    front: AsgiFront, more: dict[str, str], status: int, code: str
) -> None:
    found = asked(front, [], ends=False, **more)
    assert (found[0], found[2]["code"]) == (status, code)
    assert counted() == {code: 1}
